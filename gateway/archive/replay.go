package archive

import (
	"context"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// SessionWindow is how many replies a node keeps for a session. The digest covers them.
const SessionWindow = 512

// Replayed is what a partition is after the entries of its archive.
type Replayed struct {
	Partition string     `json:"partition"`
	Seq       uint64     `json:"seq"` // the recovery point: the last entry, its hash, and its receive time
	Hash      string     `json:"hash"`
	Time      *time.Time `json:"time,omitempty"`
	Epoch     uint32     `json:"epoch"`
	Lineage   uint64     `json:"lineage"`
	Orders    uint64     `json:"orders"`
	Sessions  int        `json:"sessions"` // that are open, with the replies that are kept
	Bytes     uint64     `json:"bytes"`    // of the entries, as a store takes them
	Digest    string     `json:"digest"`   // of the state, as copies compare it
	Problem   *Problem   `json:"problem,omitempty"`

	Machine machine.Machine `json:"-"`
}

// Replay applies the entries of a partition as a node does. Every entry is checked: an archive that it passes can be
// restored. A problem is in the result, which is then of the entries before it.
func (r *Reader) Replay(ctx context.Context, p wire.PartitionID) (*Replayed, error) {
	s := &Replayed{Partition: p.String()}
	s.Machine.Begin(SessionWindow, 0)
	problem := func(seq uint64, format string, args ...any) error {
		return &Problem{First: seq, Last: seq, What: fmt.Sprintf(format, args...)}
	}
	var hash uint64
	var last time.Time
	err := r.Entries(ctx, p, 0, 0, func(e *client.LogEntry) error {
		switch {
		case e.Seq == s.Seq+1:
		case s.Seq == 0:
			return problem(e.Seq, "the archive begins with it, allowed: with entry 1; it was begun when entries before were freed, so sessions and orders before are not in it")
		default:
			return problem(e.Seq, "it follows entry %d", s.Seq)
		}
		payload := order.Payload(e.Bytes)
		if err := s.Machine.Check(&e.Entry, payload); err != nil {
			return problem(e.Seq, "%v", err)
		}
		s.Machine.Apply(&e.Entry, payload)
		if e.Kind.IsOrder() {
			s.Orders++
		}
		s.Bytes += uint64(order.Padded(len(e.Bytes)))
		s.Seq, s.Epoch, hash, last = e.Seq, e.Epoch, order.Hash(e.Bytes), time.Unix(0, e.TimeNs).UTC()
		return nil
	})
	if problem, ok := err.(*Problem); ok { //nolint:errorlint // walk returns it as it is
		s.Problem = problem
	} else if err != nil {
		return nil, fmt.Errorf("replay %s of %s: %w", p, r.store, err)
	}
	if s.Seq > 0 {
		s.Time = &last
	}
	s.Hash, s.Digest = fmt.Sprintf("%016x", hash), fmt.Sprintf("%016x", s.Machine.Digest())
	s.Lineage, s.Sessions = s.Machine.Orders.Lineage, s.Machine.Sessions.Open()
	return s, nil
}
