package node

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Of four partitions of a node one and two feed a learner: they have all of the node's rate
// between them, less what their records keep them to.
func TestLearnersShareTheRate(t *testing.T) {
	const total, slow = 64 << 20, arbiter.MinLearnerRate
	g := newGrid(t, 3, 4)
	g.base.Replicas, g.base.LearnerRate = 2, total
	for i := range 4 {
		g.setSpec(i, func(s *arbiter.Spec) { s.Replicas = 2 })
		g.place(i, 0, 0, 1)
	}
	g.up()
	c := g.client()
	// 7 MiB each, of which a learner is fed all but the last 2,048 orders: a minute at the slow rate.
	text := "58=" + strings.Repeat("x", 1000) + "\x01"
	var fill sync.WaitGroup
	for p := range wire.PartitionID(2) {
		fill.Go(func() {
			for n := range 6000 {
				if _, err := c.SubmitTo(t.Context(), p, fixMore(fmt.Sprintf("p%d-%d", p, n), text)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	fill.Wait()
	node := g.nodes[0]
	parts := &node.data.parts
	rates := func() (out [4]int) {
		if err := node.onLoop(func() {
			for i, p := range parts.list {
				out[i] = p.limits.LearnerRate
			}
		}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	want := func(what string, want [4]int) {
		t.Helper()
		g.until(func() bool { return rates() == want }, what+": rates %v, want %v", func() any { return rates() }, want)
	}
	want("at rest", [4]int{total / 4, total / 4, total / 4, total / 4})
	g.setSpec(0, func(s *arbiter.Spec) { s.LearnerRate = slow })
	g.place(0, 0, 0, 2)
	want("one is slow", [4]int{slow, total / 4, total / 4, total / 4})
	g.setSpec(1, func(s *arbiter.Spec) { s.LearnerRate = slow })
	g.place(1, 0, 0, 2)

	// What the records say counts at once. In one turn of the loop, so that both still feed.
	g.until(func() (two bool) {
		_ = node.onLoop(func() { two = parts.list[0].feeds == 1 && parts.list[1].feeds == 1 })
		return two
	}, "two do not feed")
	for _, rule := range []struct{ say, want [2]int64 }{
		{[2]int64{slow, slow}, [2]int64{slow, slow}},
		{[2]int64{0, slow}, [2]int64{total - slow, slow}},
		{[2]int64{slow, 0}, [2]int64{slow, total - slow}},
		{[2]int64{0, 0}, [2]int64{total / 2, total / 2}},
		{[2]int64{total, total}, [2]int64{total / 2, total / 2}},
		{[2]int64{-1, 1}, [2]int64{total / 2, total / 2}}, // refused
		{[2]int64{arbiter.MaxLearnerRate + 1, slow}, [2]int64{total - slow, slow}},
		{[2]int64{slow, slow}, [2]int64{slow, slow}},
	} {
		var got [2]int64
		var feeds [2]int
		if err := node.onLoop(func() {
			for i, rate := range rule.say {
				rec, err := g.store.Get(t.Context(), PartitionName("g", i))
				if err != nil {
					t.Error(err)
				}
				rec.Spec.LearnerRate = rate
				parts.hear(arbiter.News{Records: []arbiter.Record{rec}}, nil)
			}
			for i := range got {
				got[i], feeds[i] = int64(parts.list[i].limits.LearnerRate), parts.list[i].feeds
			}
		}); err != nil {
			t.Fatal(err)
		}
		if got != rule.want || feeds != [2]int{1, 1} {
			t.Errorf("records say %v: rates %v, want %v; learners %v", rule.say, got, rule.want, feeds)
		}
	}
	for i := range 2 { // and it is what the replica goes by: at the slow rate this would take minutes
		g.setSpec(i, func(s *arbiter.Spec) { s.LearnerRate = 0 })
	}
	g.until(func() bool {
		return !slices.ContainsFunc(g.records()[:2], func(r arbiter.Record) bool {
			return len(r.InSync) != 2 || r.InSync[0].PodName != "g-s0-2" && r.InSync[1].PodName != "g-s0-2"
		})
	}, "the copies are %+v", func() any { return g.records() })
	want("after the moves", [4]int{total / 4, total / 4, total / 4, total / 4})
	g.verify("")
}

func TestHostileLearnerRate(t *testing.T) {
	for _, rate := range []int64{-1, 1, arbiter.MinLearnerRate - 1, arbiter.MaxLearnerRate + 1, -1 << 63} {
		_, err := configOf(arbiter.Record{Spec: arbiter.Spec{LearnerRate: rate}})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("learnerRate: value %d, allowed: 65536 to 17179869184", rate)) {
			t.Errorf("%d: %v", rate, err)
		}
	}
	for _, rate := range []int64{0, arbiter.MinLearnerRate, arbiter.MaxLearnerRate} {
		if _, err := configOf(arbiter.Record{Spec: arbiter.Spec{LearnerRate: rate}}); err != nil {
			t.Errorf("%d: %v", rate, err)
		}
	}
}

func (g *grid) setSpec(index int, change func(*arbiter.Spec)) {
	g.t.Helper()
	if _, err := g.store.SetSpec(PartitionName("g", index), func(s *arbiter.Spec) error { change(s); return nil }); err != nil {
		g.t.Fatal(err)
	}
}
