package fix

import (
	"fmt"
	"time"
)

// Tick runs what is due: time-outs, heartbeats, and more of what was asked for again.
func (l *Link) Tick(now Now) {
	s := l.session
	switch {
	case l.err != nil:
	case s == nil || s.opening:
		if now.Mono >= l.logonBy {
			l.late()
		}
	case s.logoutBy != 0:
		if now.Mono >= s.logoutBy {
			l.end(fmt.Errorf("%w: the Logout of session %s was not answered in %s", ErrTimeout, s.profile.ID, l.a.cfg.Limits.LogoutTimeout))
		}
	default:
		s.tick(now)
	}
}

// late ends a connection whose Logon is not there, or not answered.
func (l *Link) late() {
	limit := l.a.cfg.Limits.LogonTimeout
	if l.held != nil {
		l.undecided()
		return
	}
	if s := l.session; s != nil {
		err := fmt.Errorf("session %s: the grid has not answered in %s", s.profile.ID, limit)
		if s.logon.waits != nil {
			err = fmt.Errorf("session %s was not opened in %s: %w", s.profile.ID, limit, s.logon.waits)
		}
		l.end(fmt.Errorf("%w: %w", ErrLogon, logonRefused(s, LogonNoGrid, err)))
		return
	}
	l.end(fmt.Errorf("%w: %w: no Logon in %s", ErrLogon, ErrTimeout, limit))
}

// tick watches the other side: silent for 1.2 heartbeat intervals, it gets a TestRequest,
// and one interval later its connection is closed. So it is when there are no numbers for
// two intervals: the other side would close it then.
func (s *Session) tick(now Now) {
	switch {
	case s.probeBy != 0 && now.Mono >= s.probeBy:
		s.end(fmt.Errorf("%w: session %s did not answer a TestRequest, and another connection wants it", ErrTimeout, s.profile.ID))
		return
	case now.Mono-s.numbersAt > 2*s.heartBt+int64(time.Second):
		s.end(fmt.Errorf("%w: session %s: none for %d s", ErrNoGrid, s.profile.ID, (now.Mono-s.numbersAt)/1e9))
		return
	case s.testAt != 0 && now.Mono-s.testAt >= s.heartBt:
		s.end(fmt.Errorf("%w: session %s was silent for %d s", ErrTimeout, s.profile.ID, (now.Mono-s.heardAt)/1e9))
		return
	case s.testAt == 0 && now.Mono-s.heardAt >= s.heartBt+s.heartBt/5:
		s.testAt = now.Mono
		b := s.a.body.reset()
		b.String(112, "TEST")
		s.send(now, "1", b.b)
	case now.Mono-s.sentAt >= s.heartBt:
		s.send(now, "0", nil)
	}
	s.gapTick(now)
	s.Continue(now)
}

// probeTime is what a counterparty has to answer a TestRequest when another connection wants
// its session.
const probeTime = int64(1200 * time.Millisecond)

// probeFresh is how long a counterparty is there after it was heard.
const probeFresh = int64(time.Second)

// Probe finds out whether the counterparty is there; the answer is Store.Here. If it is not,
// its connection ends.
func (s *Session) Probe(now Now) {
	switch {
	case s.link == nil:
		s.store.Here(false)
	case now.Mono-s.heardAt < probeFresh, s.link.Busy(): // or what it sends is not read, and there is much of it
		s.store.Here(true)
	case s.probeBy == 0:
		s.probeBy = now.Mono + probeTime
		b := s.a.body.reset()
		b.String(112, "PROBE")
		s.send(now, "1", b.b)
	}
}
