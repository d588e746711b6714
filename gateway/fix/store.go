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
	// Read returns the first message from number n on that is resent, and its number; false
	// if there is none.
	Read(n uint64) (at uint64, m Sent, ok bool)
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
// of bytes; older ones are replaced by a gap fill when they are asked for. Once it is full
// it allocates no more: the newest message takes the memory of the oldest.
type Memory struct {
	maxBytes int

	in, out uint64
	first   uint64 // number of the oldest message kept
	count   int
	ring    []Sent // message n is at n % len
	bytes   int    // of kept messages
}

// NewMemory returns a store that keeps up to maxBytes of messages.
func NewMemory(maxBytes int) *Memory { return &Memory{maxBytes: maxBytes, in: 1, out: 1, first: 1} }

// Next implements Store.
func (s *Memory) Next() (in, out uint64) { return s.in, s.out }

// Set sets both numbers, for tests and for an administrator. What was sent is forgotten.
func (s *Memory) Set(in, out uint64) {
	*s = Memory{maxBytes: s.maxBytes, in: in, out: out, first: out}
}

// Received implements Store.
func (s *Memory) Received(next uint64) { s.in = next }

// keptOverhead is counted for every message, in bytes.
const keptOverhead = 64

// Sent implements Store.
func (s *Memory) Sent(m Sent) {
	size := len(m.Kept) + keptOverhead
	var old []byte
	for s.count > 0 && s.bytes+size > s.maxBytes {
		if b := s.drop(); cap(b) > cap(old) {
			old = b
		}
	}
	if s.out++; size > s.maxBytes {
		s.first = s.out
		return
	}
	if s.count == len(s.ring) {
		s.grow()
	}
	if m.Kept != nil {
		m.Kept = append(old[:0], m.Kept...)
	}
	s.ring[(s.out-1)%uint64(len(s.ring))] = m
	s.count++
	s.bytes += size
}

// drop forgets the oldest message and returns its memory.
func (s *Memory) drop() []byte {
	m := &s.ring[s.first%uint64(len(s.ring))]
	old := m.Kept
	m.Kept = nil
	s.bytes -= len(old) + keptOverhead
	s.first++
	s.count--
	return old
}

func (s *Memory) grow() {
	ring := make([]Sent, max(8, 2*len(s.ring)))
	for i := range uint64(s.count) {
		n := s.first + i
		ring[n%uint64(len(ring))] = s.ring[n%uint64(len(s.ring))]
	}
	s.ring = ring
}

// Read implements Store.
func (s *Memory) Read(n uint64) (at uint64, m Sent, ok bool) {
	for at = max(n, s.first); at < s.out && s.count > 0; at++ {
		if m := s.ring[at%uint64(len(s.ring))]; m.Kept != nil {
			return at, m, true
		}
	}
	return 0, Sent{}, false
}

// Reset implements Store.
func (s *Memory) Reset() { s.Set(1, 1) }
