package robustness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/robustness/faults"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/traffic"
)

// Env is the environment of a repetition.
type Env struct {
	Options
	target  faults.Target
	traffic *traffic.Traffic
	watch   *client.Client // asks for the partition table; sends no orders
	h       *history.History
	rng     *rand.Rand
}

// row is a partition as the nodes themselves see it.
type row = client.PartitionInfo

// table asks the grid for the present roles.
func (e *Env) table(ctx context.Context) ([]row, error) {
	ask, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := e.watch.Refresh(ask)
	return e.watch.Table(), err
}

func inSync(r row) (n int) {
	for _, m := range r.Members {
		if m.InSync {
			n++
		}
	}
	return n
}

func podOf(m client.Member) string {
	pod, _, err := wire.ParseMemberID(m.ID)
	if err != nil {
		return ""
	}
	return pod
}

// nodeAt finds the process at an address.
func (e *Env) nodeAt(ctx context.Context, address string) (faults.Node, error) {
	nodes, err := e.target.Nodes(ctx)
	if err != nil {
		return faults.Node{}, err
	}
	for _, n := range nodes {
		if n.Address == address {
			return n, nil
		}
	}
	return faults.Node{}, fmt.Errorf("no process of the grid is at %s; there are %v", address, nodes)
}

const poll = 10 * time.Millisecond

// until polls until done returns true; the error has what was missing.
func until(ctx context.Context, limit time.Duration, what string, done func() (bool, string)) error {
	deadline := time.Now().Add(limit)
	for {
		ok, missing := done()
		if ok {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %s: %s", what, limit, missing)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
}

// redundant waits until every partition has a primary and all its copies in
// sync, none of them one of gone.
func (e *Env) redundant(ctx context.Context, gone map[string]bool) error {
	return until(ctx, e.Patience, "full redundancy", func() (bool, string) {
		rows, err := e.table(ctx)
		if err != nil {
			return false, err.Error()
		}
		for _, r := range rows {
			if n := inSync(r); n != e.target.Replicas() || r.Primary.ID == "" {
				return false, fmt.Sprintf("%s has %d copies in sync at epoch %d, wanted %d", r.ID, n, r.Epoch, e.target.Replicas())
			}
			for _, m := range r.Members {
				if m.InSync && gone[m.ID] {
					return false, fmt.Sprintf("%s still counts on %s", r.ID, m.ID)
				}
			}
		}
		return len(rows) > 0, "no partition is known"
	})
}

// served waits until every session of the partitions has had an order
// acknowledged that was created after t.
func (e *Env) served(ctx context.Context, partitions []wire.PartitionID, t int64) error {
	return until(ctx, e.Patience, "service", func() (bool, string) {
		s := e.traffic.Served(partitions)
		return s > t, fmt.Sprintf("a session waits since %s", time.Duration(clock.Now()-s).Round(time.Millisecond))
	})
}

// members are the ids of a pod's members in all partitions.
func members(rows []row, pod string) map[string]bool {
	out := map[string]bool{}
	for _, r := range rows {
		for _, m := range r.Members {
			if podOf(m) == pod {
				out[m.ID] = true
			}
		}
	}
	return out
}

// ledBy are the partitions whose primary is at the address, backedBy those of
// which it holds another copy that is in sync.
func ledBy(rows []row, address string) (out []wire.PartitionID) {
	for _, r := range rows {
		if r.Primary.Address == address {
			out = append(out, r.ID)
		}
	}
	return out
}

func backedBy(rows []row, address string) (out []wire.PartitionID) {
	for _, r := range rows {
		for _, m := range r.Members {
			if m.InSync && m.Address == address && m.ID != r.Primary.ID {
				out = append(out, r.ID)
			}
		}
	}
	return out
}

// victim of a fault.
type victim struct {
	node       faults.Node
	rows       []row
	partitions []wire.PartitionID // whose service is judged
	role       string
}

func (v victim) String() string {
	return fmt.Sprintf("%s (%s of %v)", v.node.Pod, v.role, v.partitions)
}

// primary picks the primary of a partition by the seed.
func (e *Env) primary(ctx context.Context) (victim, error) {
	rows, err := e.table(ctx)
	if err != nil {
		return victim{}, err
	}
	r := rows[e.rng.IntN(len(rows))]
	n, err := e.nodeAt(ctx, r.Primary.Address)
	return victim{node: n, rows: rows, partitions: ledBy(rows, n.Address), role: "primary"}, err
}

// backup picks an in-sync copy that is not primary.
func (e *Env) backup(ctx context.Context) (victim, error) {
	rows, err := e.table(ctx)
	if err != nil {
		return victim{}, err
	}
	r := rows[e.rng.IntN(len(rows))]
	for _, m := range r.Members {
		if m.InSync && m.ID != r.Primary.ID {
			n, err := e.nodeAt(ctx, m.Address)
			return victim{node: n, rows: rows, partitions: backedBy(rows, n.Address), role: "backup"}, err
		}
	}
	return victim{}, fmt.Errorf("%s has no backup", r.ID)
}

// calmDown waits for redundancy, then lets a calm time pass, which is what the
// repetition is compared with.
func (e *Env) calmDown(ctx context.Context) (ready int64, err error) {
	if err := e.redundant(ctx, nil); err != nil {
		return 0, err
	}
	if err := e.watchNodes(ctx); err != nil {
		return 0, err
	}
	if err := clock.Wait(ctx, 300*time.Millisecond); err != nil { // what the wait itself may have disturbed
		return 0, err
	}
	ready = clock.Now()
	jitter := time.Duration(e.rng.Int64N(int64(100 * time.Millisecond)))
	if err := clock.Wait(ctx, e.Calm+jitter); err != nil {
		return 0, err
	}
	e.h.Calm = append(e.h.Calm, history.Span{From: ready, To: clock.Now()})
	e.traffic.ResetGap()
	return ready, nil
}

// watchNodes puts direct probers at all nodes.
func (e *Env) watchNodes(ctx context.Context) error {
	nodes, err := e.target.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		e.traffic.Watch(history.Node{Pod: n.Pod, Address: n.Address})
	}
	return nil
}

// all partitions of the grid.
func (e *Env) all() []wire.PartitionID { return slices.Clone(e.h.Partitions) }

// everything is all partitions, for any victim.
func (e *Env) everything(victim) []wire.PartitionID { return e.all() }

// begin starts a repetition. end is always called, also when the repetition
// fails in between.
func (e *Env) begin(n int, ready int64, what string, pod string, partitions []wire.PartitionID) *history.Rep {
	e.h.Reps = append(e.h.Reps, history.Rep{Number: n, What: what, Pod: pod, Partitions: partitions, Ready: ready, From: clock.Now()})
	return &e.h.Reps[len(e.h.Reps)-1]
}

// inject does the fault and notes when.
func (e *Env) inject(rep *history.Rep, fault func() error) error {
	rep.From = clock.Now()
	err := fault()
	rep.To = clock.Now()
	return err
}

// serviceBack waits for service.
func (e *Env) serviceBack(ctx context.Context, rep *history.Rep) error {
	if err := e.served(ctx, rep.Partitions, rep.To); err != nil {
		return err
	}
	rep.Served = clock.Now()
	return nil
}

// redundancyBack waits for redundancy without the members of gone.
func (e *Env) redundancyBack(ctx context.Context, rep *history.Rep, gone map[string]bool) error {
	if err := e.redundant(ctx, gone); err != nil {
		return err
	}
	rep.Redundant = clock.Now()
	return nil
}
