package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A shard that is to be removed takes no new sessions and no new orders, and lets
// its clients find out what became of those they sent. A refusal as closed is
// final there: the node looked whether a copy was applied, and takes none any
// more. So the order can go to another partition, once, and does:
//
// A Session of one's own moves as a whole, when nothing it sent is unanswered any
// more, and is a new session of the grid there. The orders of Client.Submit are
// routed anew one by one, each to the partition that its ClOrdID belongs to now.

// errMoving ends the connection of a session that goes to another partition.
var errMoving = fmt.Errorf("%w: going to another partition", ErrPartitionClosed)

// onClosed: the partition takes no new orders, this one among them.
func (s *Session) onClosed(seq uint64, cell *cell, reject *RejectError) error {
	s.client.sawClosed(s.at(), reject.Detail)
	s.good()
	if s.shared {
		o := cell.ord
		cell.ord = nil
		s.settle(seq)
		if o == nil {
			s.stats.LateRefused++
		} else {
			s.reroute(o, reject)
		}
		return nil
	}
	cell.refused()
	s.moving = true // once the other answers of this connection are there, see mayMove
	return nil
}

// mayMove says whether the session is to go, and nobody waits for an answer that
// only its present partition can give.
func (s *Session) mayMove() bool { return s.moving && !s.unresolved() }

func (s *Session) unresolved() bool {
	for seq := s.win.head; seq < s.win.next; seq++ {
		if c := s.win.at(seq); c.sent && c.ord != nil {
			return true
		}
	}
	return false
}

// reroute takes an order that was not applied off the session. Client.Submit
// routes it again by itself.
func (s *Session) reroute(o *pending, cause error) {
	s.stats.Submitted--
	s.stats.Moved++
	if o.callback == nil {
		s.finish(o, Receipt{}, cause)
		return
	}
	s.async--
	go s.client.submitAgain(append([]byte(nil), o.payload...), o.callback, o.deadline, cause)
	s.win.release(o)
}

// submitAgain is SubmitAsync of an order that a closed partition refused.
func (c *Client) submitAgain(fix []byte, done func(Receipt, error), deadline int64, cause error) {
	var back backoff
	for back.wait(c.ctx.Done(), c.cfg.RetryMax) && nanotime() < deadline {
		p, err := c.Route(fix)
		if err == nil {
			var s *Session
			if s, err = c.sharedSession(p, 0); err == nil {
				err = s.enqueueUntil(fix, done, deadline)
			}
		}
		if err == nil {
			return
		}
		if cause = err; !errors.Is(err, ErrWindowFull) {
			break
		}
	}
	done(Receipt{}, &NotSentError{Cause: cause})
}

// submitRouted is SubmitTo wherever the order belongs, until a partition takes it.
func (c *Client) submitRouted(ctx context.Context, fix []byte) (Receipt, error) {
	var back backoff
	for until := c.deadline(ctx, nanotime()); ; {
		p, err := c.Route(fix)
		if err != nil {
			return Receipt{}, err
		}
		r, err := c.SubmitTo(ctx, p, fix)
		if err == nil || FateOf(err) != FateRefused || !errors.Is(err, ErrPartitionClosed) || nanotime() >= until || !back.wait(ctx.Done(), c.cfg.RetryMax) {
			return r, err
		}
	}
}

// relocate brings a session to another partition if its own takes no more orders,
// or is gone, and no node owes it an answer. It runs before an attempt to connect.
func (s *Session) relocate() {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	t := s.client.table.Load()
	_, here := t.find(s.at())
	switch {
	case s.closed || here && !s.moving || !here && s.at().Shard() < t.shards:
		return
	case s.reads != 0:
		s.endLookups(&removedError{what: "partition " + s.at().String()})
	case s.unresolved():
		return // only where they were sent can it be known
	case s.shared:
		s.rerouteAll()
	default:
		s.moveTo(t)
	}
}

// rerouteAll is for orders that no node has applied. What comes later, if the
// partition takes orders again, is another session of the grid: numbers were used.
func (s *Session) rerouteAll() {
	for seq := s.win.head; seq < s.win.next; seq++ {
		if cell := s.win.at(seq); cell.ord != nil {
			o := cell.ord
			cell.ord = nil
			s.reroute(o, errMoving)
		}
	}
	s.win.next = s.win.head
	s.beginAnew()
	s.runCallbacks(nanotime())
}

// beginAnew makes it a session that no node knows.
func (s *Session) beginAnew() {
	s.id, s.opened, s.evicting, s.moving = randomID(), false, false, false
	s.epoch, s.followed, s.attempt, s.expected, s.member = 0, 0, 0, 0, ""
	s.empties = empties{}
}

// moveTo makes it a new session of a partition that takes orders. What was not
// sent goes with it; install gives it new numbers.
func (s *Session) moveTo(t *table) {
	from := s.at()
	n := len(t.placing)
	if n == 0 || n == 1 && t.placing[0] == from {
		s.moving = false // there is no other, or this one is open again
		return
	}
	to := t.placing[rand.IntN(n)]
	if to == from {
		to = t.placing[(slices.Index(t.placing, from)+1+rand.IntN(n-1))%n]
	}
	s.where.Store(uint32(to))
	s.beginAnew()
	s.stats.Moves++
	s.stats.Moved += s.win.inFlight()
	s.client.cfg.Logger.Info("session moves", "from", from.String(), "to", to.String(), "orders", s.win.inFlight())
}

// notTakenIn: the partition opens no new session, and does not know this one.
func (s *Session) notTakenIn(reject *RejectError) {
	s.client.sawClosed(s.at(), reject.Detail)
	for seq := s.win.head; seq < s.win.next; seq++ {
		if cell := s.win.at(seq); cell.sent && cell.ord != nil {
			s.giveUp(seq, ErrSessionEvicted)
		}
	}
	for seq := s.win.head; seq < s.win.next; seq++ {
		if cell := s.win.at(seq); cell.ord == nil {
			*cell = cell.settled() // nobody waits for it, and nobody will answer
		}
	}
	s.moving = true
}

// sawClosed is told that a partition refused as closed, by the layout of that
// revision.
func (c *Client) sawClosed(p wire.PartitionID, revision uint64) {
	for {
		t := c.table.Load()
		if t.refuses(p) || c.table.CompareAndSwap(t, t.closing(p, revision)) {
			break
		}
	}
	c.ageTable(p.Shard())
}

// ageTable has the table of a shard asked for soon.
func (c *Client) ageTable(shard int) {
	select {
	case c.aged <- shard:
	default: // enough is waiting
	}
}

// removedError: what was asked for was in a shard that the grid does not have any
// more, or may have been.
type removedError struct{ what string }

func (e *removedError) Error() string {
	return fmt.Sprintf("client: %s is not held: shards were removed from the grid, and the sinks of the grid have what they held", e.what)
}

// Is matches ErrFreed.
func (e *removedError) Is(target error) bool { return target == ErrFreed }

// endLookups answers all reads with err.
func (s *Session) endLookups(err error) {
	for id := s.lookups.head; id < s.lookups.next; id++ {
		if l := s.lookups.at(id); l.state != lookupSettled {
			s.answerLookup(l, found{err: err})
			s.lookups.settle(id)
		}
	}
	s.runCallbacks(nanotime())
}
