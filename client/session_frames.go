package client

import (
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// onFrame handles what a primary sends to a session. An error ends the
// connection; what is unanswered is then sent again over the next one.
func (s *Session) onFrame(c *conn, frame []byte) error {
	switch t := wire.FrameType(frame); t {
	case wire.TypeAck:
		var m wire.Ack
		if err := wire.DecodeAck(frame, &m); err != nil {
			return s.violation(c, "ack", err)
		}
		return s.onAck(c, &m)
	case wire.TypeReject:
		var m wire.Reject
		if err := wire.DecodeReject(frame, &m); err != nil {
			return s.violation(c, "reject", err)
		}
		return s.onReject(c, &m)
	case wire.TypeExecutions:
		return s.onExecutions(c, frame)
	case wire.TypeRegionApplied:
		return s.onRegionApplied(c, frame)
	case wire.TypeInvoked:
		return s.onInvoked(c, frame)
	case wire.TypeRegionBatched:
		return s.onRegionBatched(c, frame)
	case wire.TypeNotPrimary:
		var m wire.NotPrimary
		if err := wire.DecodeNotPrimary(frame, &m); err != nil {
			return s.violation(c, "not-primary", err)
		}
		s.stats.Redirects++
		return &notPrimaryError{partition: s.partition, address: c.addr, epoch: m.Epoch, hint: string(m.Address)}
	case wire.TypeGoaway:
		var m wire.Goaway
		if err := wire.DecodeGoaway(frame, &m); err != nil {
			return s.violation(c, "goaway", err)
		}
		return &GoawayError{Address: c.addr, Code: m.Code, Text: printable(m.Text)}
	case wire.TypePong, wire.TypeTable:
		return nil // not requested here, but harmless
	case wire.TypeGetReply:
		if s.reads != 0 {
			return s.onGetReply(c, frame)
		}
		fallthrough
	default:
		return s.violation(c, fmt.Sprintf("frame type %s on a session, allowed: Ack, Reject, NotPrimary, Goaway", t), nil)
	}
}

// onAck checks order before anything else: acks come in the order of the
// client's numbers, none left out, and the log's numbers rise with them. Only
// for what was sent more than once may the node answer as it finds its stored
// replies.
func (s *Session) onAck(c *conn, m *wire.Ack) error {
	cell := s.win.at(m.ClientSeq)
	switch {
	case m.Slot != s.slot:
		return s.violation(c, fmt.Sprintf("ack is for session slot %d, allowed: %d", m.Slot, s.slot), nil)
	case !s.awaits(m.ClientSeq):
		if s.empties.answered(m.ClientSeq) {
			return nil // the stored reply
		}
		return s.violation(c, fmt.Sprintf("ack is for order %d, allowed: one without an answer (%d..%d)", m.ClientSeq, s.win.head, s.win.next-1), nil)
	case m.ClientSeq != s.win.head && !cell.resent && !s.regions: // a failed condition may be answered late
		s.stats.Gaps++
		return s.violation(c, fmt.Sprintf("ack is for order %d, allowed: %d, the oldest without an answer: a gap", m.ClientSeq, s.win.head), nil)
	case m.Seq <= s.lastSeq && !cell.resent || m.Seq == 0:
		return s.violation(c, fmt.Sprintf("ack of order %d has seq %d, allowed: more than %d", m.ClientSeq, m.Seq, s.lastSeq), nil)
	}
	s.lastAck, s.lastSeq = max(s.lastAck, m.ClientSeq), max(s.lastSeq, m.Seq)
	if m.Epoch > s.epoch {
		s.epoch = m.Epoch
		s.client.sawEpoch(s.partition, m.Epoch)
	}
	s.good()
	o := cell.ord
	cell.ord = nil
	s.settle(m.ClientSeq)
	if o == nil {
		s.stats.LateAccepted++
		return nil
	}
	s.stats.Accepted++
	dup := m.Flags&wire.AckDup != 0
	if dup {
		s.stats.Duplicates++
	}
	s.finish(o, Receipt{Partition: s.partition, Seq: m.Seq, Epoch: m.Epoch, Copies: m.Copies, Duplicate: dup, Hash: m.Hash, Lineage: m.Lineage}, nil)
	return nil
}

func (s *Session) onReject(c *conn, m *wire.Reject) error {
	if s.reads != 0 {
		return s.onRefusedLookup(c, m, &RejectError{Partition: s.partition, Code: m.Code, Tag: m.Tag, Detail: m.Detail, Text: printable(m.Text), from: c.addr})
	}
	if m.ForType != wire.TypeSubmit && m.ForType != 0 && !(s.regions && (m.ForType == wire.TypeRegionApply || m.ForType == wire.TypeRegionBatch || m.ForType == wire.TypeInvoke)) {
		return s.violation(c, fmt.Sprintf("reject is for a %s, allowed: Submit", m.ForType), nil)
	}
	if !s.awaits(m.RequestID) {
		if s.empties.answered(m.RequestID) {
			return nil
		}
		return s.violation(c, fmt.Sprintf("reject is for order %d, allowed: one without an answer (%d..%d)", m.RequestID, s.win.head, s.win.next-1), nil)
	}
	reject := &RejectError{Partition: s.partition, Code: m.Code, Tag: m.Tag, Detail: m.Detail, Limit: m.Limit, Text: printable(m.Text), from: c.addr}
	cell := s.win.at(m.RequestID)
	switch m.Code {
	case wire.CodeSessionMoved:
		// Of an earlier copy it decides nothing: the session is checked first.
		cell.sent = cell.resent
		return reject
	case wire.CodeDraining:
		cell.refused()
		return reject // the same number again, at the next primary
	case wire.CodeSequenceGap:
		// Number and order go out again, from the oldest unanswered one on.
		cell.refused()
		s.stats.Gaps++
		s.expected = m.Detail
		return s.violation(c, fmt.Sprintf("the node expected order %d of the session and got %d", m.Detail, m.RequestID), reject)
	case wire.CodeSessionUnknown:
		return s.onSessionUnknown(m.RequestID, cell)
	}
	s.good()
	o := cell.ord
	cell.ord = nil
	resent, submitted := cell.resent, cell.submitted
	s.settle(m.RequestID)
	if o != nil && s.awaitVersion(o, reject) {
		return nil
	}
	decided := decides(m.Code) || !resent && m.Code != wire.CodeSessionWindow
	switch {
	case o == nil && decided:
		s.stats.LateRefused++
	case o == nil:
	case !decided:
		s.stats.Unknown++
		s.finish(o, Receipt{}, &UnknownOutcomeError{
			Partition: s.partition, ClientSeq: m.RequestID, Waited: time.Duration(nanotime() - submitted), Cause: reject})
	default:
		s.stats.Refused++
		s.finish(o, Receipt{}, reject)
	}
	return nil
}

// decides reports whether a refusal with this code means that no copy of the order was applied,
// however many were sent: the node gives it after it has looked at the session (see wire.Code). Any
// other code, including those of a later release, refuses only the copy it answers. onReject has
// handled refusals that are not final before.
func decides(code wire.Code) bool {
	switch code {
	case wire.CodeBadFIX, wire.CodeDuplicateClOrdID, wire.CodeCapacity, wire.CodeOverloaded, wire.CodeInsufficientInSync, wire.CodeTooLarge,
		wire.CodeFunctionRefused, wire.CodeLimitRefused, wire.CodeRegionUnknown, wire.CodeConditionFailed,
		wire.CodeFunctionAwaited, wire.CodeFunctionUnknown, wire.CodeFunctionFailed, wire.CodeVersionAwaited:
		return true
	}
	return false
}

// awaits reports whether the node owes an answer to the order of this number.
func (s *Session) awaits(seq uint64) bool {
	if !s.win.holds(seq) {
		return false
	}
	c := s.win.at(seq)
	return c.sent && !c.isSettled()
}

// errEvicted ends the connection of a session that the grid has forgotten.
var errEvicted = fmt.Errorf("%w: reopening it", ErrSessionEvicted)

// onSessionUnknown: the grid forgot the session. An order it saw for the first
// time was not applied and can go out under a new number; one that was sent
// before might have been.
func (s *Session) onSessionUnknown(seq uint64, cell *cell) error {
	if cell.resent && cell.ord != nil {
		s.giveUp(seq, ErrSessionEvicted)
	}
	cell.sent, cell.resent = false, false
	s.evicting = true
	for q := s.win.head; q < s.win.next; q++ {
		if c := s.win.at(q); c.sent && !c.isSettled() {
			return nil // wait for the other answers of this connection
		}
	}
	return errEvicted
}

func (s *Session) violation(c *conn, what string, cause error) error {
	s.stats.Violations++
	err := &ProtocolError{Address: c.addr, What: s.partition.String() + ": " + what, Cause: cause}
	s.client.cfg.Logger.Error("protocol violation", "partition", s.partition.String(), "peer", c.addr, "what", what, "cause", cause)
	return err
}

// onBroken starts the reconnect if a caller waits for it.
func (s *Session) onBroken(c *conn, cause error) {
	if s.closed {
		return
	}
	waiting := int64(0)
	for seq := s.win.head; seq < s.win.next; seq++ {
		if cell := s.win.at(seq); cell.ord != nil {
			waiting = max(cell.submitted, s.lastOK)
			break
		}
	}
	s.lookupsBroken()
	if w := &s.lookups; !w.empty() && (waiting == 0 || w.oldest() < waiting) {
		waiting = max(w.oldest(), s.lastOK)
	}
	if s.trouble.since != 0 {
		s.trouble.triedAt = nanotime() // again, and no good answer in between
	}
	s.troubled(nanotime(), waiting, cause)
	s.client.cfg.Logger.Info("connection lost", "partition", s.partition.String(), "peer", c.addr, "cause", cause, "unanswered", s.win.inFlight())
	s.reconnect(hintOf(cause), c.addr)
}

// onPause looks at deadlines about once a tick, and runs callbacks.
func (s *Session) onPause(c *conn, now int64) {
	if now-s.lastSweep >= int64(tick)/2 {
		s.sweep(now)
		if s.p.conn == c {
			s.suspect(c, now)
		}
	}
	if s.p.conn == c {
		s.askAgain(c, now)
		s.sendAwaited(c, now)
	}
	s.runCallbacks(now)
}

// sweep gives up the orders whose time is over.
func (s *Session) sweep(now int64) {
	s.lastSweep = now
	for seq := s.win.head; seq < s.win.next; seq++ {
		if o := s.win.at(seq).ord; o != nil && o.deadline <= now {
			s.giveUp(seq, &timeoutError{limit: time.Duration(o.deadline - o.submitted).Round(time.Millisecond), last: s.trouble.last})
		}
	}
	s.sweepAwaited(now)
	s.sweepLookups(now)
}

// printable makes bytes of a peer safe for logs and terminals.
func printable(b []byte) string {
	out := make([]byte, 0, len(b))
	for _, c := range b {
		if c < ' ' || c > '~' {
			c = '?'
		}
		out = append(out, c)
	}
	return string(out)
}
