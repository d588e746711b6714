package ordergrid

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// shardState is a shard in short form: pods of its StatefulSet, and for every partition replicas, maxInSync (0: not
// set) and the ordinals in sync, the primary's first.
type shardState struct {
	pods       int32 // -1: no StatefulSet
	partitions []partitionState
	notReady   []int32
	trouble    string
}

type partitionState struct {
	replicas, maxInSync int32
	inSync              []int32
}

// same is two partitions in the same state.
func same(replicas, maxInSync int32, inSync ...int32) []partitionState {
	return []partitionState{{replicas, maxInSync, inSync}, {replicas, maxInSync, inSync}}
}

// observedShards is a grid of such shards.
func observedShards(replicas, minInSync int32, shards ...shardState) *observation {
	grid := pairGrid()
	grid.Spec.Shards, grid.Spec.Replicas, grid.Spec.MinInSync = int32(len(shards)), replicas, minInSync
	o := &observation{grid: grid, findings: map[string]*finding{}, scale: scale{wanted: grid.Spec.Shards, shards: grid.Spec.Shards}}
	grid.Spec.Partitions = 0
	for number, s := range shards {
		shard := int32(number)
		for index, p := range s.partitions {
			n := numberOf(grid, shard, int32(index))
			grid.Spec.Partitions = max(grid.Spec.Partitions, n+1)
			record := api.GridPartition{ObjectMeta: metav1.ObjectMeta{Name: api.PartitionName(grid.Name, n)},
				Spec: api.GridPartitionSpec{Shard: shard, Partition: n, Replicas: p.replicas, MaxInSync: p.maxInSync}}
			for _, ordinal := range p.inSync {
				record.Status.InSync = append(record.Status.InSync, processOf(grid, shard, ordinal))
			}
			if len(p.inSync) > 0 {
				record.Status.Epoch, record.Status.Primary = 7, &record.Status.InSync[0]
			}
			o.partitions = append(o.partitions, record)
			if s.trouble != "" {
				o.findings[record.Name] = &finding{loss: loss{verdict: fateGone}}
			}
		}
		for ordinal := range s.pods {
			ready := corev1.ConditionTrue
			if slices.Contains(s.notReady, ordinal) {
				ready = corev1.ConditionFalse
			}
			o.pods = append(o.pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: api.PodName(grid.Name, shard, ordinal)},
				Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}})
		}
		if s.pods >= 0 {
			o.statefulSets = append(o.statefulSets, appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: api.ShardName(grid.Name, shard)},
				Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(s.pods)}})
		}
	}
	o.sort()
	return o
}

// decided is a plan in short form.
func decided(c *shardCopies) string {
	text := fmt.Sprintf("pods %d, replicas %d..%d, minInSync %d", c.pods, c.wanted, c.takesIn, c.needed)
	switch {
	case c.queued:
		text += ", queued"
	case c.waiting != "":
		text += ", waits: " + c.waiting
	case !c.resizing:
		text += ", at rest"
	}
	return text
}

func TestPlanCopies(t *testing.T) {
	for _, test := range []struct {
		name      string
		replicas  int32
		minInSync int32
		shard     shardState
		want      string
	}{
		{"nothing there yet", 2, 2, shardState{pods: -1}, "pods 2, replicas 2..2, minInSync 2, at rest"},
		{"records created, not claimed", 3, 1, shardState{pods: -1, partitions: same(2, 0)}, "pods 3, replicas 3..3, minInSync 1, at rest"},
		{"at rest", 2, 1, shardState{pods: 2, partitions: same(2, 0, 0, 1)}, "pods 2, replicas 2..2, minInSync 1, at rest"},
		{"at rest, a copy missing", 2, 1, shardState{pods: 2, partitions: same(2, 0, 1)}, "pods 2, replicas 2..2, minInSync 1, at rest"},

		{"2 to 3 begins", 3, 3, shardState{pods: 2, partitions: same(2, 0, 0, 1)}, "pods 3, replicas 2..3, minInSync 2, waits: rtd-s0-2 does not exist yet"},
		{"2 to 3 begins with a copy missing", 3, 1, shardState{pods: 2, partitions: same(2, 0, 0), notReady: []int32{1}}, "pods 3, replicas 2..3, minInSync 1, waits: rtd-s0-1 is not in sync and rtd-s0-2 does not exist yet"},
		{"2 to 3, the pod catches up", 3, 3, shardState{pods: 3, partitions: same(2, 3, 0, 1)}, "pods 3, replicas 2..3, minInSync 2, waits: rtd-s0-2 is not in sync"},
		{"2 to 3, in sync in one partition", 3, 3, shardState{pods: 3, partitions: []partitionState{{2, 3, []int32{0, 1, 2}}, {2, 3, []int32{1, 0}}}}, "pods 3, replicas 2..3, minInSync 2, waits: rtd-s0-2 is not in sync"},
		{"2 to 3, in sync everywhere", 3, 3, shardState{pods: 3, partitions: same(2, 3, 0, 1, 2)}, "pods 3, replicas 3..3, minInSync 3"},
		{"2 to 3, the third in place of the second", 3, 1, shardState{pods: 3, partitions: same(2, 3, 0, 2)}, "pods 3, replicas 2..3, minInSync 1, waits: rtd-s0-1 is not in sync"},
		{"2 to 3, half the records changed", 3, 1, shardState{pods: 3, partitions: []partitionState{{3, 0, []int32{0, 1, 2}}, {2, 3, []int32{0, 1, 2}}}}, "pods 3, replicas 3..3, minInSync 1"},
		{"1 to 3", 3, 1, shardState{pods: 1, partitions: same(1, 0, 0)}, "pods 3, replicas 1..3, minInSync 1, waits: rtd-s0-1 does not exist yet and rtd-s0-2 does not exist yet"},
		{"1 to 3, one of two there", 3, 2, shardState{pods: 3, partitions: same(1, 3, 0, 1)}, "pods 3, replicas 2..3, minInSync 2, waits: rtd-s0-2 is not in sync"},

		{"3 to 2 begins", 2, 2, shardState{pods: 3, partitions: same(3, 0, 2, 0, 1)}, "pods 3, replicas 2..2, minInSync 2"},
		{"3 to 2, one that stays is missing", 2, 1, shardState{pods: 3, partitions: same(3, 0, 2, 1), notReady: []int32{0}}, "pods 3, replicas 3..3, minInSync 1, waits: of the remaining pods rtd-s0-0 is not in sync"},
		{"3 to 2, one that stays is not ready", 2, 1, shardState{pods: 3, partitions: same(3, 0, 2, 1, 0), notReady: []int32{0}}, "pods 3, replicas 3..3, minInSync 1, waits: of the remaining pods rtd-s0-0 is not ready"},
		{"3 to 2, half the records changed", 2, 1, shardState{pods: 3, partitions: []partitionState{{2, 0, []int32{0, 1, 2}}, {3, 0, []int32{0, 1, 2}}}}, "pods 3, replicas 2..2, minInSync 1"},
		{"3 to 2, not removed yet", 2, 1, shardState{pods: 3, partitions: []partitionState{{2, 0, []int32{0, 1}}, {2, 0, []int32{2, 0, 1}}}}, "pods 3, replicas 2..2, minInSync 1, waits: rtd-s0-2 is still in sync in rtd-p1"},
		{"3 to 2, removed", 2, 1, shardState{pods: 3, partitions: same(2, 0, 0, 1)}, "pods 2, replicas 2..2, minInSync 1, at rest"},
		{"3 to 2, removed while one that stays is missing", 2, 1, shardState{pods: 3, partitions: same(2, 0, 0), notReady: []int32{1, 2}}, "pods 2, replicas 2..2, minInSync 1, at rest"},
		{"3 to 2, it has taken the place of one that stays", 2, 1, shardState{pods: 3, partitions: same(2, 0, 0, 2)}, "pods 3, replicas 2..2, minInSync 1, waits: rtd-s0-2 is still in sync in rtd-p0"},
		{"3 to 1", 1, 1, shardState{pods: 3, partitions: same(3, 0, 0, 1, 2)}, "pods 3, replicas 1..1, minInSync 1"},
		{"3 to 1, one of two removed", 1, 1, shardState{pods: 3, partitions: same(1, 0, 0, 1)}, "pods 3, replicas 1..1, minInSync 1, waits: rtd-s0-1 is still in sync in rtd-p0"},

		{"2 to 3 reverted before the pod is in sync", 2, 1, shardState{pods: 3, partitions: same(2, 3, 0, 1)}, "pods 3, replicas 2..2, minInSync 1"},
		{"2 to 3 reverted, the records changed", 2, 1, shardState{pods: 3, partitions: same(2, 0, 0, 1)}, "pods 2, replicas 2..2, minInSync 1, at rest"},
		{"2 to 3 reverted when the pod is in sync", 2, 1, shardState{pods: 3, partitions: same(2, 3, 0, 1, 2)}, "pods 3, replicas 2..2, minInSync 1"},
		{"3 to 2 reverted, not removed yet", 3, 1, shardState{pods: 3, partitions: same(2, 0, 0, 1, 2)}, "pods 3, replicas 3..3, minInSync 1"},
		{"3 to 2 reverted, removed", 3, 1, shardState{pods: 3, partitions: same(2, 0, 0, 1)}, "pods 3, replicas 2..3, minInSync 1, waits: rtd-s0-2 is not in sync"},
		{"3 to 2 reverted, the pod is gone", 3, 1, shardState{pods: 2, partitions: same(2, 0, 0, 1)}, "pods 3, replicas 2..3, minInSync 1, waits: rtd-s0-2 does not exist yet"},

		{"scaled by others up", 2, 1, shardState{pods: 5, partitions: same(2, 0, 0, 1)}, "pods 2, replicas 2..2, minInSync 1, at rest"},
		{"scaled up by others, and one of them is in sync", 2, 1, shardState{pods: 5, partitions: same(2, 0, 0, 4)}, "pods 5, replicas 2..2, minInSync 1, waits: rtd-s0-4 is still in sync in rtd-p0"},
		{"scaled by others down", 2, 1, shardState{pods: 0, partitions: same(2, 0, 0, 1)}, "pods 2, replicas 2..2, minInSync 1, at rest"},
		{"scaled down by others, and all is lost", 2, 1, shardState{pods: 0, partitions: same(2, 0, 0, 1), trouble: "lost"}, "pods 2, replicas 2..2, minInSync 1, waits: rtd-p0: DataLossSuspected"},
		{"the StatefulSet was deleted", 2, 1, shardState{pods: -1, partitions: same(2, 0, 0, 1)}, "pods 2, replicas 2..2, minInSync 1, at rest"},
		{"nothing changes while manual action is required", 3, 1, shardState{pods: 2, partitions: same(2, 0, 0, 1), trouble: "lost"}, "pods 2, replicas 2..2, minInSync 1, waits: rtd-p0: DataLossSuspected"},
		{"no pod is removed while manual action is required", 2, 1, shardState{pods: 3, partitions: same(2, 0, 0, 1), trouble: "lost"}, "pods 3, replicas 2..2, minInSync 1, waits: rtd-p0: DataLossSuspected"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := decided(&planCopies(observedShards(test.replicas, test.minInSync, test.shard), rollNow)[0]); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// One shard at a time, or as many as may be unavailable; one that is changing continues.
func TestPlanCopiesOfManyShards(t *testing.T) {
	rest, under := shardState{pods: 2, partitions: same(2, 0, 0, 1)}, shardState{pods: 3, partitions: same(2, 3, 0, 1)}
	done := shardState{pods: 3, partitions: same(3, 0, 0, 1, 2)}
	for _, test := range []struct {
		name   string
		limit  int32
		shards []shardState
		want   string // + moves, . at rest, q queued
	}{
		{"the first begins", 1, []shardState{rest, rest, rest}, "+qq"},
		{"two at a time", 2, []shardState{rest, rest, rest}, "++q"},
		{"a later one has begun already", 1, []shardState{rest, rest, under}, "qq+"},
		{"the next one", 1, []shardState{done, rest, rest}, ".+q"},
		{"more have begun than the limit is now", 1, []shardState{under, under, rest}, "++q"},
		{"all done", 1, []shardState{done, done, done}, "..."},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := observedShards(3, 1, test.shards...)
			o.grid.Spec.UpdateStrategy.MaxUnavailableShards = test.limit
			got := ""
			o.copies = planCopies(o, rollNow)
			for _, c := range o.copies {
				got += map[bool]string{true: "q", false: map[bool]string{true: "+", false: "."}[c.resizing]}[c.queued]
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if j := judgeProgressing(o); strings.Contains(test.want, "+") != (j.reason == reasonResizing) {
				t.Errorf("Progressing is %v", j)
			}
		})
	}
}

// From any state, with changed specs and pods that fail and return on the way, the plan ends at rest; it never lets the
// StatefulSet remove a pod that a record names, and never requires more copies in sync than there are.
func TestPlanCopiesEndsAtRest(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rng.Int32N(3)
		s := shardState{pods: n, partitions: []partitionState{{replicas: n}, {replicas: n}}}
		for i := range s.partitions {
			for ordinal := range n {
				s.partitions[i].inSync = append(s.partitions[i].inSync, ordinal)
			}
		}
		replicas := 1 + rng.Int32N(3)
		for step := 0; ; step++ {
			if step > 60 {
				t.Fatalf("seed %d: replicas %d: not at rest: %+v", seed, replicas, s)
			}
			if step < 20 && rng.IntN(6) == 0 {
				replicas = 1 + rng.Int32N(3) // the spec changes
			}
			o := observedShards(replicas, 1+rng.Int32N(replicas), s)
			c := planCopies(o, rollNow)[0]
			for _, p := range s.partitions {
				if c.pods < s.pods && slices.ContainsFunc(p.inSync, func(ordinal int32) bool { return ordinal >= c.pods }) {
					t.Fatalf("seed %d: %s although the state is %+v", seed, decided(&c), s)
				}
				if int(c.needed) > len(p.inSync) && int(p.replicas) <= len(p.inSync) {
					t.Fatalf("seed %d: %s, and there are %d copies", seed, decided(&c), len(p.inSync))
				}
			}
			if !c.resizing && c.pods == s.pods && step >= 20 {
				break
			}
			s.pods = c.pods
			for i := range s.partitions {
				p := &s.partitions[i]
				p.replicas, p.maxInSync = c.wanted, 0
				if c.takesIn > c.wanted {
					p.maxInSync = c.takesIn
				}
				if step >= 20 || rng.IntN(2) == 0 {
					p.nodesAct(s.pods, step < 20, rng)
				}
			}
		}
	}
}

// nodesAct plays the grid nodes of a record: see grid-node/replica/copies.go.
func (p *partitionState) nodesAct(pods int32, trouble bool, rng *rand.Rand) {
	most := int(max(p.replicas, p.maxInSync))
	slices.Sort(p.inSync)
	if len(p.inSync) > most {
		p.inSync = p.inSync[:len(p.inSync)-1]
		return
	}
	if trouble && len(p.inSync) > 1 && rng.IntN(4) == 0 { // a process died; the last one stays
		at := rng.IntN(len(p.inSync))
		p.inSync = slices.Delete(p.inSync, at, at+1)
		return
	}
	for ordinal := range pods {
		if !slices.Contains(p.inSync, ordinal) && (len(p.inSync) < most || ordinal < slices.Max(p.inSync)) {
			p.inSync = append(p.inSync, ordinal)
			return
		}
	}
}
