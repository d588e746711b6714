package generator

import (
	"fmt"
	"sync"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/report"
)

// Stream gives a pipelining connection its requests and takes note of the
// answers, which come in the order of the requests. The clock is read once per
// batch of answers: what is sent because of them is sent at that time.
type Stream struct {
	next func() []byte
	from int64 // answers before this time are the warm-up's
	to   int64 // no request after this time
	left int64 // requests, if there is no end by time; -1 otherwise

	now  int64
	sent [maxDepth]int64 // ring of send times
	head uint64          // oldest unanswered
	tail uint64

	tally
	mu sync.Mutex // for NextShared and Record only
}

// tally is what one client measured.
type tally struct {
	orders  int64
	latency report.Histogram
}

// Next is the next request, valid until the next call; false when there are no
// more.
func (s *Stream) Next() ([]byte, bool) {
	if s.now == 0 {
		s.now = clock.Now()
	}
	if s.left == 0 || s.left < 0 && s.now >= s.to {
		return nil, false
	}
	if s.left > 0 {
		s.left--
	}
	s.sent[s.tail%maxDepth] = s.now
	s.tail++
	return s.next(), true
}

// Answered notes that the n oldest requests were answered now.
func (s *Stream) Answered(n int) {
	s.now = clock.Now()
	measured := s.left < 0 && s.now >= s.from && s.now < s.to
	for ; n > 0; n-- {
		if measured {
			s.latency.Record(s.now - s.sent[s.head%maxDepth])
			s.orders++
		}
		s.head++
	}
}

// pipe keeps up to depth requests of s unanswered: put appends one to what flush writes, and read waits for answers and
// returns how many came.
func (s *Stream) pipe(depth int, put func(request []byte) error, flush func() error, read func(unanswered int) (int, error)) error {
	unanswered := 0
	for more := true; ; {
		for more && unanswered < depth {
			m, ok := s.Next()
			if more = ok; !ok {
				break
			}
			if err := put(m); err != nil {
				return err
			}
			unanswered++
		}
		if unanswered == 0 {
			return nil
		}
		if err := flush(); err != nil {
			return err
		}
		n, err := read(unanswered)
		if err != nil {
			return err
		}
		if n > unanswered {
			return fmt.Errorf("%d answers to %d requests", n, unanswered)
		}
		s.Answered(n)
		unanswered -= n
	}
}

// NextShared is Next for goroutines that each wait for their own answer; dst is
// overwritten with the request. They call Record instead of Answered.
func (s *Stream) NextShared(dst []byte) (request []byte, sent int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock.Now()
	if now >= s.to {
		return nil, 0, false
	}
	return append(dst[:0], s.next()...), now, true
}

// Record notes the answer to a request of NextShared.
func (s *Stream) Record(sent int64) {
	now := clock.Now()
	if now < s.from || now >= s.to {
		return
	}
	s.mu.Lock()
	s.latency.Record(now - sent)
	s.orders++
	s.mu.Unlock()
}
