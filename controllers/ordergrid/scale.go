package ordergrid

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/grid-node/placement"
)

// Shards are added and removed while a grid runs, and the partitions stay the same: they move. A record names the shard
// that is to hold its partition (its home), and the grid nodes move it there. So a shard that is added gets partitions
// once its pods are ready, one that is removed gives its own away, and is deleted when no record names it any more. All
// of that is in the records: any operator can continue. Which partition moves when is in moves.go.

// scale is the progress of a grid towards the number of shards in spec.shards.
type scale struct {
	held // moves that may begin are held, or wait
	moveHold
	wanted   int32    // spec.shards
	shards   int32    // that this pass handles: those, and the ones above that have a partition, or get one
	homes    []int32  // by partition: the home to write into its record
	begun    []int32  // partitions that this pass moves
	queued   int      // moves that come after those under way
	removing []int32  // shards above those with objects left, the highest first
	waitsFor []string // by shard: what its removal waits for
	late     string   // what has made no progress for longer than spec.updateStrategy.progressDeadline
}

// planScale decides which shards there are, from the records. A partition without one gets its initial home.
func planScale(grid *api.OrderGrid, records []api.GridPartition) *scale {
	s := &scale{wanted: grid.Spec.Shards, shards: grid.Spec.Shards, homes: make([]int32, grid.Spec.Partitions), waitsFor: make([]string, maxShards)}
	for n := range s.homes {
		s.homes[n] = int32(placement.Home(n, int(grid.Spec.Shards)))
	}
	for i := range records {
		p := &records[i]
		if int(p.Spec.Partition) < len(s.homes) {
			s.homes[p.Spec.Partition] = p.Spec.Shard
		}
		for _, shard := range append(heldBy(grid, p), p.Spec.Shard) {
			s.shards = max(s.shards, shard+1)
		}
	}
	return s
}

// maxShards is the API server's limit.
const maxShards = 256

// working is the grid as this pass handles it: with the present shards, whatever the spec.
func (s *scale) working(grid *api.OrderGrid) *api.OrderGrid {
	if grid.Spec.Shards != s.shards {
		grid = grid.DeepCopy()
		grid.Spec.Shards = s.shards
	}
	return grid
}

// leaves reports whether a shard is being removed.
func (s *scale) leaves(shard int32) bool { return shard >= s.wanted }

// shardOf is the shard of a pod of the grid, by its name.
func shardOf(grid *api.OrderGrid, pod string) (int32, bool) {
	rest, ok := strings.CutPrefix(pod, grid.Name+"-s")
	number, _, ok2 := strings.Cut(rest, "-")
	n, err := strconv.ParseUint(number, 10, 8)
	return int32(n), ok && ok2 && err == nil
}

// heldBy are the shards with a pod that is in sync in the partition, in rising order.
func heldBy(grid *api.OrderGrid, p *api.GridPartition) (shards []int32) {
	for i := range p.Status.InSync {
		if shard, ok := shardOf(grid, p.Status.InSync[i].PodName); ok {
			shards = append(shards, shard)
		}
	}
	slices.Sort(shards)
	return slices.Compact(shards)
}

// holds reports whether a pod of the shard is in sync in the partition.
func holds(grid *api.OrderGrid, shard int32, p *api.GridPartition) bool {
	return slices.ContainsFunc(p.Status.InSync, func(m api.Member) bool {
		of, ok := shardOf(grid, m.PodName)
		return ok && of == shard
	})
}

// moves reports whether a partition is moving: a pod outside its home has a copy.
func moves(grid *api.OrderGrid, p *api.GridPartition) bool {
	return slices.ContainsFunc(p.Status.InSync, func(m api.Member) bool {
		of, ok := shardOf(grid, m.PodName)
		return ok && of != p.Spec.Shard
	})
}

// at are the partitions related to the pods of a shard: it is their home, or one of its pods holds a copy.
func (o *observation) at(shard int32) (list []*api.GridPartition) {
	for i := range o.partitions {
		if p := &o.partitions[i]; p.Spec.Shard == shard || holds(o.grid, shard, p) {
			list = append(list, p)
		}
	}
	return list
}

// moving lists the moving partitions for status.
func (o *observation) moving() (list []api.PartitionMove) {
	for i := range o.partitions {
		p := &o.partitions[i]
		if !moves(o.grid, p) {
			continue
		}
		from := slices.DeleteFunc(heldBy(o.grid, p), func(shard int32) bool { return shard == p.Spec.Shard })
		m := api.PartitionMove{Partition: p.Spec.Partition, From: from, To: p.Spec.Shard}
		if o.setOf(m.To) == nil {
			m.WaitsFor = fmt.Sprintf("shard %d to be created", m.To)
		} else if name := o.notReady(m.To); name != "" {
			m.WaitsFor = name + " to be ready" + because(podNamed(o.pods, name))
		}
		m.WaitsFor = messages.Cut(m.WaitsFor, 512)
		list = append(list, m)
	}
	return list
}

// notReady names the first pod of a shard that counts and is not ready; "" for none.
func (o *observation) notReady(shard int32) string {
	for ordinal := range o.copiesWanted(shard) {
		if name := api.PodName(o.grid.Name, shard, ordinal); !o.ready(name) {
			return name
		}
	}
	return ""
}

// leaving lists the shards being removed for status.
func (o *observation) leaving() (list []api.LeavingShard) {
	s := &o.scale
	for shard := s.wanted; shard < s.shards; shard++ {
		list = append(list, api.LeavingShard{Shard: shard, Stage: api.LeavingMoving, Partitions: int32(len(o.at(shard))), WaitsFor: messages.Cut(s.waitsFor[shard], 1024)})
	}
	for i := len(s.removing) - 1; i >= 0; i-- {
		shard := s.removing[i]
		list = append(list, api.LeavingShard{Shard: shard, Stage: api.LeavingRemoving, WaitsFor: messages.Cut(s.waitsFor[shard], 1024)})
	}
	return list
}

// scaling describes what is under way, "" if nothing is.
func (o *observation) scaling() (reason, message string) {
	var parts []string
	moving := o.moving()
	if n := len(moving) + o.scale.queued; n > 0 {
		reason = reasonMovingPartitions
		parts = append(parts, fmt.Sprintf("%s to move, %d of them under way", count(n, "partition has", "partitions have"), len(moving)))
	}
	if o.scale.text != "" {
		parts = append(parts, o.scale.text)
	}
	for _, m := range moving[:min(len(moving), 2)] {
		parts = append(parts, moveText(m))
	}
	for _, l := range o.leaving() {
		reason = reasonRemovingShards
		text := fmt.Sprintf("shard %d is being removed", l.Shard)
		if l.Stage == api.LeavingMoving {
			text = fmt.Sprintf("shard %d has %s", l.Shard, count(int(l.Partitions), "partition left", "partitions left"))
		}
		if l.WaitsFor != "" {
			text += ", waits: " + l.WaitsFor
		}
		parts = append(parts, text)
	}
	if len(o.scale.waiting) > 0 {
		reason = cmp.Or(reason, reasonMovingPartitions)
		parts = append(parts, o.scale.waiting[:min(len(o.scale.waiting), 3)]...)
	}
	if !o.scale.until.IsZero() && len(moving)+len(o.scale.removing) == 0 {
		reason = reasonWaitingForWindow
	}
	return reason, strings.Join(parts, "; ")
}

func moveText(m api.PartitionMove) string {
	text := fmt.Sprintf("p%d moves from %s to shard %d", m.Partition, shardList(m.From), m.To)
	if m.WaitsFor != "" {
		text += ", waits: " + m.WaitsFor
	}
	return text
}

func shardList(shards []int32) string {
	var names []string
	for _, shard := range shards {
		names = append(names, fmt.Sprintf("shard %d", shard))
	}
	return strings.Join(names, " and ")
}

// scaleMemory is the remembered state of moves. Losing it delays the report of one that is stuck.
type scaleMemory struct {
	objective updateMemory
	begun     map[int32]begunMove // by partition: the last one
	progress  string              // the last progress,
	since     time.Time           // and its time
}

// judgeLate reports what has made no progress for too long, or else when that will be so.
func (o *observation) judgeLate(m *scaleMemory, now time.Time) (again time.Duration) {
	reason, text := o.scaling()
	if progress := o.progress(); reason == "" || reason == reasonWaitingForWindow || progress != m.progress {
		m.progress, m.since = progress, now
	}
	allowed := o.grid.Spec.UpdateStrategy.ProgressDeadline.Duration
	if reason == "" || reason == reasonWaitingForWindow || allowed <= 0 {
		return 0
	}
	left := allowed - now.Sub(m.since)
	if left <= 0 {
		o.scale.late = fmt.Sprintf("partitions have moved no further for longer than spec.updateStrategy.progressDeadline, %v: %s. See what they wait for, or revert the change of spec.shards", allowed, text)
	}
	return max(left, 0)
}

// progress is a text that changes with every step.
func (o *observation) progress() string {
	var b strings.Builder
	fmt.Fprint(&b, o.scale.wanted, o.scale.shards, o.scale.removing, len(o.statefulSets), len(o.pods), len(o.outdatedPods()))
	for i := range o.partitions {
		p := &o.partitions[i]
		fmt.Fprint(&b, " ", p.Spec.Partition, p.Spec.Shard, p.Status.Epoch)
	}
	return b.String()
}
