package wire

// TypeFixReports is what committed entries did that a FIX session is told: of a partition that
// matches with its orders, and of any partition with those of which it gets drop copies.
const TypeFixReports Type = 0x2b

// FixReports brings the reports of a committed entry to the gateway that has the session: of
// its own message, in place of FixAck, and of the messages of others; or, in a frame behind that
// one, the drop copies of the entry. Their numbers are consecutive.
type FixReports struct {
	Slot    uint32
	Attempt uint32 // of the gateway that it is for
	Entries []byte // as in FixResent: records of kind refusal, whose bodies are executions; copies are entries of kind drop-copy
}

const fixReportsFixed = HeaderSize + 8

// AppendFixReports appends a FixReports frame.
func AppendFixReports(dst []byte, p PartitionID, m *FixReports) []byte {
	dst, f := begin(dst, TypeFixReports, 0, p, fixReportsFixed+len(m.Entries))
	le.PutUint32(f[8:], m.Slot)
	le.PutUint32(f[12:], m.Attempt)
	copy(f[fixReportsFixed:], m.Entries)
	return dst
}

// DecodeFixReports decodes a FixReports frame. NextResent iterates over its entries.
func DecodeFixReports(f []byte, m *FixReports) error {
	if err := open(f, TypeFixReports, fixReportsFixed, false); err != nil {
		return err
	}
	m.Slot, m.Attempt, m.Entries = le.Uint32(f[8:]), le.Uint32(f[12:]), f[fixReportsFixed:]
	if len(m.Entries) == 0 {
		return &FrameError{Type: TypeFixReports, Field: "entries", Value: 0, Allowed: "one or more"}
	}
	return checkResent(TypeFixReports, m.Entries)
}
