package order

// A drop copy is a FIX session, the target, that gets a copy of the ExecutionReports of others,
// its sources; see docs/adr/0089. An entry of kind drop-copy says of which. A copy itself is in
// no log: FixReports and FixResent frames carry it in an entry of this kind that is made for them.

// DropCopyOp is what an entry of kind drop-copy is.
type DropCopyOp uint8

// Operations of kind drop-copy.
const (
	DropCopySources DropCopyOp = 1 // from here on the target gets copies of the reports of these sessions, and of no others
	DropCopyOrder   DropCopyOp = 2 // in frames only: the copy of the report of an order; the message of the order
	DropCopyReport  DropCopyOp = 3 // in frames only: the copy of another report; what that is made of, as in a refusal
)

// Bounds of drop copies.
const (
	// MaxCopySources bounds the sources of a target.
	MaxCopySources = 512
	// MaxCopyName bounds the name of a source in bytes: both of its CompIDs and what is between.
	MaxCopyName = 63
	// MaxCopyList bounds the encoded sources, in bytes.
	MaxCopyList = MaxCopySources * (16 + 1 + MaxCopyName)

	dropCopyFixed = 16
)

// DropCopy is the payload of an entry of kind drop-copy.
//
//	off size field                          off size field
//	 0  u8   op                               4  u32  slot of the target
//	 1  u8   size of the name, else 0         8  u32  its generation, in frames 0
//	 2  u16  0                               12  u32  its attempt, in frames 0
//	                                         16       the sources, or the name and the rest
type DropCopy struct {
	Op         DropCopyOp
	Slot       uint32
	Generation uint32
	Attempt    uint32
	Sources    []byte // as AppendSource writes them, by rising ids; none: it is no target any more
	Name       []byte // of a copy: that of its source
	Body       []byte // of a copy
}

// Append appends the payload.
func (c *DropCopy) Append(dst []byte) []byte {
	dst = le.AppendUint16(append(dst, byte(c.Op), byte(len(c.Name))), 0)
	dst = le.AppendUint32(le.AppendUint32(le.AppendUint32(dst, c.Slot), c.Generation), c.Attempt)
	if c.Op == DropCopySources {
		return append(dst, c.Sources...)
	}
	dst = append(dst, c.Name...)
	return append(dst, c.Body[:min(len(c.Body), MaxPayload-dropCopyFixed-len(c.Name))]...)
}

// DropCopyOf reads the payload of an entry of kind drop-copy that DecodeEntry accepted.
func DropCopyOf(payload []byte) DropCopy {
	c := DropCopy{Op: DropCopyOp(payload[0]), Slot: le.Uint32(payload[4:]), Generation: le.Uint32(payload[8:]), Attempt: le.Uint32(payload[12:])}
	b := payload[dropCopyFixed:]
	if c.Op == DropCopySources {
		c.Sources = b
		return c
	}
	n := int(payload[1])
	c.Name, c.Body = b[:n:n], b[n:]
	return c
}

// AppendSource appends a source: the id of its session, and its name: the CompID of the gateway
// in it, SOH, and that of its counterparty.
//
//	off size field             off size field
//	 0  u64  id, high word      16  u8   size of the name
//	 8  u64  id, low word       17       the name, then 0..7 zero bytes
func AppendSource(dst []byte, id [2]uint64, name string) []byte {
	dst = append(le.AppendUint64(le.AppendUint64(dst, id[0]), id[1]), byte(len(name)))
	dst = append(dst, name...)
	var zero [8]byte
	return append(dst, zero[:Padded(17+len(name))-17-len(name)]...)
}

// NextSource reads the first source, and returns the bytes after it; nil, false if the bytes are none.
func NextSource(b []byte) (id [2]uint64, name, rest []byte, ok bool) {
	if len(b) < 17 {
		return id, nil, nil, false
	}
	n := int(b[16])
	if n == 0 || n > MaxCopyName || Padded(17+n) > len(b) {
		return id, nil, nil, false
	}
	for _, c := range b[17+n : Padded(17+n)] {
		if c != 0 {
			return id, nil, nil, false
		}
	}
	return [2]uint64{le.Uint64(b), le.Uint64(b[8:])}, b[17:][:n:n], b[Padded(17+n):], true
}

// CountSources returns how many sources there are in a list that CheckSources accepted.
func CountSources(b []byte) (n int) {
	for ok := len(b) > 0; ok; n++ {
		_, _, b, _ = NextSource(b)
		ok = len(b) > 0
	}
	return n
}

// CheckSources checks a list of sources.
func CheckSources(b []byte) error { return checkSources(0, b) }

func checkSources(seq uint64, b []byte) error {
	var last [2]uint64
	for n := uint64(1); len(b) > 0; n++ {
		id, _, rest, ok := NextSource(b)
		switch {
		case !ok:
			return &EntryError{Seq: seq, Field: "source", Value: n, Allowed: "an id, and a name of 1..63 bytes, padded with zero bytes"}
		case n > MaxCopySources:
			return &EntryError{Seq: seq, Field: "sources", Value: n, Allowed: "at most 512"}
		case id[0] < last[0] || id[0] == last[0] && id[1] <= last[1]:
			return &EntryError{Seq: seq, Field: "source", Value: id[1], Allowed: "rising ids"}
		}
		last, b = id, rest
	}
	return nil
}

// checkDropCopy checks the form of the payload of an entry of kind drop-copy.
func checkDropCopy(seq uint64, b []byte) error {
	if len(b) < dropCopyFixed {
		return &EntryError{Seq: seq, Field: "size", Value: uint64(HeaderSize + len(b)), Allowed: "80 or more for a drop-copy entry"}
	}
	op, name := DropCopyOp(b[0]), int(b[1])
	switch {
	case op < DropCopySources || op > DropCopyReport || le.Uint16(b[2:]) != 0:
		return &EntryError{Seq: seq, Field: "op", Value: uint64(op), Allowed: "1 sources, and in frames 2 order, 3 report"}
	case (op == DropCopySources) != (name == 0) || name > MaxCopyName || name > len(b)-dropCopyFixed:
		return &EntryError{Seq: seq, Field: "nameLen", Value: uint64(name), Allowed: "0 for sources, 1..63 for a copy"}
	case op == DropCopySources:
		return checkSources(seq, b[dropCopyFixed:])
	}
	return nil
}

// IsCopied reports whether the record of a refusal is told to its session by an ExecutionReport
// Rejected, of which there are drop copies: that of an order which the grid refuses. There are
// none of what refuses a cancel (OrderCancelReject), a mass cancel or a message of the session
// layer, and none of the state of an order that the session asked for: nothing happened.
func IsCopied(record []byte) bool {
	r, ok := ParseFixRefused(record)
	return ok && string(r.msgType()) == "D"
}
