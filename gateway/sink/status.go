package sink

import (
	"fmt"
	"time"
)

// Status of a sink, as /status has it.
type Status struct {
	Grid       string            `json:"grid"`
	Sink       string            `json:"sink"`
	Ready      bool              `json:"ready"` // every partition was opened, and none fails
	Partitions []PartitionStatus `json:"partitions"`
}

// PartitionStatus is the status of one partition.
type PartitionStatus struct {
	Partition      string         `json:"partition"`
	Open           bool           `json:"open"` // a writer is open
	Position       PositionStatus `json:"position"`
	CommittedSeq   uint64         `json:"committedSeq"`
	LagEntries     uint64         `json:"lagEntries"`
	LagSeconds     float64        `json:"lagSeconds"`
	BufferedBytes  int            `json:"bufferedBytes"`
	SkippedEntries uint64         `json:"skippedEntries,omitempty"`
	Batches        uint64         `json:"batches"`
	Entries        uint64         `json:"entries"`
	Orders         uint64         `json:"orders"`
	Executions     uint64         `json:"executions,omitempty"`
	Bytes          uint64         `json:"bytes"`
	Error          *ErrorStatus   `json:"error,omitempty"` // until the next batch is written, or there is none to write
}

// PositionStatus is the last entry that the target holds.
type PositionStatus struct {
	Seq     uint64 `json:"seq"`
	Hash    string `json:"hash"`
	Lineage uint32 `json:"lineage"`
}

// ErrorStatus is the last error of a partition.
type ErrorStatus struct {
	Kind     string    `json:"kind"`
	Text     string    `json:"text"`
	Since    time.Time `json:"since"`
	Failures int       `json:"failures"` // in a row
}

// now returns the state as status. It is the one place that reads it.
func (s *state) now(now time.Time) PartitionStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(now)
	o := PartitionStatus{
		Open:         s.open,
		Position:     PositionStatus{s.position.Seq, fmt.Sprintf("%016x", s.position.Hash), s.position.Lineage},
		CommittedSeq: s.committed, LagEntries: s.committed - min(s.position.Seq, s.committed), LagSeconds: s.age(now).Seconds(), SkippedEntries: s.skip,
		Batches: s.batches, Entries: s.entries, Orders: s.orders, Executions: s.executions, Bytes: s.bytes,
	}
	if s.pipe != nil {
		o.BufferedBytes, _ = s.pipe.waiting()
	}
	if s.inWrite != nil {
		o.BufferedBytes += s.inWrite.batch.Bytes
	}
	if s.err != nil {
		o.Error = &ErrorStatus{Kind: s.kind, Text: s.err.Error(), Since: s.errSince, Failures: s.failures}
	}
	if s.err == nil && s.trouble != nil {
		o.Error = &ErrorStatus{Kind: kindFollow, Text: s.trouble.Error(), Since: s.troubleSince, Failures: 1}
	}
	return o
}

// Status returns the present status.
func (r *Runner) Status() Status {
	now := time.Now()
	out := Status{Grid: r.cfg.Grid, Sink: r.cfg.Sink, Ready: true, Partitions: []PartitionStatus{}}
	for _, p := range r.parts {
		s := p.state.now(now)
		s.Partition = p.id.String()
		out.Ready = out.Ready && s.Open && s.Error == nil
		out.Partitions = append(out.Partitions, s)
	}
	return out
}
