package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/placement"
)

// States of a plannedMove.
const (
	moveUnderWay = "under way"
	moveFirst    = "first" // it may begin at once
	moveThen     = "then"  // others precede it
)

// plannedMove is a move of a partition, under way or planned.
type plannedMove struct {
	Name      string  `json:"name"`
	Partition int32   `json:"partition"`
	From      []int32 `json:"from"` // shards that give up their copies
	To        int32   `json:"to"`
	// Bytes that its orders take in memory, each copy; absent if unknown.
	Bytes *int64 `json:"bytes,omitempty"`
	// Seconds of copying at the rate; absent for one under way, and without Bytes.
	Seconds *float64 `json:"seconds,omitempty"`
	State   string   `json:"state"`
}

// rebalancePlan is the operator's plan for the present records.
type rebalancePlan struct {
	Grid   string        `json:"grid"`
	Shards int32         `json:"shards"` // spec.shards, or the number to compare with
	Moves  []plannedMove `json:"moves"`
	// Waiting is why partitions that should move may not.
	Waiting []string `json:"waiting,omitempty"`
	// PartitionsByShard is the final number of each shard.
	PartitionsByShard []int `json:"partitionsByShard"`
	// BytesPerSecond that one move copies at most, to all its new copies together.
	BytesPerSecond int64 `json:"bytesPerSecond"`
	// Seconds that all planned moves take together; absent if a size is unknown.
	Seconds *float64 `json:"seconds,omitempty"`
	// HeldUntil is when spec.rebalance.window opens, while moves wait for it.
	HeldUntil *metav1.Time `json:"heldUntil,omitempty"`
	// Requested is the time of the request to start moves, the value of the annotation; absent without one.
	Requested string `json:"requested,omitempty"`
}

// planner simulates plans.
type planner struct {
	shards     []placement.Shard
	partitions []placement.Partition
	limits     placement.Limits
}

// planOf plans until nothing is left to move. shards: as if that were spec.shards; 0: as it is.
func planOf(grid *api.OrderGrid, parts []api.GridPartition, answers map[string]answer, shards int32) *rebalancePlan {
	if shards == 0 {
		shards = grid.Spec.Shards
	}
	rate, concurrent := moveRate(grid)
	plan := &rebalancePlan{Grid: grid.Name, Shards: shards, Moves: []plannedMove{}, BytesPerSecond: rate, HeldUntil: grid.Status.MovesHeldUntil}
	pl := newPlanner(parts, shards, concurrent)
	byNumber, sizes := map[int]*api.GridPartition{}, map[int]*int64{}
	for i := range parts {
		p, q := &parts[i], &pl.partitions[i]
		byNumber[q.ID], sizes[q.ID] = p, bytesOf(p, answers)
		if sizes[q.ID] != nil {
			q.Bytes = *sizes[q.ID]
		}
		if q.Moving {
			plan.Moves = append(plan.Moves, plannedMove{Name: p.Name, Partition: p.Spec.Partition, From: comesFrom(p), To: p.Spec.Shard, Bytes: sizes[q.ID], State: moveUnderWay})
		}
	}
	total, known := 0.0, true
	for turn := 0; turn <= 2*len(parts); turn++ {
		next := placement.Next(pl.shards, pl.partitions, pl.limits)
		if turn == 0 {
			plan.Waiting = next.Waiting
		}
		slowest := 0.0
		for _, m := range next.Begin {
			p := byNumber[m.Partition]
			move := plannedMove{Name: p.Name, Partition: p.Spec.Partition, From: []int32{int32(m.From)}, To: int32(m.To), Bytes: sizes[m.Partition], State: moveThen}
			if turn == 0 {
				move.State = moveFirst
			}
			if move.Bytes != nil {
				move.Seconds = new(float64(*move.Bytes) * float64(p.Spec.Replicas) / float64(rate))
				slowest = max(slowest, *move.Seconds)
			} else {
				known = false
			}
			plan.Moves = append(plan.Moves, move)
		}
		total += slowest
		if !pl.carryOut(next.Begin) {
			break
		}
	}
	if known {
		plan.Seconds = &total
	}
	plan.PartitionsByShard = pl.counts()
	return plan
}

// newPlanner starts from the records. Every shard is assumed ready.
func newPlanner(parts []api.GridPartition, shards int32, concurrent int) *planner {
	pl := &planner{limits: placement.Limits{Concurrent: concurrent}}
	there := shards // and those above that have a partition
	for i := range parts {
		p := &parts[i]
		q := placement.Partition{ID: int(p.Spec.Partition), Home: int(p.Spec.Shard), Moving: len(comesFrom(p)) > 0}
		for _, pod := range inSyncPods(p) {
			if shard, ok := podShard(p, pod); ok && !slices.Contains(q.Held, int(shard)) {
				q.Held = append(q.Held, int(shard))
				there = max(there, shard+1)
			}
		}
		slices.Sort(q.Held)
		there = max(there, p.Spec.Shard+1)
		switch {
		case p.Status.Primary == nil:
			q.Stays = "it has no primary"
		case len(p.Status.InSync) < int(p.Spec.Replicas):
			q.Stays = fmt.Sprintf("it has %d of %d copies", len(p.Status.InSync), p.Spec.Replicas)
		}
		pl.partitions = append(pl.partitions, q)
	}
	for i := range there {
		pl.shards = append(pl.shards, placement.Shard{ID: int(i), Leaves: i >= shards})
	}
	return pl
}

// carryOut completes moves under way and begins new ones; false if there was neither.
func (pl *planner) carryOut(begin []placement.Move) bool {
	went := len(begin) > 0
	for i := range pl.partitions {
		q := &pl.partitions[i]
		if at := slices.IndexFunc(begin, func(m placement.Move) bool { return m.Partition == q.ID }); at >= 0 {
			q.Home, q.Moving = begin[at].To, true
		}
		if q.Moving {
			q.Moving, q.Held, went = false, []int{q.Home}, true
		}
	}
	return went
}

func (pl *planner) counts() []int {
	n := make([]int, len(pl.shards))
	for i := range pl.partitions {
		n[pl.partitions[i].Home]++
	}
	for len(n) > 0 && pl.shards[len(n)-1].Leaves && n[len(n)-1] == 0 {
		n = n[:len(n)-1]
	}
	return n
}

// moveRate is how many bytes a second one move copies at most, and how many moves there are at a time.
func moveRate(grid *api.OrderGrid) (rate int64, concurrent int) {
	rate, concurrent = grid.Spec.Replication.LearnerRate.Value(), 2
	if r := grid.Spec.Rebalance; r != nil {
		if r.MaxConcurrent > 0 {
			concurrent = int(r.MaxConcurrent)
		}
		if r.Bandwidth != nil {
			rate = min(rate, r.Bandwidth.Value()/int64(concurrent))
		}
	}
	return max(1, rate), concurrent
}

// bytesOf is the size of a partition according to its primary, nil if unknown.
func bytesOf(p *api.GridPartition, answers map[string]answer) *int64 {
	node := answers[primaryPod(p)].node
	if node == nil {
		return nil
	}
	part := node.Find(p.Name)
	if part == nil || part.Bytes < 0 {
		return nil
	}
	return &part.Bytes
}

// podShard is the shard of a pod of the partition's grid, by its name.
func podShard(p *api.GridPartition, pod string) (int32, bool) {
	rest, ok := strings.CutPrefix(pod, p.Spec.GridRef.Name+"-s")
	number, _, ok2 := strings.Cut(rest, "-")
	n, err := strconv.ParseUint(number, 10, 8)
	return int32(n), ok && ok2 && err == nil
}

// summary is a plan in one line.
func (p *rebalancePlan) summary() string {
	var counts []string
	for _, n := range p.PartitionsByShard {
		counts = append(counts, fmt.Sprint(n))
	}
	spread := "partitions by shard: " + strings.Join(counts, ", ")
	switch {
	case len(p.Moves) == 0 && len(p.Waiting) == 0:
		return fmt.Sprintf("%s: nothing has to move; %s", p.Grid, spread)
	case len(p.Moves) == 0:
		return fmt.Sprintf("%s: nothing may move now; %s", p.Grid, spread) + p.request()
	}
	size, known := int64(0), true
	for i := range p.Moves {
		if b := p.Moves[i].Bytes; b != nil {
			size += *b
		} else {
			known = false
		}
	}
	text := fmt.Sprintf("%s: %d to move", p.Grid, len(p.Moves))
	if known {
		text += fmt.Sprintf(", %s", sizeText(&size))
	}
	if p.Seconds != nil && *p.Seconds > 0 {
		text += fmt.Sprintf(", about %s at %s/s for each", secondsText(p.Seconds), sizeText(&p.BytesPerSecond))
	}
	return text + "; after that, " + spread + p.request()
}

func (p *rebalancePlan) request() string {
	switch {
	case p.Requested != "":
		return "; requested to begin now"
	case p.HeldUntil != nil:
		return "; held until " + p.HeldUntil.UTC().Format(time.RFC3339) + " by spec.rebalance.window"
	}
	return ""
}
