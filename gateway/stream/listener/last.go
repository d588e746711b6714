package listener

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
)

// past is a message of a log that a subscription is for.
type past struct {
	partition int
	at        fanout.Position
	received  int64
}

// rewind looks for the last messages that a subscription asks for, in the last entries of the logs, and has it begin there:
// what was wanted by no client is not in the ring.
func (g *generation) rewind(ctx context.Context, h *server.Held, want *interest) error {
	n, at, away := 0, make([]fanout.Position, len(g.parts)), make([]bool, len(g.parts))
	if !h.Do(func(s *fanout.Sub) {
		n = s.Back()
		for p := range at {
			at[p], away[p] = s.At(p), s.Away(p)
		}
	}) || n == 0 {
		return nil
	}
	var all []past
	var failed error
	until := time.Now().Add(lastTime)
	for p := range at {
		if away[p] {
			continue
		}
		some, err := g.parts[p].last(ctx, h, want, at[p].Seq, n, until)
		if err != nil { // in part, it would be the oldest that were found
			failed = errors.Join(failed, fmt.Errorf("%s: %w", g.parts[p].id, err))
			if errors.Is(err, errGone) || ctx.Err() != nil {
				return failed
			}
			continue
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b past) int {
		return cmp.Or(cmp.Compare(b.received, a.received), cmp.Compare(a.partition, b.partition), cmp.Compare(b.at.Seq, a.at.Seq), cmp.Compare(b.at.Index, a.at.Index))
	})
	for _, m := range all[:min(n, len(all))] {
		if before := m.before(); before.Before(at[m.partition]) {
			at[m.partition] = before
		}
	}
	h.Do(func(s *fanout.Sub) { s.Rewind(at) })
	return failed
}

// before is a position that has all messages before this one, and not this one.
func (m *past) before() fanout.Position {
	if m.at.Index > 0 {
		return fanout.Position{Seq: m.at.Seq, Index: m.at.Index - 1}
	}
	return fanout.Position{Seq: m.at.Seq - 1, Index: math.MaxUint32}
}

// lastTime is how long the last messages of a subscription are looked for. Partitions that were not read to their end then
// have none.
const lastTime = 5 * historyTurn

// last returns the last n messages up to an entry, of the last Config.Backlog entries.
func (p *partition) last(ctx context.Context, h *server.Held, want *interest, through uint64, n int, until time.Time) (list []past, err error) {
	after := client.Position{Seq: through - min(through, p.g.l.cfg.Backlog), Lineage: p.end.Lineage}
	for after.Seq < through {
		list, err = p.lastFrom(ctx, h, want, after, through, n, until)
		var freed *client.SnapshotRequiredError
		if !errors.As(err, &freed) || freed.After.Seq <= after.Seq {
			return list, err
		}
		after = freed.After
	}
	return list, nil
}

func (p *partition) lastFrom(ctx context.Context, h *server.Held, want *interest, after client.Position, through uint64, n int, until time.Time) (list []past, err error) {
	f, err := p.reread(ctx, want, after)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it never fails
	b := p.batch()
	for f.After().Seq < through {
		switch {
		case !h.Do(func(*fanout.Sub) {}):
			return nil, errGone
		case time.Now().After(until):
			return nil, fmt.Errorf("entry %d is not reached within %s", through, lastTime)
		case p.quiet():
			return nil, errSilent
		}
		part, err := p.next(ctx, f)
		if err != nil {
			return nil, err
		}
		b.fill(part, int(p.id))
		for i := range b.messages {
			if m := &b.messages[i]; m.At.Seq <= through && want.takes(m) {
				list = append(list, past{int(p.id), m.At, b.received[i]})
			}
		}
		if len(list) > 2*n {
			list = slices.Delete(list, 0, len(list)-n)
		}
	}
	return list[max(0, len(list)-n):], nil
}
