package fix

// Store is what of a session outlives its connection and its gateway: the numbers, and
// the messages that may be asked for again. Calls are in the order of what happens.
//
// In a grid's log (ADR 44) numbers are given by entries: there a message leaves when the
// entry that gave it its number is committed.
type Store interface {
	// Next returns the number expected of the other side next, and that of the message
	// sent next. Both begin at 1.
	Next() (in, out uint64)
	// Received records that all numbers below next are processed.
	Received(next uint64)
	// Sent gives the next number to a message. One without kept bytes is not resent.
	Sent(m Sent)
	// Read returns a message that was sent, false for one that is not resent.
	Read(n uint64) (m Sent, ok bool)
	// Reset begins anew with number 1 in both directions.
	Reset()
}

// Sent is a message without the parts of its header that differ when it is resent.
type Sent struct {
	TimeNs int64  // its SendingTime, unix nanoseconds
	Type   string // MsgType
	Kept   []byte // fields after the header, each with its SOH; nil: it is not resent
}

// Memory is a Store that ends with the process. It keeps the last messages within a number
// of bytes; older ones are replaced by a gap fill when they are asked for.
type Memory struct {
	MaxBytes int // of kept messages; 0: none is kept

	in, out uint64
	first   uint64 // number of kept[0]
	kept    []Sent // from ring[head]
	bytes   int
}

// NewMemory returns a store that keeps up to maxBytes of messages.
func NewMemory(maxBytes int) *Memory { return &Memory{MaxBytes: maxBytes, in: 1, out: 1, first: 1} }

// Next implements Store.
func (s *Memory) Next() (in, out uint64) { return s.in, s.out }

// Set sets both numbers, for tests and for an administrator.
func (s *Memory) Set(in, out uint64) {
	*s = Memory{MaxBytes: s.MaxBytes, in: in, out: out, first: out}
}

// Received implements Store.
func (s *Memory) Received(next uint64) { s.in = next }

// keptOverhead is counted for every message, in bytes.
const keptOverhead = 64

// Sent implements Store. Once the store is full the memory of the oldest message is used
// for the newest.
func (s *Memory) Sent(m Sent) {
	var old []byte
	for len(s.kept) > 0 && s.bytes+len(m.Kept)+keptOverhead > s.MaxBytes {
		s.bytes -= len(s.kept[0].Kept) + keptOverhead
		if old == nil {
			old = s.kept[0].Kept
		}
		s.kept = s.kept[1:]
		s.first++
	}
	s.out++
	if s.MaxBytes < len(m.Kept)+keptOverhead {
		s.first = s.out
		return
	}
	if m.Kept != nil {
		m.Kept = append(old[:0], m.Kept...)
	}
	s.bytes += len(m.Kept) + keptOverhead
	s.kept = append(s.kept, m)
}

// Read implements Store.
func (s *Memory) Read(n uint64) (Sent, bool) {
	if n < s.first || n-s.first >= uint64(len(s.kept)) {
		return Sent{}, false
	}
	m := s.kept[n-s.first]
	return m, m.Kept != nil
}

// Reset implements Store.
func (s *Memory) Reset() { s.Set(1, 1) }
