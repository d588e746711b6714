package fix

// resending is an answer to a ResendRequest that is under way.
type resending struct {
	active   bool
	next, to uint64
}

// answerResend answers a ResendRequest.
func (s *Session) answerResend(now Now, m *Message) {
	from, _ := number(m.Get(7))
	to, ok := number(m.Get(16))
	_, out := s.store.Next()
	switch {
	case from == 0 || from >= out:
		s.reject(now, m, refuse(s.profile.Version.table(), ValueIncorrect, 7, m.Get(7), "1 to the last number that was sent"))
	case !ok || to != 0 && to < from:
		s.reject(now, m, refuse(s.profile.Version.table(), ValueIncorrect, 16, m.Get(16), "0, or BeginSeqNo (7) and above"))
	case to == 0 || to >= out:
		s.resend(now, from, out-1)
	default:
		s.resend(now, from, to)
	}
}

// resend sends the messages from..to again.
func (s *Session) resend(now Now, from, to uint64) {
	if r := &s.resending; r.active { // asked again: both ranges
		r.next, r.to = min(r.next, from), max(r.to, to)
	} else {
		*r = resending{active: true, next: from, to: to}
	}
	s.Continue(now)
}

// resendRoom is how many unread bytes a connection may have while messages are resent.
const resendRoom = 64 << 10

// Continue sends more of what was asked for again, as the connection takes it. Numbers of
// messages that are not resent are replaced by gap fills.
func (s *Session) Continue(now Now) {
	r := &s.resending
	for r.active && s.link != nil && s.link.out.Buffered() < resendRoom {
		at, m, found := s.store.Read(now, r.next, r.to)
		if found == FoundLater {
			return
		}
		ok := found == FoundOne
		if !ok {
			at = r.to + 1
		}
		if at > r.next {
			s.sendFill(now, r.next, at)
		}
		if ok && s.link != nil {
			s.write(now, &header{msgType: m.Type, seq: at, timeNs: now.Wall, resent: true, origNs: m.TimeNs}, m.Body)
			at++
		}
		r.next = at
		if r.next > r.to {
			*r = resending{}
		}
	}
}

// sendFill sends a gap fill in place of the numbers from..next-1.
func (s *Session) sendFill(now Now, from, next uint64) {
	b := s.a.body.reset()
	b.Number(36, next)
	b.Byte(123, 'Y')
	s.write(now, &header{msgType: "4", seq: from, timeNs: now.Wall, resent: true, origNs: now.Wall}, b.b)
}
