package fix

// Memory is a Store that ends with the process, for tests of the session layer. It keeps the last messages within a number
// of bytes; older ones are replaced by a gap fill when they are asked for. Once it is full
// it allocates no more: the newest message takes the memory of the oldest.
type Memory struct {
	maxBytes int
	session  *Session

	in, out uint64
	first   uint64 // number of the oldest message kept
	count   int
	ring    []Sent // message n is at n % len
	bytes   int    // of kept messages
}

// NewMemory returns a store that keeps up to maxBytes of messages.
func NewMemory(maxBytes int) *Memory { return &Memory{maxBytes: maxBytes, in: 1, out: 1, first: 1} }

// Bind implements Store.
func (s *Memory) Bind(f *Session) { s.session = f }

// Open implements Store.
func (s *Memory) Open(now Now, o Opening) {
	if o.Reset {
		s.Set(1, 1)
	}
	s.session.Opened(now)
}

// Closed implements Store.
func (s *Memory) Closed() {}

// Busy implements Store.
func (s *Memory) Busy() bool { return false }

// Here implements Store.
func (s *Memory) Here(bool) {}

// Next implements Store.
func (s *Memory) Next() (in, out uint64) { return s.in, s.out }

// Set sets both numbers, for tests and for an administrator. What was sent is forgotten.
func (s *Memory) Set(in, out uint64) {
	*s = Memory{maxBytes: s.maxBytes, session: s.session, in: in, out: out, first: out}
}

// Received implements Store.
func (s *Memory) Received(next uint64) { s.in = next }

// keptOverhead is counted for every message, in bytes.
const keptOverhead = 64

// Take implements Store.
func (s *Memory) Take(now Now, m Sent) {
	s.keep(m)
	s.session.Numbered(now, s.out-1, m)
}

func (s *Memory) keep(m Sent) {
	if !m.Kept {
		m.Body = nil
	}
	size := len(m.Body) + keptOverhead
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
	if m.Kept {
		m.Body = append(old[:0], m.Body...)
	}
	s.ring[(s.out-1)%uint64(len(s.ring))] = m
	s.count++
	s.bytes += size
}

// drop forgets the oldest message and returns its memory.
func (s *Memory) drop() []byte {
	m := &s.ring[s.first%uint64(len(s.ring))]
	old := m.Body
	m.Body = nil
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
func (s *Memory) Read(_ Now, n, to uint64) (at uint64, m Sent, found Found) {
	for at = max(n, s.first); at < s.out && at <= to && s.count > 0; at++ {
		if m := s.ring[at%uint64(len(s.ring))]; m.Kept {
			return at, m, FoundOne
		}
	}
	return 0, Sent{}, FoundNone
}
