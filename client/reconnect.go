package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// hint is the primary's address as reported by a node, and its epoch.
type hint struct {
	address string // "" for none
	epoch   uint64
}

// hintOf takes the hint out of an error. One that names the node that gave it is followed as well:
// that node was replaced and is the primary again.
func hintOf(err error) hint {
	var not *notPrimaryError
	var reject *RejectError
	switch {
	case errors.As(err, &not):
		return hint{not.hint, not.epoch}
	case errors.As(err, &reject) && reject.Code == wire.CodeSessionMoved:
		return hint{address: reject.from}
	}
	return hint{}
}

// connect makes sure that a connection attempt is running.
func (s *Session) connect() { s.startRecovery(hint{}, "") }

// reconnect after a loss: only if an order or a goroutine waits. An idle
// session connects again at its next use.
func (s *Session) reconnect(h hint, failed string) {
	if s.wanted() {
		s.startRecovery(h, failed)
	}
}

func (s *Session) wanted() bool {
	if s.p.first != nil || !s.lookups.empty() || len(s.awaited.orders) > 0 {
		return true
	}
	for seq := s.win.head; seq < s.win.next; seq++ {
		if s.win.at(seq).ord != nil {
			return true
		}
	}
	return false
}

func (s *Session) startRecovery(h hint, failed string) {
	if s.recovering || s.closed || s.p.conn != nil {
		return
	}
	now := nanotime()
	if t := &s.trouble; t.since != 0 && now-max(t.since, t.triedAt) > 4*int64(s.client.cfg.RetryMax) {
		t.back = backoff{} // first attempt since: the old backoff must not slow it
	}
	s.recovering, s.broken = true, nil
	go s.recover(h, failed)
}

// recover connects to the primary, opens the session there and sends what is
// unanswered. It tries until that succeeds or no caller waits any more.
func (s *Session) recover(h hint, failed string) {
	done := make(chan struct{})
	defer close(done)
	go s.sweepWhileBroken(done)
	began := nanotime()
	for first := true; ; first = false {
		var open bool
		if h, open = s.nextTurn(h); !open {
			return
		}
		addr, err := s.primary(h.address, failed, first)
		var c *conn
		var member string
		var opened wire.SessionOpened
		if err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), s.client.attemptTimeout(time.Duration(nanotime()-began)))
			epoch, attempt := s.nextAttempt()
			if s.reads != readsOfBackup {
				go s.lookElsewhere(ctx, cancel, addr)
			}
			c, member, opened, err = s.openSession(ctx, addr, epoch, attempt)
			cancel()
		}
		s.p.mu.Lock()
		if err == nil {
			s.install(c, member, &opened)
			s.p.mu.Unlock()
			return
		}
		s.troubled(nanotime(), 0, err)
		s.trouble.triedAt = nanotime()
		var not *notPrimaryError
		if errors.As(err, &not) {
			s.stats.Redirects++
		}
		var reject *RejectError
		if errors.As(err, &reject) && reject.Code == wire.CodeSessionMoved {
			s.attempt = max(s.attempt, reject.Detail)
		}
		if h, failed = hintOf(err), addr; h.address == addr {
			h = hint{}
		}
		if s.closed || !s.wanted() || permanent(err) {
			s.endRecovery(err)
			s.p.mu.Unlock()
			return
		}
		s.p.mu.Unlock()
	}
}

// nextTurn waits until the next attempt is due and returns its target; false: the session was
// closed. A later epoch is followed without a pause, whether a node gave it as a hint or the table
// has it by now; each epoch once.
func (s *Session) nextTurn(h hint) (hint, bool) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	pause := s.trouble.back.pause(s.client.cfg.RetryMax, rand.Int64N)
	known := max(s.epoch, s.followed)
	switch {
	case h.epoch > known && h.address != "":
		s.followed = h.epoch
		return h, true
	case h.epoch != 0 && h.epoch < known:
		h = hint{} // of a node that is behind
	}
	news := func() (bool, <-chan struct{}) {
		t := s.client.table.Load()
		p, ok := t.find(s.partition)
		if ok && p.Epoch > known && p.Primary.Address != "" {
			h = hint{p.Primary.Address, p.Epoch}
			return true, nil
		}
		return false, t.changed
	}
	yes, changed := news()
	if !yes && pause > 0 {
		s.p.mu.Unlock()
		ok := sleep(pause, s.stop, changed, news)
		s.p.mu.Lock()
		if !ok {
			return h, false
		}
	}
	s.followed = max(s.followed, h.epoch)
	return h, true
}

// permanent reports whether retries cannot help: the caller has to change something.
func permanent(err error) bool {
	var goaway *GoawayError
	var reject *RejectError
	var old *OldNodeError
	return errors.As(err, &old) || errors.As(err, &goaway) && goaway.permanent() || errors.As(err, &reject) && reject.Code == wire.CodeNotPermitted
}

// endRecovery leaves the session without a connection. After a permanent error all waiting orders
// fail.
func (s *Session) endRecovery(err error) {
	s.recovering = false
	if permanent(err) {
		s.broken = err
		for seq := s.win.head; seq < s.win.next; seq++ {
			if s.win.at(seq).ord != nil {
				s.giveUp(seq, err)
			}
		}
		s.endAwaited(err)
		s.giveUpLookups(err)
		s.runCallbacks(nanotime())
	}
	s.p.wakeAll()
}

// nextAttempt numbers the next OpenSession and carries the highest epoch known, so that a node that
// was replaced does not take it for its own.
func (s *Session) nextAttempt() (epoch, attempt uint64) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.attempt++
	return max(s.epoch, s.client.epochOf(s.partition)), s.attempt
}

// lookElsewhere aborts a hanging attempt (the node is gone, and its address with it) as soon as the
// grid names another primary.
func (s *Session) lookElsewhere(ctx context.Context, cancel context.CancelFunc, addr string) {
	for back := (backoff{longest: 10 * time.Millisecond, attempts: 1}); back.wait(ctx.Done(), s.client.cfg.RetryMax); {
		if err := s.client.refresh(ctx, s.partition, addr); err != nil {
			continue
		}
		s.p.mu.Lock()
		known := max(s.epoch, s.followed)
		s.p.mu.Unlock()
		if p, ok := s.client.partition(s.partition); ok && p.Epoch > known && p.Primary.Address != "" && p.Primary.Address != addr {
			cancel()
			return
		}
	}
}

// primary is the hint, or the table's primary, refreshed first if the old one has just failed.
func (s *Session) primary(hint, failed string, first bool) (string, error) {
	if s.reads == readsOfBackup {
		return s.copyToRead(failed)
	}
	if hint != "" {
		return hint, nil
	}
	var err error
	if failed != "" || !first || s.client.addressOf(s.partition) == "" {
		ctx, cancel := context.WithTimeout(context.Background(), s.client.attemptTimeout(0))
		err = s.client.refresh(ctx, s.partition, failed)
		cancel()
	}
	if addr := s.client.addressOf(s.partition); addr != "" && !errors.Is(err, ErrProtocol) { // else it may be another grid's by now
		return addr, nil
	}
	if err == nil {
		err = fmt.Errorf("%s has no primary at epoch %d", s.partition, s.client.epochOf(s.partition))
	}
	return "", err
}

// sweepWhileBroken ends orders in time while no goroutine reads.
func (s *Session) sweepWhileBroken(done chan struct{}) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case now := <-t.C:
			s.p.mu.Lock()
			if s.p.conn == nil {
				s.sweep(nanosOf(now))
				s.runCallbacks(nanosOf(now))
			}
			s.p.mu.Unlock()
		}
	}
}

// install makes c the connection and sends every order without an answer again,
// oldest first, under its number.
func (s *Session) install(c *conn, member string, m *wire.SessionOpened) {
	s.recovering = false
	if s.closed {
		c.st.Close() //nolint:errcheck // closed while it was being made
		return
	}
	if s.reads != 0 {
		s.installReader(c, member)
		return
	}
	forgotten := s.opened && (m.Slot != s.slot || m.Generation != s.gen || m.LastClientSeq < s.lastAck)
	if forgotten {
		s.stats.Evictions++
		s.client.cfg.Logger.Info("session was evicted by the grid", "partition", s.partition.String(), "peer", c.addr, "unanswered", s.win.inFlight())
	}
	s.empties = empties{}
	first := s.win.head
	if s.opened && !forgotten {
		if first = s.firstNumber(m); s.win.head-first > maxFill {
			s.startOver(c, m)
			return
		}
	}
	s.expected = 0
	if forgotten || !s.opened {
		s.renumber(m.LastClientSeq)
		first = s.win.head
	}
	s.slot, s.gen, s.epoch, s.opened, s.evicting = m.Slot, m.Generation, m.Epoch, true, false
	s.client.sawEpoch(s.partition, m.Epoch)
	s.win.limit = uint64(min(s.client.cfg.MaxInFlight, int(min(m.Window, maxWindow))))
	if s.trouble.since == 0 {
		s.trouble = trouble{} // no failure was pending: the attempt just made must not slow a later one
	}
	s.member = member
	s.stats.Connects++
	s.p.conn = c
	s.lastOK = nanotime()
	for seq := first; seq < s.win.head; seq++ {
		s.encodeEmpty(c, seq)
	}
	for seq := s.win.head; seq < s.win.next; seq++ {
		s.encode(c, seq)
	}
	s.resendLookups(c)
	s.client.cfg.Logger.Info("session connected", "partition", s.partition.String(), "peer", c.addr, "member", member, "epoch", m.Epoch, "resent", s.win.inFlight())
	s.p.flush(c, false)
	s.p.wakeAll()
	s.wakeReader()
	s.runCallbacks(nanotime()) // of orders that renumber gave up
}

// maxFill bounds the empty frames that close a gap of refused orders. A new primary knows what was
// applied, not what was refused: after more consecutive refusals than its window it would treat the
// next number as a gap.
const maxFill = 1 << 16

// firstNumber is the number to begin with on a new connection: the oldest without an answer, or
// less if the node would treat that as a gap.
func (s *Session) firstNumber(m *wire.SessionOpened) uint64 {
	first := min(s.win.head, m.LastClientSeq+uint64(m.Window))
	if s.expected != 0 {
		first = min(first, s.expected)
	}
	return first
}

// startOver is for a session with an even longer gap: a fresh id begins at 1.
func (s *Session) startOver(c *conn, m *wire.SessionOpened) {
	s.client.cfg.Logger.Info("session starts over under a new id", "partition", s.partition.String(), "peer", c.addr,
		"applied", m.LastClientSeq, "next", s.win.head, "window", m.Window)
	c.st.Close() //nolint:errcheck // not used for anything yet
	s.id, s.opened = randomID(), false
	s.startRecovery(hint{address: c.addr}, "")
}

// renumber moves the session to fresh numbers above last. What was sent under
// the old ones cannot be recognised by the grid any more: its outcome is
// unknown. What was not sent, or was refused for the lost session, moves on.
func (s *Session) renumber(last uint64) {
	var keep []*pending
	for seq := s.win.head; seq < s.win.next; seq++ {
		cell := s.win.at(seq)
		if cell.ord == nil {
			continue
		}
		if cell.sent {
			s.giveUp(seq, ErrSessionEvicted)
			continue
		}
		keep = append(keep, cell.ord)
		cell.ord = nil
	}
	s.win.head, s.win.next = last+1, last+1
	s.lastAck, s.lastSeq = last, 0
	for _, o := range keep {
		s.win.add(o)
	}
	s.room()
}
