package sink

import (
	"errors"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
)

// state is what is known of a partition, for metrics and status.
type state struct {
	mu        sync.Mutex
	open      bool
	openedAt  time.Time
	position  client.Position
	committed uint64
	heardAt   time.Time // when committed was learned
	behindAt  time.Time // since when committed is known to be beyond position; zero: it is not
	skip      uint64    // entries that were freed before the sink was there
	pipe      *pipe
	inWrite   *buffer
	oldest    int64 // of the entries of a write that failed

	batches, entries, orders, executions, bytes uint64

	failures int
	kind     string
	err      error
	errSince time.Time

	trouble      error // of a follower that gets nothing
	troubleSince time.Time
}

func (s *state) opened(at client.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.openedAt, s.position, s.oldest = true, time.Now(), at, 0
	s.committed = max(s.committed, at.Seq)
	s.noteBehind()
}

func (s *state) attach(x *pipe) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x == nil && s.pipe != nil { // what was waiting is read again
		if _, oldest := s.pipe.waiting(); s.oldest == 0 {
			s.oldest = oldest
		}
	}
	s.pipe, s.trouble = x, nil
	s.open = s.open && x != nil
}

// heard keeps the committed prefix that a replica reported; another one may be behind it.
func (s *state) heard(committed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.committed, s.heardAt = max(s.committed, committed), time.Now()
	s.noteBehind()
}

// follows says that the follower gets the log again.
func (s *state) follows() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = nil
}

// stuck keeps why a follower gets nothing, and reports whether there is a reason but silence of the grid.
func (s *state) stuck(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if silent(err) {
		s.trouble = nil
		return false
	}
	if s.trouble == nil {
		s.troubleSince = time.Now()
	}
	s.trouble = err
	return true
}

func (s *state) noteBehind() {
	switch {
	case s.committed <= s.position.Seq:
		s.behindAt = time.Time{}
	case s.behindAt.IsZero():
		s.behindAt = time.Now()
	}
}

func (s *state) skipped(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skip = n
}

func (s *state) writing(b *buffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inWrite = b
}

func (s *state) wrote(b *buffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inWrite, s.oldest = nil, 0
	s.position = b.batch.Through
	s.committed = max(s.committed, s.position.Seq)
	s.batches++
	s.entries += uint64(len(b.batch.Entries))
	s.orders += uint64(b.batch.Orders)
	s.executions += uint64(len(b.batch.Executions))
	s.bytes += uint64(b.batch.Bytes)
	s.mended()
	s.behindAt = time.Time{}
	s.noteBehind()
}

// settleTime is how long a writer has to be open, with nothing to write, until errors before it are over.
const settleTime = time.Second

// settle forgets errors that are over though nothing was written since: the batch that failed was durable.
func (s *state) settle(now time.Time) {
	if s.err == nil || !s.open || s.pipe == nil || s.inWrite != nil || now.Sub(s.openedAt) < settleTime {
		return
	}
	if _, oldest := s.pipe.waiting(); oldest == 0 {
		s.mended()
	}
}

func (s *state) mended() { s.failures, s.kind, s.err, s.errSince = 0, "", nil, time.Time{} }

// failed keeps an error, and returns how many there were in a row.
func (s *state) failed(kind string, err error) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(time.Now())
	if s.inWrite != nil {
		s.oldest = s.inWrite.oldest
	}
	s.open, s.inWrite, s.kind, s.err = false, nil, kind, err
	if s.failures++; s.errSince.IsZero() {
		s.errSince = time.Now()
	}
	return s.failures
}

// age is that of the oldest order, or other entry with news, that is not written.
func (s *state) age(now time.Time) time.Duration {
	oldest := s.oldest
	if s.inWrite != nil && s.inWrite.oldest != 0 {
		oldest = s.inWrite.oldest
	}
	if oldest == 0 && s.pipe != nil {
		_, oldest = s.pipe.waiting()
	}
	switch {
	case oldest != 0:
		return max(now.Sub(time.Unix(0, oldest)), 0)
	case s.pipe == nil && !s.behindAt.IsZero():
		return now.Sub(s.behindAt)
	}
	return 0
}

// silent reports whether an error of Follower.Next has no reason but the end of its time: nothing was committed.
func silent(err error) bool {
	var reasons interface{ Unwrap() []error }
	return !errors.As(err, &reasons) || len(reasons.Unwrap()) < 2
}
