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

// A change without an answer may have been made, or may still be. The replica forgets a
// rejected one and repeats one that met a conflict on another version, so any answer that
// is not conclusive about this very change counts as unknown.
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

// misled is an arbiter whose watch reports after its first list that a record is gone.
type misled struct {
	arbiter.Arbiter
	gone string
	gets atomic.Int32 // of that record, after the watch reported it
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

// The deletion of a record is detected, and only of that one. It must be confirmed by a
// read, never by the watch alone.
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
	g.until(func() bool { return m.gets.Load() > 0 }, "the watch event was not confirmed by a read")
	if err := g.store.Delete(name(1)); err != nil {
		t.Fatal(err)
	}
	g.until(func() bool { return gone(1) }, "the node does not know of the deleted record")
	if gone(0) {
		t.Error("the node relied on the watch alone")
	}
}
