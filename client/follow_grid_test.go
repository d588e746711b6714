package client_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Primaries are killed, and one is stopped without a word, under load. Each order that was
// acknowledged comes to each follower once, at its place, and a sink outside goes on through all of it.
func TestGridFollowers(t *testing.T) {
	g := testgrid.Run(t, "--external-sink", "kafka")
	c := dial(t, g)
	var mu sync.Mutex
	acked, stop := map[string]client.Receipt{}, atomic.Bool{}
	var load, all sync.WaitGroup
	part := c.Table()[0].ID
	for w := range 4 {
		load.Go(func() {
			for i := 0; !stop.Load(); i++ {
				id := fmt.Sprintf("FOLLOW-%d-%d", w, i)
				r, err := c.SubmitTo(t.Context(), part, testgrid.Order(id, 305))
				if err != nil {
					t.Errorf("order %s: %v", id, err)
					return
				}
				mu.Lock()
				acked[id] = r
				mu.Unlock()
			}
		})
	}
	var last atomic.Uint64 // entry that the followers go to; 0: not known yet
	seen := make([]map[string]uint64, 2)
	for i, name := range []string{"", "kafka"} {
		seen[i] = map[string]uint64{}
		all.Go(func() {
			f, err := c.Follow(t.Context(), client.FollowOptions{Partition: part, Name: name, Window: 64 << 10})
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close() //nolint:errcheck // it never fails
			for last.Load() == 0 || f.After().Seq < last.Load() {
				b, err := f.Next(t.Context())
				if err != nil {
					t.Errorf("follower %q: %v", name, err)
					return
				}
				for _, e := range b.Entries {
					if e.Kind != order.KindOrder {
						continue
					}
					id := string(order.ClOrdID(e.Bytes))
					if seen[i][id] != 0 {
						t.Errorf("follower %q got order %s twice: at %d and %d", name, id, seen[i][id], e.Seq)
					}
					seen[i][id] = e.Seq
				}
				if name != "" {
					if err := f.Advance(b.Through.Seq, b.Through.Hash); err != nil {
						t.Errorf("advance: %v", err)
					}
				}
			}
			if name != "" {
				if err := f.Flush(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for round := range 3 {
		waitForRedundancy(t, c)
		n := func() int { mu.Lock(); defer mu.Unlock(); return len(acked) }
		before := n()
		waitFor(t, func() bool { return n() > before+50 })
		if round < 2 {
			killPrimary(t, c, g)
			continue
		}
		pid, err := g.PIDOf(c.Table()[0].Primary.Address)
		if err != nil {
			t.Fatal(err)
		}
		epoch := c.Table()[0].Epoch
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return c.Refresh(t.Context()) == nil && c.Table()[0].Epoch > epoch })
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	waitForRedundancy(t, c)
	stop.Store(true)
	load.Wait()
	end := uint64(1)
	for _, r := range acked {
		end = max(end, r.Seq)
	}
	last.Store(end)
	if _, err := c.SubmitTo(t.Context(), part, testgrid.Order("FOLLOW-LAST", 305)); err != nil { // it wakes those that wait at the end
		t.Fatal(err)
	}
	all.Wait()
	for i, name := range []string{"", "kafka"} {
		for id, r := range acked {
			if seen[i][id] != r.Seq {
				t.Fatalf("order %s was acknowledged at %d; follower %q got it at %d", id, r.Seq, name, seen[i][id])
			}
		}
	}
	t.Logf("%d orders", len(acked))
}

// What a follower cannot be told is said at once.
func TestFollowOptions(t *testing.T) {
	g := testgrid.Run(t)
	c := dial(t, g)
	for want, o := range map[string]client.FollowOptions{
		"partition":                          {Partition: 999},
		"FollowOptions.Window is -1":         {Window: -1},
		"FollowOptions.Account has 65 bytes": {Account: strings.Repeat("a", 65)},
		`FollowOptions.Name is "Kafka"`:      {Name: "Kafka"},
		"FollowOptions.After is entry 3":     {AtEnd: true, After: client.Position{Seq: 3}},
	} {
		if _, err := c.Follow(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	f, err := c.Follow(t.Context(), client.FollowOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Advance(1, 1); err == nil || !strings.Contains(err.Error(), "FollowOptions.Name") {
		t.Errorf("Advance without a name: %v", err)
	}
	if err := errors.Join(f.Flush(t.Context()), f.Close()); err != nil {
		t.Error(err)
	}
}
