package fix

import (
	"errors"
	"fmt"
)

// Output takes what is sent; *transport.Conn is one.
type Output interface {
	// Out returns the buffer to append to, SetOut takes it back.
	Out() []byte
	SetOut([]byte)
	// Buffered returns how many bytes the peer has not taken.
	Buffered() int
}

// Link is a connection. Before its logon it has no session.
type Link struct {
	// Tag belongs to the caller.
	Tag any
	// Proof belongs to Config.Authenticate.
	Proof any

	a       *Acceptor
	out     Output
	session *Session
	held    *Session // whose Logon waits for Decided; nil: none
	logonBy int64    // Mono; the Logon has to be there, and answered
	err     error    // why it ends
}

// Errors of a Link, for errors.Is.
var (
	ErrLogon   = errors.New("logon refused")
	ErrLogout  = errors.New("logged out")
	ErrTimeout = errors.New("timed out")
	ErrSlow    = errors.New("too slow")
	ErrMoved   = errors.New("taken over")
	ErrNoGrid  = errors.New("the grid gives no numbers")
)

// Open begins a connection.
func (a *Acceptor) Open(now Now, out Output) *Link {
	return &Link{a: a, out: out, logonBy: now.Mono + int64(a.cfg.Limits.LogonTimeout)}
}

// Session returns the link's session, nil before the logon and after the end.
func (l *Link) Session() *Session { return l.session }

// Err returns why the connection is to be closed once its output is written, or nil.
func (l *Link) Err() error { return l.err }

// Receive handles received bytes and returns how many it consumed; the rest is passed
// again with further ones, or when the link is not Busy any more.
func (l *Link) Receive(now Now, in []byte) (n int) {
	for l.err == nil && n < len(in) && !l.Busy() {
		f := nextFrame(in[n:], l.a.cfg.Limits.Message)
		if f.skip > 0 && l.session == nil {
			l.end(fmt.Errorf("%w: the connection begins with %s; allowed: a Logon", ErrLogon, quote(in[:min(len(in), 16)])))
			break
		}
		n += f.skip
		if f.msg == nil && f.bad == nil {
			break
		}
		if l.frame(now, f); l.held != nil {
			break // it is presented again
		}
		n += len(f.msg)
	}
	if l.err != nil {
		return len(in)
	}
	return n
}

// Busy reports whether received bytes have to wait: for the answer to the Logon, or for
// those to orders.
func (l *Link) Busy() bool {
	s := l.session
	return l.held != nil || s != nil && (s.opening || s.logoutBy == 0 && s.store.Busy())
}

// frame handles one message, or what is none.
func (l *Link) frame(now Now, f frame) {
	s := l.session
	m := &l.a.msg
	bad := f.bad
	if bad == nil {
		table := FIX44.table()
		if s != nil {
			table = s.profile.Version.table()
		}
		if bad = m.parse(f, table); bad == nil {
			l.a.counts.in[placeOf(m.msgType)]++
		}
	}
	switch {
	case bad != nil && s == nil:
		l.end(fmt.Errorf("%w: %w", ErrLogon, bad))
	case bad != nil:
		l.event(bad)
	case s == nil:
		l.logon(now, m)
	default:
		s.receive(now, m)
	}
}

// Closed tells the link that its connection has ended.
func (l *Link) Closed(err error) { l.end(err) }

// LoggedOn reports whether the link's Logon was answered, and it has not ended.
func (l *Link) LoggedOn() bool { return l.session != nil && l.session.begun }

// end ends the connection; the session waits for the next one.
func (l *Link) end(err error) {
	if l.err != nil {
		return
	}
	l.err, l.held = err, nil
	l.event(err)
	if s := l.session; s != nil {
		l.session, s.link = nil, nil
		s.logoutBy, s.testAt, s.probeBy, s.gap, s.resending = 0, 0, 0, gap{}, resending{}
		begun := s.begun
		s.opening, s.begun, s.closing = false, false, nil
		if begun {
			s.app.LoggedOut(s, err)
		}
		s.store.Closed()
	}
	if l.a.cfg.Ended != nil {
		l.a.cfg.Ended(l)
	}
}

func (l *Link) event(err error) {
	if l.a.cfg.Event != nil {
		l.a.cfg.Event(l, l.session, err)
	}
}
