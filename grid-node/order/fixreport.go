package order

// FixReport is what the report of an execution is made of, for the FIX session that has the
// order: the body of a record of kind refusal in FixReports and FixResent frames. It is in no
// log: every copy that executes has it. The state of an order, which answers a status request,
// is in the log, as the body of a refusal.
//
//	off size field                          off size field
//	 0  u16  4                               24  u64  x2 value: price x quantity of all fills, high word first;
//	                                              of a mass cancel 1 and how many it has cancelled, 0 if it goes on
//	 2  u8   digits behind the point         40  64   the record, as grid-node/match has it
//	         of prices                      104  the symbol, the ClOrdID, and of the answer to a message
//	 3  u8   the same of quantities              the begin of that message
//	 4  u8   size of the symbol
//	 5  u8   size of the ClOrdID
//	 6  u8   1 if it is a state, else 0
//	 7  u8   0
//	 8  u32  number in the entry, from 1
//	12  u32  0
//	16  u64  the entry that the order began with
type FixReport struct {
	PriceDigits, QtyDigits uint8
	State                  bool // that was reported before: the record is the last of the order, or Accepted of one in a book
	N                      uint32
	First                  uint64
	Value                  [2]uint64
	Record                 []byte // FixExecSize bytes
	Symbol, ClOrdID        []byte
	Message                []byte // nil of what another session's message did
}

const (
	// FixExecuted are the first two bytes of a FixReport.
	FixExecuted = 4
	// FixExecSize is the size of the record in a FixReport.
	FixExecSize   = 64
	fixReportSize = 40 + FixExecSize
)

// Append appends the report, at most MaxFixBody bytes.
func (r *FixReport) Append(dst []byte) []byte {
	at := len(dst)
	dst = le.AppendUint16(dst, FixExecuted)
	state := byte(0)
	if r.State {
		state = 1
	}
	dst = append(dst, r.PriceDigits, r.QtyDigits, byte(len(r.Symbol)), byte(len(r.ClOrdID)), state, 0)
	dst = le.AppendUint64(dst, uint64(r.N))
	for _, v := range [...]uint64{r.First, r.Value[0], r.Value[1]} {
		dst = le.AppendUint64(dst, v)
	}
	dst = append(append(append(dst, r.Record[:FixExecSize]...), r.Symbol...), r.ClOrdID...)
	return append(dst, r.Message[:min(len(r.Message), MaxFixBody-(len(dst)-at))]...)
}

// ParseFixReport reads a report; false if the bytes are none.
func ParseFixReport(b []byte) (r FixReport, ok bool) {
	if len(b) < fixReportSize || le.Uint16(b) != FixExecuted {
		return r, false
	}
	symbol, name := int(b[4]), int(b[5])
	if name == 0 || len(b) < fixReportSize+symbol+name {
		return r, false
	}
	rest := b[fixReportSize:]
	return FixReport{
		PriceDigits: b[2], QtyDigits: b[3], State: b[6] != 0, N: le.Uint32(b[8:]), First: le.Uint64(b[16:]),
		Value: [2]uint64{le.Uint64(b[24:]), le.Uint64(b[32:])}, Record: b[40:fixReportSize],
		Symbol: rest[:symbol], ClOrdID: rest[symbol:][:name], Message: rest[symbol+name:],
	}, true
}
