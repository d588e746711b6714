package link

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
)

// state is what is known of a partition, for metrics and status.
type state struct {
	mu        sync.Mutex
	queue     *queue // of the session; nil: the link is not open
	standby   string // address of the node that takes the entries
	stored    client.Position
	held      client.Position // what the standby has committed
	source    uint64          // what the source has committed
	heardAt   time.Time       // when that was learned
	behindAt  time.Time       // since when the standby is known to lack entries; zero: it does not
	opens     uint64
	bytes     uint64
	frames    uint64
	errors    uint64
	failures  int // in a row
	permanent bool
	err       error
	errSince  time.Time
}

func (s *state) opened(q *queue, l client.LinkState, standby string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.standby = q, standby
	s.opens++
	s.stored, s.held = l.Stored, l.Committed
	s.source = max(s.source, l.Stored.Seq)
	s.settle()
}

func (s *state) closed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = nil
}

// failed returns how many sessions have failed in a row; one that lasted begins anew.
func (s *state) failed(err error, permanent, lasted bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lasted {
		s.failures = 0
	}
	if s.err == nil {
		s.errSince = time.Now()
	}
	s.failures++
	s.errors++
	s.err, s.permanent = err, permanent
	return s.failures
}

// heard keeps what the source has committed; another replica may know of less.
func (s *state) heard(committed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.source, s.heardAt = max(s.source, committed), time.Now()
	s.settle()
}

func (s *state) sent(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames++
	s.bytes += uint64(n)
}

func (s *state) committed(l client.LinkState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil && (l.Committed.Seq > s.held.Seq || s.source <= l.Committed.Seq) {
		s.err, s.permanent, s.failures = nil, false, 0
	}
	s.stored, s.held = l.Stored, l.Committed
	s.settle()
}

// settle keeps since when the standby lacks something.
func (s *state) settle() {
	switch behind := s.source > s.held.Seq; {
	case !behind:
		s.behindAt = time.Time{}
	case s.behindAt.IsZero():
		s.behindAt = time.Now()
	}
}

// Status is a Runner as /status has it.
type Status struct {
	Source     string            `json:"source"`
	Target     string            `json:"target"`
	Reader     string            `json:"reader"`
	Ready      bool              `json:"ready"`
	Partitions []PartitionStatus `json:"partitions"`
}

// PartitionStatus is a partition's part.
type PartitionStatus struct {
	Partition    string       `json:"partition"`
	Open         bool         `json:"open"`
	Standby      string       `json:"standby,omitempty"` // address of the node that takes the entries
	CommittedSeq uint64       `json:"committedSeq"`      // at the source
	StoredSeq    uint64       `json:"storedSeq"`         // at the standby
	HeldSeq      uint64       `json:"heldSeq"`           // committed at the standby
	HeldHash     string       `json:"heldHash"`
	LagEntries   uint64       `json:"lagEntries"`
	LagBytes     int          `json:"lagBytes"` // of entries that were read and are not committed at the standby
	LagSeconds   float64      `json:"lagSeconds"`
	Opens        uint64       `json:"opens"`
	Frames       uint64       `json:"frames"`
	Bytes        uint64       `json:"bytes"`
	Errors       uint64       `json:"errors"`
	Error        *ErrorStatus `json:"error,omitempty"` // until the standby commits again, or holds everything
}

// ErrorStatus is the last error of a partition.
type ErrorStatus struct {
	Permanent bool      `json:"permanent"` // an administrator has to act
	Text      string    `json:"text"`
	Since     time.Time `json:"since"`
	Failures  int       `json:"failures"` // in a row
}

func (s *state) now(now time.Time) PartitionStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := PartitionStatus{
		Open: s.queue != nil, Standby: s.standby, CommittedSeq: s.source, StoredSeq: s.stored.Seq, HeldSeq: s.held.Seq, HeldHash: fmt.Sprintf("%016x", s.held.Hash),
		LagEntries: s.source - min(s.held.Seq, s.source), Opens: s.opens, Frames: s.frames, Bytes: s.bytes, Errors: s.errors,
	}
	if s.queue != nil {
		bytes, age := s.queue.lag(now)
		o.LagBytes, o.LagSeconds = bytes, age.Seconds()
	}
	if !s.behindAt.IsZero() && o.LagSeconds == 0 {
		o.LagSeconds = now.Sub(s.behindAt).Seconds()
	}
	if s.err != nil {
		o.Error = &ErrorStatus{Permanent: s.permanent, Text: s.err.Error(), Since: s.errSince, Failures: s.failures}
	}
	return o
}

// Status returns the present status.
func (r *Runner) Status() Status {
	now := time.Now()
	out := Status{Source: r.cfg.SourceName, Target: r.cfg.TargetName, Reader: r.cfg.Reader, Ready: true, Partitions: []PartitionStatus{}}
	for _, p := range r.parts {
		s := p.state.now(now)
		s.Partition = p.id.String()
		out.Ready = out.Ready && s.Open && s.Error == nil
		out.Partitions = append(out.Partitions, s)
	}
	return out
}

const (
	surveyEvery = 2 * time.Second
	surveyLimit = 5 * time.Second
)

// survey learns where the source's log ends while nothing is read of it, because the standby is down or slow: the lag
// grows all the same.
func (p *partition) survey(ctx context.Context) {
	for tick := time.NewTicker(surveyEvery); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return
		}
		if p.state.unheard() {
			p.askEnd(ctx)
		}
	}
}

func (s *state) unheard() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (s.queue == nil || s.source > s.held.Seq) && time.Since(s.heardAt) >= surveyEvery
}

// askEnd follows the end of the log until something is committed, without a name: that is the session's.
func (p *partition) askEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, surveyLimit)
	defer cancel()
	f, err := p.r.cfg.Source.Follow(ctx, client.FollowOptions{Partition: p.id, AtEnd: true, Window: 64 << 10})
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // it never fails
	if b, err := f.Next(ctx); err == nil {
		p.state.heard(b.CommitSeq)
	}
}
