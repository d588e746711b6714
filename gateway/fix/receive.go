package fix

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/ordergrid/ordergrid/gateway/fix/dict"
)

// receive handles a message of a session that is logged on.
func (s *Session) receive(now Now, m *Message) {
	s.heardAt, s.testAt = now.Mono, 0
	if s.probeBy != 0 {
		s.probeBy = 0
		s.store.Here(true)
	}
	if s.logoutBy != 0 { // only the answer counts; the rest is asked for after the next logon
		if m.is('5') {
			s.end(fmt.Errorf("%w: by this side", ErrLogout))
		}
		return
	}
	switch {
	case string(m.begin) != versions[s.profile.Version].begin:
		s.sendLogout(now, "Incorrect BeginString: "+quote(m.begin)+"; allowed: "+s.profile.Version.String())
		return
	case !m.hasSeq:
		s.fatal(now, "MsgSeqNum missing or no number: "+quote(m.Get(34)))
		return
	}
	if r := s.envelope(now, m); r != nil {
		s.consume(m)
		s.reject(now, m, r)
		s.sendLogout(now, "")
		return
	}
	if m.is('5') {
		s.consume(m)
		s.closing = fmt.Errorf("%w: by the other side: %s", ErrLogout, quote(m.Get(58)))
		s.answerLogout(now)
		return
	}
	if s.outOfBand(now, m) {
		return
	}
	in, _ := s.store.Next()
	switch {
	case m.seq > in:
		s.tooHigh(now, m)
	case m.seq < in:
		s.tooLow(now, m, in)
	default:
		s.process(now, m)
		s.afterGap(now)
	}
}

// consume takes the number of a message if it is the one expected.
func (s *Session) consume(m *Message) {
	if in, _ := s.store.Next(); m.seq == in {
		s.store.Received(in + 1)
	}
}

// envelope checks the CompIDs and the time of a message. What is missing is refused with
// the other fields.
func (s *Session) envelope(now Now, m *Message) *Refusal {
	p := &s.profile
	switch {
	case len(m.sender) > 0 && string(m.sender) != p.Initiator:
		return &Refusal{Reason: CompIDProblem, NoTag: true, Tag: 49, name: "SenderCompID", Value: quote(m.sender), Allowed: p.Initiator}
	case len(m.target) > 0 && string(m.target) != p.Acceptor:
		return &Refusal{Reason: CompIDProblem, NoTag: true, Tag: 56, name: "TargetCompID", Value: quote(m.target), Allowed: p.Acceptor}
	}
	sent, ok := timestamp(m.sending)
	if ok && !s.accurate(now, sent) {
		return &Refusal{Reason: SendingTimeWrong, NoTag: true, Tag: 52, name: "SendingTime", Value: quote(m.sending), Allowed: "within " + p.Accuracy.String() + " of the clock"}
	}
	if orig, has := timestamp(m.orig); has && ok && m.possDup && orig > sent {
		return &Refusal{Reason: SendingTimeWrong, NoTag: true, Tag: 122, name: "OrigSendingTime", Value: quote(m.orig), Allowed: "SendingTime or before"}
	}
	return nil
}

// outOfBand handles messages whose own number does not decide whether they are handled: it
// reports whether this was one.
func (s *Session) outOfBand(now Now, m *Message) bool {
	in, _ := s.store.Next()
	switch {
	case m.is('2') && m.seq != in: // asked again, or both sides have a gap
		if r := s.fields(m); r == nil {
			s.answerResend(now, m)
		}
		if m.seq > in {
			s.gap.hold(&s.a.cfg.Limits, m.seq, nil) // handled already
			s.openGap(now, m.seq)
		}
	case m.is('4') && !m.flag(123):
		s.resetSequence(now, m, in)
	case m.is('A') && m.flag(141) && m.seq == 1:
		if _, err := s.logonFields(m); err != nil {
			s.fatal(now, err.Error())
			return true
		}
		s.begin(now, m)
	default:
		return false
	}
	return true
}

// fields checks all fields of a message of a known type.
func (s *Session) fields(m *Message) *Refusal {
	t := s.profile.Version.table()
	d := t.Message(m.msgType)
	if d == nil {
		return &Refusal{Reason: InvalidMsgType, NoTag: true, Tag: 35, name: "MsgType", Value: quote(m.msgType), Allowed: "a type of the standard"}
	}
	if r := s.a.check.check(m, t, d); r != nil {
		return r
	}
	if s.profile.Version == FIXT11 {
		if v := m.Get(1128); v != nil && string(v) != s.profile.ApplVer {
			return refuse(t, WrongApplVersion, 1128, v, s.profile.ApplVer+", that of the session, or no such field")
		}
	}
	if m.possDup && !m.hasOrig && !m.is('4') {
		return &Refusal{Reason: RequiredMissing, Tag: 122, name: t.Name(122), Allowed: "OrigSendingTime with PossDupFlag"}
	}
	return nil
}

// tooLow handles a number that was processed before.
func (s *Session) tooLow(now Now, m *Message, in uint64) {
	if !m.possDup {
		s.fatal(now, tooLow(in, m.seq))
		return
	}
	if !m.hasOrig && !m.is('4') {
		s.reject(now, m, &Refusal{Reason: RequiredMissing, Tag: 122, name: "OrigSendingTime", Allowed: "OrigSendingTime with PossDupFlag"})
	}
}

// process handles the message with the expected number.
func (s *Session) process(now Now, m *Message) {
	m.now = now
	s.store.Received(m.seq + 1)
	d := s.profile.Version.table().Message(m.msgType)
	if d != nil && d.Category != dict.Admin && !s.takes(d, m.msgType) {
		s.business(now, m, &Refusal{Business: true, Why: UnsupportedType, Words: "Unsupported Message Type", Tag: 35, name: "MsgType", Value: quote(m.msgType)})
		return
	}
	if r := s.fields(m); r != nil {
		s.reject(now, m, r)
		return
	}
	if d.Category != dict.Admin {
		if r := s.deliver(m); r != nil {
			s.refused(now, m, r)
		}
		return
	}
	switch m.msgType[0] {
	case '1':
		b := s.a.body.reset()
		b.Bytes(112, m.Get(112))
		s.send(now, "0", b.b)
	case '2':
		s.answerResend(now, m)
	case '3':
		s.event(fmt.Errorf("session %s: the other side refused message %s: %s", s.profile.ID, quote(m.Get(45)), quote(m.Get(58))))
	case '4':
		s.fill(now, m)
	case 'A':
		s.fatal(now, "Logon while logged on; allowed: with ResetSeqNumFlag=Y and MsgSeqNum 1")
	}
}

// refused answers a message that the application refuses.
func (s *Session) refused(now Now, m *Message, r *Refusal) {
	if r.Business {
		s.business(now, m, r)
		return
	}
	s.reject(now, m, r)
}

// resetSequence handles SequenceReset-Reset, whose own number is not looked at.
func (s *Session) resetSequence(now Now, m *Message, in uint64) {
	if r := s.fields(m); r != nil {
		s.consume(m)
		s.reject(now, m, r)
		return
	}
	next, ok := number(m.Get(36))
	if !ok || next < in {
		s.reject(now, m, s.newSeqNo(m, in))
		return
	}
	s.store.Received(next)
	s.afterGap(now)
}

// fill handles SequenceReset-GapFill with the expected number.
func (s *Session) fill(now Now, m *Message) {
	in, _ := s.store.Next() // after this message
	next, ok := number(m.Get(36))
	if !ok || next < in {
		s.reject(now, m, s.newSeqNo(m, in))
		return
	}
	s.store.Received(next)
	s.gap.filled = next
}

func (s *Session) newSeqNo(m *Message, lowest uint64) *Refusal {
	return &Refusal{Reason: ValueIncorrect, NoTag: true, Tag: 36, name: "NewSeqNo", Value: quote(m.Get(36)), Allowed: strconv.FormatUint(lowest, 10) + " or more"}
}

// reject refuses a message by Reject (35=3).
func (s *Session) reject(now Now, m *Message, r *Refusal) {
	s.event(fmt.Errorf("session %s: message %d: %w", s.profile.ID, m.seq, r))
	b := s.a.body.reset()
	b.reverseRoute(m)
	b.Number(45, m.seq)
	b.String(58, text(r.Error()))
	if !r.NoTag {
		b.String(371, strconv.Itoa(r.Tag))
	}
	b.Bytes(372, m.msgType[:min(len(m.msgType), maxRefType)])
	if s.profile.Version != FIX42 || r.Reason <= lastReason42 {
		b.Number(373, uint64(r.Reason))
	}
	s.sendKept(now, "3", b.b, s.refOf(m))
}

// business refuses a message by BusinessMessageReject (35=j).
func (s *Session) business(now Now, m *Message, r *Refusal) {
	s.event(fmt.Errorf("session %s: message %d: %w", s.profile.ID, m.seq, r))
	b := s.a.body.reset()
	b.reverseRoute(m)
	b.Number(45, m.seq)
	b.String(58, text(r.Error()))
	b.Bytes(372, m.msgType[:min(len(m.msgType), maxRefType)])
	b.String(379, r.RefID[:min(len(r.RefID), maxRefID)])
	b.Number(380, uint64(r.Why))
	s.sendKept(now, "j", b.b, s.refOf(m))
}

// refOf returns the number of a message if it is the last that was processed, else 0.
func (s *Session) refOf(m *Message) uint64 {
	if in, _ := s.store.Next(); m.seq+1 == in {
		return m.seq
	}
	return 0
}

// A refusal repeats parts of the message; it has to fit a record of the log.
const (
	maxRefType = 32
	maxRefID   = 256
	maxRoute   = 256
)

// routes are header fields that an answer has reversed: from, to.
var routes = [...][2]int{{128, 115}, {129, 116}, {145, 144}, {115, 128}, {116, 129}, {144, 145}}

// reverseRoute appends the routing fields of an answer to m. They belong to the header,
// which the body follows.
func (b *Body) reverseRoute(m *Message) {
	for _, r := range routes {
		v := m.Get(r[1])
		b.Bytes(r[0], v[:min(len(v), maxRoute)])
	}
}

// sendLogout sends a Logout and waits for its answer.
func (s *Session) sendLogout(now Now, why string) { s.logout(now, why, false) }

// answerLogout answers the Logout of the other side.
func (s *Session) answerLogout(now Now) { s.logout(now, "", true) }

func (s *Session) logout(now Now, why string, left bool) {
	s.logoutBy, s.sentAt = now.Mono+int64(s.a.cfg.Limits.LogoutTimeout), now.Mono
	b := s.a.body.reset()
	b.String(58, text(why))
	s.store.Take(now, Sent{TimeNs: now.Wall, Type: "5", Body: b.b, Left: left})
}

// fatal ends a session that cannot go on: Logout, and the connection is closed.
func (s *Session) fatal(now Now, why string) {
	s.closing = fmt.Errorf("%w: session %s: %s", ErrLogout, s.profile.ID, why)
	s.sendLogout(now, why)
}

// errNoAnswer ends a session whose gaps are not filled.
var errNoAnswer = errors.New("ResendRequest was not answered")
