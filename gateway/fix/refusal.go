package fix

import (
	"fmt"
	"strconv"

	"github.com/ordergrid/ordergrid/gateway/fix/dict"
)

// Reason is a SessionRejectReason (373).
type Reason int

// Reasons of the session layer.
const (
	InvalidTag       Reason = 0
	RequiredMissing  Reason = 1
	NotDefined       Reason = 2
	NoValue          Reason = 4
	ValueIncorrect   Reason = 5
	DataFormat       Reason = 6
	CompIDProblem    Reason = 9
	SendingTimeWrong Reason = 10
	InvalidMsgType   Reason = 11
	TagTwice         Reason = 13
	OutOfOrder       Reason = 14
	GroupCount       Reason = 16
	WrongApplVersion Reason = 18
)

// The words are those of the standard's table of reasons, as QuickFIX's scripts expect
// them; what is at fault follows.
var reasonWords = map[Reason]string{
	InvalidTag: "Invalid tag number", RequiredMissing: "Required tag missing", NotDefined: "Tag not defined for this message type",
	NoValue: "Tag specified without a value", ValueIncorrect: "Value is incorrect (out of range) for this tag",
	DataFormat: "Incorrect data format for value", CompIDProblem: "CompID problem", SendingTimeWrong: "SendingTime accuracy problem",
	InvalidMsgType: "Invalid MsgType", TagTwice: "Tag appears more than once", OutOfOrder: "Tag specified out of required order",
	GroupCount: "Incorrect NumInGroup count for repeating group", WrongApplVersion: "Invalid or unsupported application version",
}

// lastReason42 is the last SessionRejectReason of FIX 4.2; later ones are not sent there.
const lastReason42 = InvalidMsgType

// BusinessReason is a BusinessRejectReason (380).
type BusinessReason int

// Business reasons.
const (
	OtherReason       BusinessReason = 0
	UnknownID         BusinessReason = 1
	UnknownSecurity   BusinessReason = 2
	UnsupportedType   BusinessReason = 3
	NotAvailable      BusinessReason = 4
	FieldMissing      BusinessReason = 5
	NotAuthorized     BusinessReason = 6
	DeliverToNotAvail BusinessReason = 7
)

// Refusal is why a message is refused: by Reject (35=3) or by BusinessMessageReject (j).
type Refusal struct {
	Business bool
	Reason   Reason         // unless Business
	Why      BusinessReason // if Business
	Tag      int
	NoTag    bool   // without RefTagID, as QuickFIX has it for faults of the envelope
	Value    string // what there was
	Allowed  string // what is valid
	RefID    string // BusinessRejectRefID
	Words    string // in place of the reason's
	name     string
}

// refuse makes the refusal of a field. Its text, which is logged, has no secret.
func refuse(t *dict.Table, reason Reason, tag int, v []byte, allowed string) *Refusal {
	r := &Refusal{Reason: reason, Tag: tag, Value: quote(v), Allowed: allowed, name: t.Name(tag)}
	if len(v) > 0 && (tag == 554 || tag == 925 || tag == 96) { // Password, NewPassword, RawData
		r.Value = fmt.Sprintf("of %d bytes, not shown", len(v))
	}
	return r
}

// Error returns the text that is sent.
func (r *Refusal) Error() string {
	s := r.Words
	if s == "" {
		s = reasonWords[r.Reason]
	}
	if r.Tag != 0 || !r.Business {
		s += ": tag " + strconv.Itoa(r.Tag)
		if r.name != "" {
			s += " (" + r.name + ")"
		}
	}
	if r.Value != "" {
		s += " is " + r.Value
	}
	if r.Allowed != "" {
		s += "; allowed: " + r.Allowed
	}
	return s
}
