package order

// FixOp is what a record of an entry of kind fix does to its session.
type FixOp uint8

// Operations on FIX sessions.
const (
	FixOpen    FixOp = 1 // a gateway opens the session; body: FixOpening
	FixStep    FixOp = 2 // numbers for administrative messages
	FixRefusal FixOp = 3 // a message is refused for good; body: what the report of that is made of
	FixRemove  FixOp = 4 // the session is forgotten
	FixMass    FixOp = 5 // a mass cancel that the counterparty asks for; body: FixMassCancel
	FixLapse   FixOp = 6 // its counterparty is gone for longer than its grace: its orders are cancelled
	FixLeave   FixOp = 7 // a step that answers the Logout of the counterparty
)

// FixRecordSize is the fixed part of a record, in bytes.
const FixRecordSize = 24

// FixOpeningSize is the body of an opening, in bytes.
const FixOpeningSize = 32

// MaxFixBody is the maximum size of the body of a record, in bytes.
const MaxFixBody = 4096

// FixMassSize is the body of a mass cancel without its message, in bytes.
const FixMassSize = 8

// Bits of FixOpening.Flags.
const (
	FixReset    uint8 = 1      // begins a new generation of the same day (ResetSeqNumFlag=Y)
	fixModeAt         = 1      // two bits of a LapseMode
	fixModeBits uint8 = 3 << 1 // these
	FixLate     uint8 = 8      // its Logon is refused: mode, and whether it left or lapsed, stay
)

// LapseMode is when the orders of a FIX session are cancelled because its counterparty is gone.
type LapseMode uint8

// Modes.
const (
	LapseNever    LapseMode = iota
	LapseOnLoss             // its connection ended, or its gateway did, without a Logout of the counterparty
	LapseOnLogout           // after a Logout, too
	lapseModes
)

// MaxGraceMs bounds the time that a session may be gone before its orders are cancelled.
const MaxGraceMs = 60_000

// FixRecord is one record of an entry of kind fix. Records of one entry have rising slots,
// an opening or a mass cancel is the only one of its entry, and lapses are with lapses only.
//
//	off size field            off size field
//	 0  u32  slot             17  u8   outs
//	 4  u32  attempt          18  u16  size of the body
//	 8  u64  in               20  u32  generation
//	16  u8   op               24  body, then 0..7 zero bytes
type FixRecord struct {
	Slot       uint32
	Attempt    uint32 // of the gateway; of an opening: the new one
	Generation uint32 // of the session; of an opening: the one that it begins or continues
	In         uint64 // the MsgSeqNum expected next
	Op         FixOp
	Outs       uint8 // numbers that it takes: of an opening and a refusal 1, of a step and a leave 1..255, of others 0
	Body       []byte
}

// FixOpening is the body of an opening.
type FixOpening struct {
	ID    [2]uint64 // of the session
	Day   uint32    // of its calendar, days since 1970
	Form  uint8     // of the reports of its generation
	Flags uint8     // FixReset, FixLate
	// Mode is when the session's orders are cancelled because its counterparty is gone, for
	// GraceMs milliseconds: 1 to MaxGraceMs, of LapseNever 0.
	Mode    LapseMode
	GraceMs uint16
	// SentNs is the SendingTime of the Logon, unix nanoseconds; 0 for none. A reset that was
	// sent before another Logon that was taken is a late one.
	SentNs int64
}

// FixMassCancel is the body of a mass cancel: of the orders of its session. Its report, and
// those of the orders, take the numbers that follow, as executions do.
//
//	off size field                          off size field
//	 0  u16  book, 65535 for all              4  u16  where the ClOrdID is in the message
//	 2  u8   side, as tag 54, 0 for both      6  u16  0
//	 3  u8   size of the ClOrdID              8  the message, or its begin
type FixMassCancel struct {
	Book       uint16
	Side       uint8
	ClOrdIDLen uint8
	ClOrdIDOff uint16
	Message    []byte
}

// Append appends the body; what is too long of the message is left out.
func (m *FixMassCancel) Append(dst []byte) []byte {
	dst = append(le.AppendUint16(dst, m.Book), m.Side, m.ClOrdIDLen)
	dst = le.AppendUint16(le.AppendUint16(dst, m.ClOrdIDOff), 0)
	return append(dst, m.Message[:min(len(m.Message), MaxFixBody-FixMassSize)]...)
}

// ClOrdID of the request.
func (m *FixMassCancel) ClOrdID() []byte { return m.Message[m.ClOrdIDOff:][:m.ClOrdIDLen] }

// MassCancelOf returns the mass cancel of the payload of an entry of kind fix that DecodeEntry
// accepted, and the number that it answers; false if it is of other records.
func MassCancelOf(payload []byte) (m FixMassCancel, slot uint32, seq uint64, ok bool) {
	if FixOp(payload[16]) != FixMass {
		return m, 0, 0, false
	}
	var r FixRecord
	NextFix(payload, &r)
	b := r.Body
	return FixMassCancel{Book: le.Uint16(b), Side: b[2], ClOrdIDLen: b[3], ClOrdIDOff: le.Uint16(b[4:]), Message: b[FixMassSize:]}, r.Slot, r.In - 1, true
}

// checkMass checks the body of a mass cancel.
func checkMass(seq uint64, b []byte) error {
	switch {
	case len(b) < FixMassSize:
		return &EntryError{Seq: seq, Field: "bodySize", Value: uint64(len(b)), Allowed: "8 and the message for a mass cancel"}
	case b[2] > 2:
		return &EntryError{Seq: seq, Field: "side", Value: uint64(b[2]), Allowed: "0 both, 1 buy, 2 sell"}
	case b[3] == 0 || b[3] > MaxClOrdID || int(le.Uint16(b[4:]))+int(b[3]) > len(b)-FixMassSize:
		return &EntryError{Seq: seq, Field: "clOrdIDLen", Value: uint64(b[3]), Allowed: "1..64, and inside the message"}
	case le.Uint16(b[6:]) != 0:
		return &EntryError{Seq: seq, Field: "reserved", Value: uint64(le.Uint16(b[6:])), Allowed: "0"}
	}
	return nil
}

// AppendFixRecord appends a record to the payload of an entry of kind fix.
func AppendFixRecord(dst []byte, r *FixRecord) []byte {
	dst = le.AppendUint32(dst, r.Slot)
	dst = le.AppendUint32(dst, r.Attempt)
	dst = le.AppendUint64(dst, r.In)
	dst = append(dst, byte(r.Op), r.Outs)
	dst = le.AppendUint16(dst, uint16(len(r.Body)))
	dst = le.AppendUint32(dst, r.Generation)
	dst = append(dst, r.Body...)
	var zero [8]byte
	return append(dst, zero[:Padded(len(r.Body))-len(r.Body)]...)
}

// Append appends the body of an opening.
func (o *FixOpening) Append(dst []byte) []byte {
	dst = le.AppendUint64(le.AppendUint64(dst, o.ID[0]), o.ID[1])
	dst = append(le.AppendUint32(dst, o.Day), o.Form, o.Flags&(FixReset|FixLate)|uint8(o.Mode)<<fixModeAt)
	return le.AppendUint64(le.AppendUint16(dst, o.GraceMs), uint64(o.SentNs))
}

// Opening returns the body of an opening.
func (r *FixRecord) Opening() FixOpening {
	b := r.Body
	return FixOpening{ID: [2]uint64{le.Uint64(b), le.Uint64(b[8:])}, Day: le.Uint32(b[16:]), Form: b[20], Flags: b[21] & (FixReset | FixLate),
		Mode: LapseMode(b[21] & fixModeBits >> fixModeAt), GraceMs: le.Uint16(b[22:]), SentNs: int64(le.Uint64(b[24:]))}
}

// CheckLapse reports whether a mode and a grace are those that a session can have.
func CheckLapse(mode LapseMode, graceMs uint16) bool {
	return mode < lapseModes && (mode == LapseNever) == (graceMs == 0) && graceMs <= MaxGraceMs
}

// IsLapse reports whether the payload of an entry of kind fix is of lapses.
func IsLapse(payload []byte) bool { return FixOp(payload[16]) == FixLapse }

// NextFix decodes the first record of the payload of an entry that DecodeEntry accepted,
// and returns the bytes after it.
func NextFix(payload []byte, r *FixRecord) (rest []byte) {
	n := int(le.Uint16(payload[18:]))
	*r = FixRecord{
		Slot: le.Uint32(payload), Attempt: le.Uint32(payload[4:]), In: le.Uint64(payload[8:]), Generation: le.Uint32(payload[20:]),
		Op: FixOp(payload[16]), Outs: payload[17], Body: payload[FixRecordSize:][:n:n],
	}
	return payload[FixRecordSize+Padded(n):]
}

// openingIsRight checks flags and grace of an opening.
func openingIsRight(b []byte) bool {
	return b[21]&^(FixReset|fixModeBits|FixLate) == 0 && CheckLapse(LapseMode(b[21]&fixModeBits>>fixModeAt), le.Uint16(b[22:]))
}

// checkFix checks the form of the records of an entry.
func checkFix(seq uint64, b []byte) error {
	if len(b) == 0 {
		return &EntryError{Seq: seq, Field: "size", Value: HeaderSize, Allowed: "64 and one record or more for a fix entry"}
	}
	all, lapses := len(b), len(b) >= FixRecordSize && IsLapse(b)
	for last := int64(-1); len(b) > 0; {
		if len(b) < FixRecordSize {
			return &EntryError{Seq: seq, Field: "record", Value: uint64(len(b)), Allowed: "24 bytes and the body"}
		}
		slot, n, outs := int64(le.Uint32(b)), int(le.Uint16(b[18:])), b[17]
		end := FixRecordSize + Padded(n)
		if n > MaxFixBody || end > len(b) {
			return &EntryError{Seq: seq, Field: "bodySize", Value: uint64(n), Allowed: "0..4096, and no more than the bytes there"}
		}
		for _, c := range b[FixRecordSize+n : end] {
			if c != 0 {
				return &EntryError{Seq: seq, Field: "padding", Value: uint64(c), Allowed: "zero bytes"}
			}
		}
		if slot <= last {
			return &EntryError{Seq: seq, Field: "slot", Value: uint64(slot), Allowed: "rising slots"}
		}
		switch op := FixOp(b[16]); {
		case op < FixOpen || op > FixLeave || (op == FixLapse) != lapses:
			return &EntryError{Seq: seq, Field: "op", Value: uint64(op), Allowed: "1 open, 2 step, 3 refusal, 4 remove, 5 mass cancel, 7 leave; or 6 lapse in all records"}
		case op == FixOpen && (n != FixOpeningSize || !openingIsRight(b[FixRecordSize:])):
			return &EntryError{Seq: seq, Field: "bodySize", Value: uint64(n), Allowed: "32 for an opening, its flags 0 to 13, and a grace of 0 to 60000 that is 0 without a mode"}
		case (op == FixOpen || op == FixMass) && end != all:
			return &EntryError{Seq: seq, Field: "op", Value: uint64(op), Allowed: "1 and 5 only as the one record of its entry"}
		case op == FixMass && checkMass(seq, b[FixRecordSize:FixRecordSize+n]) != nil:
			return checkMass(seq, b[FixRecordSize:FixRecordSize+n])
		case (op == FixStep || op == FixRemove || op >= FixLapse) && n != 0:
			return &EntryError{Seq: seq, Field: "bodySize", Value: uint64(n), Allowed: "0 for a step, a removal, a lapse and a leave"}
		case (op == FixOpen || op == FixRefusal) && outs != 1, (op == FixStep || op == FixLeave) && outs == 0, op >= FixRemove && op < FixLeave && outs != 0:
			return &EntryError{Seq: seq, Field: "outs", Value: uint64(outs), Allowed: "1 for an opening and a refusal, 1..255 for a step and a leave, 0 for others"}
		}
		last, b = slot, b[end:]
	}
	return nil
}
