package ordergrid

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/placement"
)

// spec.rebalance bounds moves: how many are under way, how fast they copy, and when they begin. It does not hold a
// partition that is sent back to its copies.

const (
	defaultConcurrent = 2
	leastLearnerRate  = 64 << 10 // bytes a second, as GridPartition.spec.learnerRate allows
)

// concurrentMoves is how many partitions of a grid may move at a time.
func concurrentMoves(grid *api.OrderGrid) int {
	if s := grid.Spec.Rebalance; s != nil && s.MaxConcurrent > 0 {
		return int(s.MaxConcurrent)
	}
	return defaultConcurrent
}

// learnerRate is how many bytes a second the primary of a partition with that home may send to pods that catch up; 0:
// as many as the node allows. Only a partition that moves with all its copies is limited: a missing copy is made at
// once.
func (o *observation) learnerRate(p *api.GridPartition, home int32) int64 {
	s := o.grid.Spec.Rebalance
	if s == nil || s.Bandwidth == nil || home == p.Spec.Shard && !moves(o.grid, p) || o.there(p) < p.Spec.Replicas {
		return 0
	}
	return max(s.Bandwidth.Value()/int64(concurrentMoves(o.grid)), leastLearnerRate)
}

// moveHold is what holds moves that could begin, besides the objective.
type moveHold struct {
	until         time.Time // spec.rebalance.window opens; zero: it does not hold them
	text          string    // message about that, or the annotation
	windowProblem string    // why its opening is unknown
	asked         string    // the annotation that starts moves outside it, until every partition is where it belongs
	settled       bool      // all are
}

// keepToWindow holds moves outside spec.rebalance.window, unless the annotation requests them now.
func (h *moveHold) keepToWindow(grid *api.OrderGrid, plan placement.Plan, now time.Time) {
	var refused string
	h.asked, refused = rebalanceAsked(grid)
	if grid.Spec.Rebalance == nil || grid.Spec.Rebalance.Window == nil {
		return
	}
	open, next, err := windowAt(grid.Spec.Rebalance.Window, now)
	if err != nil {
		h.windowProblem = err.Error()
	}
	left := len(plan.Queued) > 0 || slices.ContainsFunc(plan.Begin, forward)
	switch {
	case open || !left:
	case h.asked != "":
		h.text = "they begin outside spec.rebalance.window, as requested at " + h.asked
	case err != nil:
		h.text = "none begins, because the opening of spec.rebalance.window is unknown"
	default:
		h.until = next
		h.text = "moves begin in spec.rebalance.window, which opens on " + next.Format("Monday 2006-01-02 at 15:04 MST") + refused
	}
}

// holds reports whether no partition may begin to move now.
func (h *moveHold) holds() bool {
	return h.asked == "" && (!h.until.IsZero() || h.windowProblem != "")
}

// forward reports whether a move is one that spec.rebalance bounds.
func forward(m placement.Move) bool { return !m.Back }

// rebalanceAsked is the value of the annotation that requests moves now, "" if there is none or the request is done;
// and why another value is invalid, as the end of a sentence.
func rebalanceAsked(grid *api.OrderGrid) (value, refused string) {
	value = grid.Annotations[api.AnnotationRebalanceNow]
	if value == "" || value == grid.Status.LastHandledRebalance {
		return "", ""
	}
	if _, err := time.Parse(time.RFC3339, value); err != nil || len(value) > 64 {
		return "", fmt.Sprintf("; annotation %s has %.64q, which is not a time such as 2026-11-23T22:00:00Z, and is ignored", api.AnnotationRebalanceNow, value)
	}
	return value, ""
}

// begunMove is a move that this operator has begun.
type begunMove struct {
	to    int32
	at    time.Time
	bytes int64
}

// begin sends partitions to other shards. Those that have to wait are counted.
func (r *run) begin(o *observation, plan placement.Plan, open bool, now time.Time) {
	s, m := &r.scale, &r.remembered.scale
	for _, move := range plan.Begin {
		if forward(move) && !open {
			s.queued++
			continue
		}
		n := int32(move.Partition)
		s.homes[n] = int32(move.To)
		s.begun = append(s.begun, n)
		if m.begun == nil {
			m.begun = map[int32]begunMove{}
		}
		m.begun[n] = begunMove{int32(move.To), now, o.bytes[n]}
	}
}

// weigh asks the primaries for the size of their partitions, so that the smallest of those that may move do. The plan
// ignores nodes that do not answer.
func (r *run) weigh(ctx context.Context, o *observation) {
	answers := map[string]*answer{}
	for i := range o.partitions {
		if primary := o.partitions[i].Status.Primary; readyIn(o.pods, primary) {
			answers[primary.PodName] = &answer{pod: podNamed(o.pods, primary.PodName)}
		}
	}
	r.ask(ctx, r.grid, answers)
	o.bytes = map[int32]int64{}
	for i := range o.partitions {
		p := &o.partitions[i]
		if p.Status.Primary == nil {
			continue
		}
		a := answers[p.Status.Primary.PodName]
		if a == nil || a.node == nil {
			continue
		}
		if n := a.node.Find(p.Name); n != nil {
			o.bytes[p.Spec.Partition] = max(n.Bytes, 0)
		}
	}
}

// timed sets the beginning and size of moves: from status, from this operator's memory, or now.
func (m *scaleMemory) timed(moves, before []api.PartitionMove, now time.Time) []api.PartitionMove {
	for i := range moves {
		move := &moves[i]
		start := metav1.NewTime(now.Truncate(time.Second))
		move.StartTime = &start
		if b, ok := m.begun[move.Partition]; ok && b.to == move.To {
			start, move.Bytes = metav1.NewTime(b.at.Truncate(time.Second)), b.bytes
		}
		if k := slices.IndexFunc(before, func(b api.PartitionMove) bool { return b.Partition == move.Partition && b.To == move.To }); k >= 0 && before[k].StartTime != nil {
			move.StartTime, move.Bytes = before[k].StartTime, before[k].Bytes
		}
	}
	return moves
}

// rebalanceStatus is the status of moves.
func (o *observation) rebalanceStatus(status *api.OrderGridStatus, m *scaleMemory, now time.Time) {
	status.Moves, status.MovesLeft = m.timed(o.moving(), status.Moves, now), int32(o.scale.queued)
	status.MovesHeldUntil = nil
	if !o.scale.until.IsZero() {
		until := metav1.NewTime(o.scale.until)
		status.MovesHeldUntil = &until
	}
	if o.scale.asked != "" && o.scale.settled {
		status.LastHandledRebalance = o.scale.asked
	}
}
