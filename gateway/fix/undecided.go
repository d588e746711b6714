package fix

import (
	"errors"
	"fmt"
)

// ErrUndecided of Config.Authenticate: it cannot say yet. The Logon waits, and so does what comes behind it, until
// Link.Decided; then Authenticate is asked again. Limits.LogonTimeout is counted anew, once.
var ErrUndecided = errors.New("it is not decided yet")

// hold has the Logon wait.
func (l *Link) hold(now Now, s *Session) {
	l.held, l.logonBy = s, now.Mono+int64(l.a.cfg.Limits.LogonTimeout)
}

// Decided has the Logon of a link presented again that waits. The caller has to call Receive with the same bytes.
func (l *Link) Decided() { l.held = nil }

// undecided ends a link whose Logon is not decided in time.
func (l *Link) undecided() {
	l.end(fmt.Errorf("%w: %w", ErrLogon, logonRefused(l.held, LogonNotJudged, fmt.Errorf("session %s: who logs on was not found out in %s", l.held.profile.ID, l.a.cfg.Limits.LogonTimeout))))
}

// Link returns the connection of the session, nil without.
func (s *Session) Link() *Link { return s.link }
