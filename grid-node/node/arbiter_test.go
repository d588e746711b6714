package node

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// A change whose answer did not come may have been made, or may be yet. The replica
// forgets one that was refused and repeats one that met a conflict on another version,
// so whatever is not the arbiter's own word about this very change is unknown.
func TestOutcomeOfAChange(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want replica.Outcome
	}{
		"done":             {nil, replica.OutcomeOK},
		"conflict":         {fmt.Errorf("%w: version 4", arbiter.ErrConflict), replica.OutcomeConflict},
		"refused":          {arbiter.Refused("epoch 4 does not follow 2"), replica.OutcomeRefused},
		"no such record":   {fmt.Errorf("%w: p0", arbiter.ErrNotFound), replica.OutcomeRefused},
		"timed out":        {fmt.Errorf("%w: %w", arbiter.ErrUnknown, context.DeadlineExceeded), replica.OutcomeUnknown},
		"timed out, bare":  {context.DeadlineExceeded, replica.OutcomeUnknown},
		"given up":         {fmt.Errorf("put: %w", context.Canceled), replica.OutcomeUnknown},
		"connection lost":  {fmt.Errorf("%w: %w", arbiter.ErrUnknown, io.ErrUnexpectedEOF), replica.OutcomeUnknown},
		"something unseen": {fmt.Errorf("the API server is on fire"), replica.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcomeOf(c.err); got != c.want {
				t.Errorf("%v is outcome %d, want %d", c.err, got, c.want)
			}
		})
	}
}

// misled is an arbiter whose watch says after its first list that a record is gone.
type misled struct {
	arbiter.Arbiter
	gone string
	gets atomic.Int32 // of that record, after the watch said so
	said atomic.Bool
}

func (m *misled) Watch(ctx context.Context, grid string, f func(arbiter.News, error)) error {
	return m.Arbiter.Watch(ctx, grid, func(n arbiter.News, err error) {
		f(n, err)
		if n.All && !m.said.Swap(true) {
			f(arbiter.News{Gone: []string{m.gone}}, nil)
		}
	})
}

func (m *misled) Get(ctx context.Context, name string) (arbiter.Record, error) {
	r, err := m.Arbiter.Get(ctx, name)
	if name == m.gone && m.said.Load() {
		m.gets.Add(1)
	}
	return r, err
}

// A record that is deleted is known to be gone, and the others are not. That it is gone is
// the word of the record itself, never of the watch.
func TestDeletedRecord(t *testing.T) {
	g := newGrid(t, 1, 2)
	name := func(i int) string { return PartitionName("g", i) }
	m := &misled{Arbiter: g.arb, gone: name(0)}
	g.arb = m
	g.up()
	gone := func(i int) (yes bool) {
		if err := g.nodes[0].onLoop(func() { yes = g.nodes[0].data.parts.list[i].record.gone }); err != nil {
			t.Fatal(err)
		}
		return yes
	}
	g.until(func() bool { return m.gets.Load() > 0 }, "what the watch said was not asked for")
	if err := g.store.Delete(name(1)); err != nil {
		t.Fatal(err)
	}
	g.until(func() bool { return gone(1) }, "the node does not know of the deleted record")
	if gone(0) {
		t.Error("the node took the watch's word for it")
	}
}
