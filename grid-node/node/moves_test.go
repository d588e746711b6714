package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
)

// TestPartitionMovesUnderOrders has the record name the other two of four nodes, and back,
// while a client sends orders: it moves, and no order fails or is lost.
func TestPartitionMovesUnderOrders(t *testing.T) {
	g := newGrid(t, 4, 1)
	g.base.Replicas = 2
	name := PartitionName("g", 0)
	move := func(pods ...string) {
		if _, err := g.store.SetSpec(name, func(s *arbiter.Spec) error {
			s.Replicas, s.Pods, s.PreferredPod = 2, pods, pods[1]
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	on := func(pods ...string) {
		t.Helper()
		var r arbiter.Record
		g.until(func() bool {
			r, _ = g.store.Get(t.Context(), name)
			var there []string
			for _, m := range r.InSync {
				there = append(there, m.PodName)
			}
			slices.Sort(there)
			return slices.Equal(there, pods) && r.Primary.PodName == pods[1]
		}, "the copies are not on %v, the primary on the last: %v", func() any { return strings.Join(pods, " ") }, func() any { return r })
	}
	move("g-s0-0", "g-s0-1")
	for i := range g.nodes {
		g.start(i)
	}
	on("g-s0-0", "g-s0-1")

	c := g.client()
	var sent atomic.Int64
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if _, err := c.Submit(context.WithoutCancel(t.Context()), fix(fmt.Sprintf("m-%d", n))); err != nil {
				ended <- fmt.Errorf("order %d: %w", n, err)
				return
			}
			sent.Add(1)
		}
	}()
	for _, pods := range [][]string{{"g-s0-2", "g-s0-3"}, {"g-s0-0", "g-s0-3"}, {"g-s0-0", "g-s0-1"}} {
		before := sent.Load()
		g.until(func() bool { return sent.Load() > before+20 }, "no orders are acknowledged")
		move(pods...)
		on(pods...)
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for n := range min(sent.Load(), 500) {
		if _, err := c.Submit(t.Context(), fix(fmt.Sprintf("m-%d", n))); err == nil || !strings.Contains(err.Error(), "uplicate") {
			t.Fatalf("order m-%d was acknowledged, and is taken again: %v", n, err)
		}
	}
}
