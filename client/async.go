package client

import (
	"context"
	"errors"
)

type completion struct {
	callback func(Receipt, error)
	receipt  Receipt
	err      error
}

// SubmitAsync sends one order and returns; done runs once with the outcome, in
// the order of the answers, on a goroutine of this package (or of a concurrent
// Submit on the same session). It must not block, and may submit again with
// SubmitAsync or Enqueue. fix is copied. An order that is refused with
// ErrVersionAwaited is sent again for up to a second. An error from SubmitAsync itself
// (ErrWindowFull, ErrClosed, a *RejectError) means that done will not run.
func (s *Session) SubmitAsync(fix []byte, done func(Receipt, error)) error {
	return s.enqueue(fix, nil, done, true)
}

// Enqueue is SubmitAsync that leaves the order in the session's buffer until
// SubmitAsync, Submit, Push or an answer to an earlier order sends it: many
// orders then cost one system call.
func (s *Session) Enqueue(fix []byte, done func(Receipt, error)) error {
	return s.enqueue(fix, nil, done, false)
}

// OnBatch makes f run after the callbacks of each batch of answers, on their
// goroutine: the place to write out what they collected. What f enqueues leaves in
// one write. nil ends it.
func (s *Session) OnBatch(f func()) {
	s.p.mu.Lock()
	s.onBatch = f
	s.p.mu.Unlock()
}

// Push writes what Enqueue left.
func (s *Session) Push() {
	s.p.mu.Lock()
	s.push()
	s.p.mu.Unlock()
}

// enqueue sends an order, or with op a change of a region.
func (s *Session) enqueue(fix []byte, op *regionOp, done func(Receipt, error), push bool) error {
	if done == nil {
		return errors.New("client: SubmitAsync: done is nil, allowed: a function; use Submit to wait for the outcome")
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	now := s.stamp()
	if op == nil {
		if err := sized(s.partition, fix); err != nil {
			return err
		}
	}
	if err := s.admit(context.Background(), now, never, false); err != nil {
		return err
	}
	o := s.win.take()
	o.buf = append(o.buf[:0], fix...)
	o.op = op
	o.payload, o.callback, o.submitted, o.deadline = o.buf, done, now, now+int64(s.client.cfg.RequestTimeout)
	s.async++
	s.submitted(o)
	if c := s.p.conn; push || c != nil && len(c.out) >= enqueueLimit {
		s.push()
	}
	s.wakeReader()
	return nil
}

// enqueueLimit: this many bytes are worth a system call.
const enqueueLimit = 64 << 10

// wakeReader makes sure that a goroutine reads answers for SubmitAsync.
func (s *Session) wakeReader() {
	if s.async == 0 && !s.closed && !s.listens() {
		return
	}
	if !s.reader && !s.closed {
		s.reader = true
		go s.readLoop()
	} else if s.idle {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// listens reports whether the session reads when it waits for no answer: executions come at
// any time.
func (s *Session) listens() bool { return s.client.cfg.OnExecutions != nil && s.reads == 0 }

// readLoop leads while asynchronous orders are unanswered, or the session listens, and no
// synchronous caller leads. It lives until Close.
func (s *Session) readLoop() {
	w := newWaiter()
	ctx := context.Background()
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	for !s.closed {
		if s.async > 0 || s.listens() {
			s.p.wait(ctx, &w, min(s.lookups.until(), s.awaited.until()))
			continue
		}
		s.p.leave(&w)
		s.idle = true
		s.p.mu.Unlock()
		<-s.wake
		s.p.mu.Lock()
		s.idle = false
	}
}

// stamp is the time of a submission. From within a callback it is that of the
// answers that callback belongs to: at a million orders a second reading the
// clock for each would cost more than encoding it.
func (s *Session) stamp() int64 {
	if s.calling {
		return s.p.now
	}
	return nanotime()
}

// runCallbacks runs what finish and answerLookup queued, outside the lock, one
// goroutine at a time, so that callbacks see the order of the answers.
func (s *Session) runCallbacks(now int64) {
	if s.calling {
		s.keepFound()
		return
	}
	if len(s.completed)+len(s.found) == 0 {
		return
	}
	s.calling = true
	for s.p.now = now; len(s.completed)+len(s.found) > 0; s.p.now = nanotime() {
		done, found := s.completed, s.found
		s.completed, s.found = s.spareDone, s.spareFound
		s.spareDone, s.spareFound = nil, nil
		onBatch := s.onBatch
		s.p.mu.Unlock()
		for i := range done {
			done[i].callback(done[i].receipt, done[i].err)
			done[i] = completion{}
		}
		s.runFound(found)
		if onBatch != nil {
			onBatch()
		}
		s.p.mu.Lock()
		s.spareDone, s.spareFound = done[:0], found[:0]
	}
	s.calling = false
}
