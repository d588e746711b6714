package client

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// versionPatience is how long an order is sent again that a copy of the partition is not known to
// know: the primary asks the copies upon the first one.
const versionPatience = time.Second

// awaited are the orders that wait until the partition is known to take orders of their version of
// FIX, oldest first. The first one of a session goes alone, and is sent again while it is refused;
// the others go when it is taken, so that they keep their order, and a copy that does not learn the
// version costs one order a pause. They have no number, and take up room in the window.
type awaited struct {
	orders  []*pending
	probe   *pending     // the one that goes alone and has no answer, nil: none
	taken   bool         // the version is known
	at      int64        // when the next one is sent
	back    backoff      // of what was refused
	refusal *RejectError // the last one
}

// laterVersion is how an order of FIX 5.0 SP2 begins.
var laterVersion = []byte("8=FIXT")

// until is when an order has to be sent.
func (a *awaited) until() int64 {
	if len(a.orders) == 0 || a.probe != nil {
		return never
	}
	return a.at
}

// submitted takes a new order into the session.
func (s *Session) submitted(o *pending) {
	s.stats.Submitted++
	if a := &s.awaited; (!a.taken || len(a.orders) > 0) && o.op == nil && bytes.HasPrefix(o.payload, laterVersion) {
		if a.probe != nil || len(a.orders) > 0 {
			a.orders = append(a.orders, o)
			return
		}
		a.probe = o
	}
	s.send(o)
}

// awaitVersion keeps an order that was refused because of its version; false: it is refused for
// good. The order has no number any more.
func (s *Session) awaitVersion(o *pending, reject *RejectError) bool {
	if reject.Code != wire.CodeVersionAwaited || o.op != nil || s.closed {
		return false
	}
	a, now := &s.awaited, s.p.now
	a.refusal, a.taken = reject, false
	if o.again == 0 {
		o.again = now + int64(s.patience)
	}
	if o.again <= now {
		return false
	}
	i := len(a.orders)
	switch {
	case o == a.probe:
		a.probe, i = nil, 0
		s.pauseAwaited(now)
	case i == 0 && a.probe == nil:
		s.pauseAwaited(now)
	default: // under way when a new primary has to ask again: older than what came in since
		for i > 0 && a.orders[i-1].submitted > o.submitted {
			i--
		}
	}
	a.orders = slices.Insert(a.orders, i, o)
	return true
}

func (s *Session) pauseAwaited(now int64) {
	s.awaited.at = now + int64(s.awaited.back.pause(s.client.cfg.RetryMax, rand.Int64N))
}

// sendAwaited sends the first of the orders that wait, and all when one was taken.
func (s *Session) sendAwaited(c *conn, now int64) {
	a := &s.awaited
	if now < a.until() || s.evicting {
		return
	}
	n := 0
	for a.probe == nil && n < len(a.orders) && s.win.inFlight() < s.win.limit {
		o := a.orders[n]
		n++
		s.win.add(o)
		s.win.at(o.clientSeq).submitted = now
		s.encode(c, o.clientSeq)
		if !a.taken {
			a.probe = o
		}
	}
	a.orders = slices.Delete(a.orders, 0, n)
	s.forgetAwaited()
}

// probed notes the outcome of the order that went alone.
func (s *Session) probed(err error) {
	a := &s.awaited
	a.probe, a.at = nil, 0
	switch {
	case err == nil, errors.Is(err, ErrDuplicateClOrdID), errors.Is(err, ErrLimitRefused), errors.Is(err, ErrFunctionRefused):
		a.taken = !errors.Is(err, ErrUnknownOutcome) // these come after the look at the version
	case errors.Is(err, ErrVersionAwaited):
		s.pauseAwaited(s.p.now)
	}
	s.forgetAwaited()
}

// forgetAwaited begins anew when no order waits.
func (s *Session) forgetAwaited() {
	if a := &s.awaited; len(a.orders) == 0 && a.probe == nil {
		*a = awaited{taken: a.taken}
	}
}

// sweepAwaited ends the orders whose time is over.
func (s *Session) sweepAwaited(now int64) {
	refused := s.awaited.refusal != nil
	s.leaveAwaited(func(o *pending) error {
		if refused && o.again == 0 {
			o.again = now + int64(s.patience)
		}
		if now < o.deadline && (!refused || now < o.again) {
			return nil
		}
		return &timeoutError{limit: time.Duration(o.deadline - o.submitted).Round(time.Millisecond), last: s.trouble.last}
	})
}

// endAwaited ends all of them.
func (s *Session) endAwaited(cause error) { s.leaveAwaited(func(*pending) error { return cause }) }

// stopAwaiting ends the waiting of an order, if it is one of them.
func (s *Session) stopAwaiting(o *pending, cause error) bool {
	if !slices.Contains(s.awaited.orders, o) {
		return false
	}
	s.leaveAwaited(func(other *pending) error {
		if other == o {
			return cause
		}
		return nil
	})
	return true
}

// leaveAwaited ends orders for which why has a cause: refused, if the version was, else not sent.
func (s *Session) leaveAwaited(why func(*pending) error) {
	a := &s.awaited
	if len(a.orders) == 0 {
		return
	}
	refusal := a.refusal
	a.orders = slices.DeleteFunc(a.orders, func(o *pending) bool {
		cause := why(o)
		switch {
		case cause == nil:
			return false
		case refusal != nil:
			s.stats.Refused++
			s.finish(o, Receipt{}, refusal)
		default:
			s.stats.NotSent++
			s.finish(o, Receipt{}, &NotSentError{Partition: s.partition, Waited: time.Duration(nanotime() - o.submitted), Cause: cause})
		}
		return true
	})
	s.forgetAwaited()
	s.room()
}
