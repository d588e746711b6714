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
	// historyPatience is how long nothing may come of a history. Then it is a gap.
	historyPatience = 30 * time.Second
	// silentPause is before a history of a partition from which nothing comes is put off.
	silentPause = 50 * time.Millisecond
	// historyPause is between two looks whether a client has room again.
	historyPause = 2 * time.Millisecond
	// historyStall is how long a client may take nothing. The server ends its connection before.
	historyStall = 2 * time.Minute
)

// history is of a subscription, and read in turns.
type history struct {
	h       *server.Held
	waits   time.Time // since when nothing comes of it; zero: something came last
	rewound bool
}

// hold takes a subscription in whose history has left the ring.
func (g *generation) hold(h *server.Held) bool { return g.history(&history{h: h}) }

// history has a history go on at the end of the queue.
func (g *generation) history(x *history) bool {
	select {
	case g.histories <- x:
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
		case x := <-g.histories:
			g.readHistory(ctx, x)
		}
	}
}

var (
	// errTurn means that others wait for the worker.
	errTurn = errors.New("it is the turn of others")
	// errSilent means that nothing came for a turn.
	errSilent = fmt.Errorf("nothing has come within %s", historyTurn)
)

// readHistory feeds a subscription what it lacks. What cannot be read is told as a gap.
func (g *generation) readHistory(ctx context.Context, x *history) {
	h, turnEnd := x.h, time.Now().Add(historyTurn)
	g.l.metrics.histories.Add(1)
	var want interest
	if !h.Do(func(s *fanout.Sub) { want = g.interest(s) }) {
		return
	}
	if !x.rewound {
		x.rewound = true
		if err := g.rewind(ctx, h, &want); err != nil && ctx.Err() == nil && !errors.Is(err, errGone) {
			g.l.log.Warn("the last messages of a subscription are not all looked for", "error", err)
		}
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
		err := g.parts[missing[0].Partition].feed(ctx, x, &want, missing[0], turnEnd)
		silent := errors.Is(err, errSilent)
		switch {
		case err == nil:
		case ctx.Err() != nil || errors.Is(err, errGone):
			return
		case errors.Is(err, errTurn) && g.putOff(x, time.Time{}):
			return
		case silent && time.Since(x.waits) < historyPatience && g.putOff(x, x.waits):
			pause(ctx, silentPause)
			return
		default:
			g.l.log.Warn("a history is not read to its end: the rest is a gap", "error", err)
			h.Do(func(s *fanout.Sub) { s.Release() })
			return
		}
	}
}

// putOff has a history go on later, if there is room.
func (g *generation) putOff(x *history, waits time.Time) bool {
	x.waits = waits
	return g.history(x)
}

// next is the next batch of a follower, if one comes within a turn. ctx is of the generation.
func (p *partition) next(ctx context.Context, f *client.Follower) (*client.FollowBatch, error) {
	turn, cancel := context.WithTimeout(ctx, historyTurn)
	defer cancel()
	part, err := f.Next(turn)
	switch {
	case err != nil && turn.Err() != nil && ctx.Err() == nil:
		p.silent.Store(time.Now().UnixNano())
		return nil, fmt.Errorf("%w: %w", errSilent, err)
	case err != nil:
		return nil, err
	case part.Through.Lineage != p.end.Lineage:
		return nil, fmt.Errorf("lineage of %s is %d, it was %d", p.id, part.Through.Lineage, p.end.Lineage)
	}
	if err := p.learn(turn, part); err != nil { // another replica may say
		p.silent.Store(time.Now().UnixNano())
		return nil, fmt.Errorf("%w: %w", errSilent, err)
	}
	p.silent.Store(0)
	return part, nil
}

// quiet reports whether nothing came from the partition for a turn, just now: others need not wait for that as long.
func (p *partition) quiet() bool { return time.Now().UnixNano()-p.silent.Load() < int64(historyTurn) }

// feed reads a part of the partition's log for a subscription.
func (p *partition) feed(ctx context.Context, x *history, want *interest, r fanout.Range, turnEnd time.Time) error {
	if x.waits.IsZero() {
		x.waits = time.Now()
	}
	if p.quiet() {
		return errSilent
	}
	after := client.Position{Seq: r.After.Seq, Lineage: p.end.Lineage}
	if p.g.several() && after.Seq > 0 {
		after.Seq-- // of the entry there it may lack some
	}
	for {
		f, err := p.reread(ctx, want, after)
		if err != nil {
			return err
		}
		err = p.feedFrom(ctx, x, f, r.Through.Seq, turnEnd)
		f.Close() //nolint:errcheck // it never fails
		var freed *client.SnapshotRequiredError
		if !errors.As(err, &freed) || freed.After.Seq <= after.Seq {
			return err
		}
		after = freed.After
		lost := fanout.Position{Seq: min(freed.After.Seq, r.Through.Seq)}
		if p.g.several() {
			lost.Index = math.MaxUint32 // what it lacks of that entry is not known
		}
		if err := p.g.give(ctx, x.h, turnEnd, func(s *fanout.Sub) bool { return s.Lost(int(p.id), lost) }); err != nil {
			return err
		}
		if freed.After.Seq >= r.Through.Seq {
			return nil
		}
	}
}

// reread follows the log from a position on, for one subscription.
func (p *partition) reread(ctx context.Context, want *interest, after client.Position) (*client.Follower, error) {
	return p.g.l.cfg.Client.Follow(ctx, p.rereading(want, after))
}

// rereading is how a log is read for one subscription. A gateway that follows everything asks for that here too, as gateways
// did always: it works with nodes that know no selections.
func (p *partition) rereading(want *interest, after client.Position) client.FollowOptions {
	o := client.FollowOptions{Partition: p.id, After: after, Window: historyWindow}
	if p.g.wanted == nil {
		o.Executions = p.g.matches()
	} else {
		o.Selection = &client.Selection{Selectors: want.list, Quiet: time.Millisecond}
	}
	return o
}

func (p *partition) feedFrom(ctx context.Context, x *history, f *client.Follower, through uint64, turnEnd time.Time) error {
	b := p.batch()
	for f.After().Seq < through {
		if time.Now().After(turnEnd) && len(p.g.histories) > 0 {
			return errTurn
		}
		part, err := p.next(ctx, f)
		if err != nil {
			return err
		}
		x.waits = time.Now()
		b.fill(part, int(p.id))
		next := 0
		err = p.g.give(ctx, x.h, turnEnd, func(s *fanout.Sub) bool {
			for next < len(b.messages) && b.messages[next].At.Seq <= through {
				if !s.Feed(&b.messages[next]) {
					return false
				}
				next++
			}
			s.Fed(int(p.id), p.g.examined(min(b.through.Seq, through)))
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
func (g *generation) give(ctx context.Context, h *server.Held, turnEnd time.Time, f func(*fanout.Sub) bool) error {
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
		case time.Now().After(turnEnd) && len(g.histories) > 0:
			return errTurn
		case !pause(ctx, historyPause):
			return ctx.Err()
		}
	}
}
