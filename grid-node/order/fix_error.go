package order

import (
	"strconv"
	"strings"
)

// Reason is why an order is rejected.
type Reason uint8

// Reasons.
const (
	ReasonTooLong     Reason = iota + 1 // message or value
	ReasonTruncated                     // the message does not begin or end as one
	ReasonBeginString                   // not FIX 4.2, 4.4 or 5.0 SP2
	ReasonBodyLength                    // not a number, or not the right one
	ReasonMsgType                       // none of D, F, G
	ReasonCheckSum                      // not a number, or not the right one
	ReasonTagNumber                     // not tag=value
	ReasonEmpty                         // a tag without value
	ReasonCharacter                     // a byte that text may not have
	ReasonDuplicate                     // a tag twice outside a repeating group
	ReasonMissing                       // a required tag is not there
	ReasonEnum                          // a code that the tag does not have
	ReasonNumber                        // not a number of the right kind
	ReasonTimestamp                     // not a UTC timestamp
	ReasonDataLength                    // a data field and its length do not fit
	ReasonGroup                         // a repeating group and its count do not fit
	ReasonOutOfPlace                    // an envelope field at the wrong position
	ReasonTooMany                       // too many user-defined tags
)

var reasonTexts = [...]string{
	ReasonTooLong:     "too long",
	ReasonTruncated:   "not a whole FIX message",
	ReasonBeginString: "FIX version not taken",
	ReasonBodyLength:  "wrong BodyLength",
	ReasonMsgType:     "message type not taken",
	ReasonCheckSum:    "wrong CheckSum",
	ReasonTagNumber:   "not tag=value",
	ReasonEmpty:       "no value",
	ReasonCharacter:   "character not allowed",
	ReasonDuplicate:   "tag repeated",
	ReasonMissing:     "required tag missing",
	ReasonEnum:        "value not known",
	ReasonNumber:      "not such a number",
	ReasonTimestamp:   "not a timestamp",
	ReasonDataLength:  "data and its length do not fit",
	ReasonGroup:       "repeating group does not fit its count",
	ReasonOutOfPlace:  "tag out of place",
	ReasonTooMany:     "too many tags",
}

func (r Reason) String() string {
	if int(r) < len(reasonTexts) {
		return reasonTexts[r]
	}
	return "reason " + strconv.Itoa(int(r))
}

// Error is why a message is not a valid order. It is made only for a rejected one.
type Error struct {
	Tag     uint32 // 0 when no tag is at fault
	Reason  Reason
	Offset  int    // of the fault in the message, where that helps
	Value   string // what was there, quoted and cut to 32 bytes
	Allowed string // what is valid
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Tag != 0 {
		b.WriteString("tag " + strconv.Itoa(int(e.Tag)))
		if name := tagNames[e.Tag]; name != "" {
			b.WriteString(" (" + name + ")")
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Reason.String())
	if e.Offset != 0 {
		b.WriteString(" at byte " + strconv.Itoa(e.Offset))
	}
	b.WriteString(": " + e.Value + "; allowed: " + e.Allowed)
	return b.String()
}

func quote(v []byte) string {
	if len(v) > 32 {
		return strconv.QuoteToASCII(string(v[:32])) + "…"
	}
	return strconv.QuoteToASCII(string(v))
}

func upTo(b []byte, n int) []byte { return b[:min(len(b), n)] }

func number(n int) string { return strconv.Itoa(n) }
