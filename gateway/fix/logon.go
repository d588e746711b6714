package fix

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// logon handles the first message of a connection. What is refused before the other side
// has proved who it is gets no answer, and takes no number of the session.
func (l *Link) logon(now Now, m *Message) {
	s, heartBt, err := l.admit(now, m)
	if errors.Is(err, ErrUndecided) {
		l.a.counts.in[placeOf(m.msgType)]-- // it is counted when it is presented again
		l.hold(now, s)
		return
	}
	if err != nil {
		l.end(fmt.Errorf("%w: %w", ErrLogon, err))
		return
	}
	l.session, s.link = s, l
	s.heartBt, s.sentAt, s.heardAt, s.numbersAt = heartBt, now.Mono, now.Mono, now.Mono
	s.begin(now, m)
}

// admit finds the session of a Logon and decides whether it may begin.
func (l *Link) admit(now Now, m *Message) (s *Session, heartBt int64, err error) {
	version, known := ParseVersion(m.begin)
	refuse := func(why LogonReason, format string, args ...any) (*Session, int64, error) {
		return nil, 0, logonRefused(s, why, fmt.Errorf(format, args...))
	}
	switch {
	case !known:
		return refuse(LogonNotFirst, "tag 8 (BeginString) is %s; allowed: FIX.4.2, FIX.4.4, FIXT.1.1", quote(m.begin))
	case !m.is('A'):
		return refuse(LogonNotFirst, "tag 35 (MsgType) is %s; allowed: A, a Logon as the first message", quote(m.msgType))
	case !m.hasSeq || m.seq == 0:
		return refuse(LogonFields, "tag 34 (MsgSeqNum) is %s; allowed: 1 or more", quote(m.Get(34)))
	}
	s = l.a.cfg.Find(ID{Version: version, Acceptor: string(m.target), Initiator: string(m.sender)})
	if s == nil {
		return refuse(LogonUnknownSession, "tags 49 (SenderCompID) and 56 (TargetCompID) are %s and %s; allowed: those of a session of %s", quote(m.sender), quote(m.target), version)
	}
	if r := l.a.check.check(m, version.table(), version.table().Message(m.msgType)); r != nil {
		return nil, 0, logonRefused(s, LogonFields, r)
	}
	if ns, _ := timestamp(m.sending); !s.accurate(now, ns) {
		return refuse(LogonTime, "tag 52 (SendingTime) is %s; allowed: within %s of the clock", quote(m.sending), s.profile.Accuracy)
	}
	if heartBt, err = s.logonFields(m); err != nil {
		return nil, 0, logonRefused(s, LogonFields, err)
	}
	if auth := l.a.cfg.Authenticate; auth != nil {
		if err := auth(s, l, m.Get(553), m.Get(554)); err != nil {
			return s, 0, logonRefused(s, LogonCredentials, err)
		}
	}
	if s.link != nil { // it may be half open
		s.Probe(now)
		return refuse(LogonInUse, "session %s has a connection; allowed: one at a time", s.profile.ID)
	}
	return s, heartBt, nil
}

// logonFields checks the values that concern the session.
func (s *Session) logonFields(m *Message) (heartBt int64, err error) {
	p := &s.profile
	seconds, ok := number(m.Get(108))
	limit := uint64(p.MaxHeartBt / time.Second)
	switch {
	case string(m.Get(98)) != "0":
		return 0, fmt.Errorf("tag 98 (EncryptMethod) is %s; allowed: 0", quote(m.Get(98)))
	case !ok || seconds > limit || time.Duration(seconds)*time.Second < p.MinHeartBt:
		return 0, fmt.Errorf("tag 108 (HeartBtInt) is %s; allowed: %d..%d", quote(m.Get(108)), (p.MinHeartBt+time.Second-1)/time.Second, limit)
	case p.Version == FIXT11 && string(m.Get(1137)) != p.ApplVer:
		return 0, fmt.Errorf("tag 1137 (DefaultApplVerID) is %s; allowed: %s", quote(m.Get(1137)), p.ApplVer)
	case m.flag(141) && m.seq != 1:
		return 0, fmt.Errorf("tag 34 (MsgSeqNum) is %d; allowed: 1 with tag 141 (ResetSeqNumFlag)", m.seq)
	}
	return int64(seconds) * int64(time.Second), nil
}

// logon is what is kept of a Logon until it is answered.
type logon struct {
	seq, expects   uint64 // tags 34 and 789
	possDup, reset bool
	hasExpects     bool
	heartBt        []byte // tag 108
	waits          error  // why the store has not answered yet; nil: it did not say
}

// begin asks the store for the session of a Logon that is admitted.
func (s *Session) begin(now Now, m *Message) {
	s.logon = logon{seq: m.seq, possDup: m.possDup, reset: m.flag(141), heartBt: append(s.logon.heartBt[:0], m.Get(108)...)}
	if s.profile.NextExpected {
		s.logon.expects, s.logon.hasExpects = number(m.Get(789))
	}
	sent, _ := timestamp(m.sending)
	s.opening, s.link.logonBy = true, now.Mono+int64(s.a.cfg.Limits.LogonTimeout)
	s.store.Open(now, Opening{Seq: m.seq, SentNs: sent, Reset: s.logon.reset || s.profile.ResetOnLogon})
}

// NotOpened tells that a session cannot be opened: its connection ends without an answer.
func (s *Session) NotOpened(why LogonReason, err error) {
	if s.opening {
		s.end(fmt.Errorf("%w: %w", ErrLogon, logonRefused(s, why, fmt.Errorf("session %s: %w", s.profile.ID, err))))
	}
}

// Waits tells why a session is not open yet, for the error if it is not in time.
func (s *Session) Waits(why error) {
	if s.opening {
		s.logon.waits = why
	}
}

// Opened answers the Logon: the store has the session's numbers.
func (s *Session) Opened(now Now) {
	if !s.opening {
		return
	}
	s.opening, s.numbersAt = false, now.Mono
	s.gap, s.resending = gap{}, resending{}
	o := &s.logon
	in, out := s.store.Next()
	switch {
	case o.hasExpects && o.expects > out:
		s.refuseLogon(now, fmt.Sprintf("Tag 789 (NextExpectedMsgSeqNum) is higher than expected. Expected %d, Received %d", out, o.expects))
		return
	case o.seq < in && !o.possDup:
		s.refuseLogon(now, tooLow(in, o.seq))
		return
	case o.seq == in:
		s.store.Received(in + 1)
	}
	s.begun = true
	s.sendLogon(now)
	s.app.LoggedOn(s)
	if s.a.cfg.Began != nil && s.link != nil {
		s.a.cfg.Began(s.link)
	}
	if o.seq > in && !o.hasExpects {
		s.gap.hold(&s.a.cfg.Limits, o.seq, nil) // handled already
		s.openGap(now, o.seq)
	}
	if o.hasExpects && 0 < o.expects && o.expects < out {
		s.resend(now, o.expects, out)
	}
}

func (s *Session) refuseLogon(now Now, why string) {
	s.closing = fmt.Errorf("%w: %w", ErrLogon, logonRefused(s, LogonSequence, fmt.Errorf("session %s: %s", s.profile.ID, why)))
	s.sendLogout(now, why)
}

func (s *Session) sendLogon(now Now) {
	b := s.a.body.reset()
	b.String(98, "0")
	b.Bytes(108, s.logon.heartBt)
	if s.logon.reset {
		b.Byte(141, 'Y')
	}
	if s.profile.NextExpected {
		in, _ := s.store.Next()
		b.Number(789, in)
	}
	if s.profile.Version == FIXT11 {
		b.String(1137, s.profile.ApplVer)
	}
	s.send(now, "A", b.b)
}

func tooLow(expected, got uint64) string {
	return "MsgSeqNum too low, expecting " + strconv.FormatUint(expected, 10) + " but received " + strconv.FormatUint(got, 10)
}
