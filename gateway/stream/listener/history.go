package listener

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
)

const (
	// maxHistories wait at most; one more subscription is told a gap.
	maxHistories   = 4096
	historyWorkers = 8
	historyWindow  = 256 << 10
	// historyTurn is how long one subscription has a worker while others wait.
	historyTurn = 2 * time.Second
	// historyPause is between two looks whether a client has room again.
	historyPause = 2 * time.Millisecond
	// historyStall is how long a client may take nothing. The server ends its connection before.
	historyStall = 2 * time.Minute
)

// history takes a subscription in whose history has left the ring.
func (g *generation) history(h *server.Held) bool {
	select {
	case g.histories <- h:
		return true
	default:
		return false
	}
}

// readHistories is a worker.
func (g *generation) readHistories(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case h := <-g.histories:
			g.readHistory(ctx, h)
		}
	}
}

// errTurn means that others wait for the worker.
var errTurn = errors.New("it is the turn of others")

// readHistory feeds a subscription what it lacks. What cannot be read is told as a gap.
func (g *generation) readHistory(ctx context.Context, h *server.Held) {
	turnEnd := time.Now().Add(historyTurn)
	g.l.metrics.histories.Add(1)
	var want interest
	if !h.Do(func(s *fanout.Sub) { want = g.interest(s) }) {
		return
	}
	if err := g.rewind(ctx, h, &want); err != nil {
		g.l.log.Debug("the last messages are not read", "error", err)
	}
	for {
		var missing []fanout.Range
		ok := h.Do(func(s *fanout.Sub) {
			if missing = s.Missing(); len(missing) == 0 {
				s.Release()
			}
		})
		if !ok || len(missing) == 0 {
			return
		}
		err := g.parts[missing[0].Partition].feed(ctx, h, &want, missing[0], turnEnd)
		switch {
		case errors.Is(err, errTurn) && g.history(h):
			return
		case err != nil:
			g.l.log.Debug("a history is not read to its end", "error", err)
			h.Do(func(s *fanout.Sub) { s.Release() })
			return
		}
	}
}

// feed reads a part of the partition's log for a subscription.
func (p *partition) feed(ctx context.Context, h *server.Held, want *interest, r fanout.Range, turnEnd time.Time) error {
	after := client.Position{Seq: r.After.Seq, Lineage: p.end.Lineage}
	if p.g.matches() && after.Seq > 0 {
		after.Seq-- // of the entry there it may lack some
	}
	for {
		f, err := p.reread(ctx, want, after)
		if err != nil {
			return err
		}
		err = p.feedFrom(ctx, h, f, r.Through.Seq, turnEnd)
		f.Close() //nolint:errcheck // it never fails
		var freed *client.SnapshotRequiredError
		if !errors.As(err, &freed) || freed.After.Seq <= after.Seq {
			return err
		}
		after = freed.After
		lost := fanout.Position{Seq: min(freed.After.Seq, r.Through.Seq)}
		if p.g.matches() {
			lost.Index = math.MaxUint32 // what it lacks of that entry is not known
		}
		if err := p.g.give(ctx, h, func(s *fanout.Sub) bool { return s.Lost(int(p.id), lost) }); err != nil {
			return err
		}
		if freed.After.Seq >= r.Through.Seq {
			return nil
		}
	}
}

// reread follows the log from a position on, for one subscription.
func (p *partition) reread(ctx context.Context, want *interest, after client.Position) (*client.Follower, error) {
	return p.g.l.cfg.Client.Follow(ctx, client.FollowOptions{Partition: p.id, After: after, Window: historyWindow,
		Selection: &client.Selection{Selectors: want.list, Quiet: time.Millisecond}})
}

func (p *partition) feedFrom(ctx context.Context, h *server.Held, f *client.Follower, through uint64, turnEnd time.Time) error {
	b := &batch{}
	for f.After().Seq < through {
		if time.Now().After(turnEnd) && len(p.g.histories) > 0 {
			return errTurn
		}
		part, err := f.Next(ctx)
		if err != nil {
			return err
		}
		if part.Through.Lineage != p.end.Lineage {
			return fmt.Errorf("lineage of %s is %d, it was %d", p.id, part.Through.Lineage, p.end.Lineage)
		}
		b.fill(part, int(p.id))
		next := 0
		err = p.g.give(ctx, h, func(s *fanout.Sub) bool {
			for next < len(b.messages) && b.messages[next].At.Seq <= through {
				if !s.Feed(&b.messages[next]) {
					return false
				}
				next++
			}
			s.Fed(int(p.id), p.g.end(min(b.through.Seq, through)))
			return true
		})
		if err != nil {
			return err
		}
		p.g.l.metrics.fed.Add(uint64(next))
	}
	return nil
}

var (
	errGone  = errors.New("the subscription has ended")
	errStall = errors.New("the client takes nothing")
)

// give calls f on the loop until it returns true: the client has room.
func (g *generation) give(ctx context.Context, h *server.Held, f func(*fanout.Sub) bool) error {
	for until := time.Now().Add(historyStall); ; {
		done := false
		if !h.Do(func(s *fanout.Sub) { done = f(s) }) {
			return errGone
		}
		switch {
		case done:
			return nil
		case time.Now().After(until):
			return errStall
		case !pause(ctx, historyPause):
			return ctx.Err()
		}
	}
}
