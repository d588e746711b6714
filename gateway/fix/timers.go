package fix

import "fmt"

// Tick runs what is due: time-outs, heartbeats, and more of what was asked for again.
func (l *Link) Tick(now Now) {
	s := l.session
	switch {
	case l.err != nil:
	case s == nil:
		if now.Mono >= l.logonBy {
			l.end(fmt.Errorf("%w: %w: no Logon in %s", ErrLogon, ErrTimeout, l.a.cfg.Limits.LogonTimeout))
		}
	case s.logoutBy != 0:
		if now.Mono >= s.logoutBy {
			l.end(fmt.Errorf("%w: the Logout of session %s was not answered in %s", ErrTimeout, s.profile.ID, l.a.cfg.Limits.LogoutTimeout))
		}
	default:
		s.tick(now)
	}
}

// tick watches the other side: silent for 1.2 heartbeat intervals, it gets a TestRequest,
// and one interval later its connection is closed.
func (s *Session) tick(now Now) {
	switch {
	case s.testAt != 0 && now.Mono-s.testAt >= s.heartBt:
		s.end(fmt.Errorf("%w: session %s was silent for %d s", ErrTimeout, s.profile.ID, (now.Mono-s.heardAt)/1e9))
		return
	case s.testAt == 0 && now.Mono-s.heardAt >= s.heartBt+s.heartBt/5:
		s.testAt = now.Mono
		b := s.a.body.reset()
		b.String(112, "TEST")
		s.send(now, "1", b.b, false)
	case now.Mono-s.sentAt >= s.heartBt:
		s.send(now, "0", nil, false)
	}
	s.gapTick(now)
	s.Continue(now)
}
