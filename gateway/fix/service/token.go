package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/gateway/fix/roster"
	"github.com/ordergrid/ordergrid/gateway/judge"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// judged is what the grid said of the token of a link: its fix.Link.Proof.
type judged struct {
	proof *judge.Proof
	err   error
}

// protectsTokens refuses sessions with tokens that would be sent in the clear, or that no grid judges.
func (c *Config) protectsTokens(who *roster.Roster) error {
	switch {
	case !who.NeedsToken():
	case c.TLS == nil:
		return fmt.Errorf("sessions: %s: a session has a user, and FIX is served without TLS; allowed: TLS, since a token is good for more than this gateway", c.Sessions)
	case c.Judge == nil:
		return fmt.Errorf("sessions: %s: a session has a user, and the grid is not asked about tokens; allowed: with --fix-grid-tokens, or sessions with passwords and certificates only", c.Sessions)
	}
	return nil
}

// proves decides about the token of a Logon. fix.ErrUndecided: the grid is asked, and the Logon waits. One token of a
// session is judged at a time, so that who guesses for one session leaves room for others.
func (s *Service) proves(f *fix.Session, l *fix.Link, token []byte) error {
	id := f.ID()
	notJudged := func(format string, args ...any) error {
		return &fix.LogonError{Reason: fix.LogonNotJudged, Err: fmt.Errorf("session %s: %w", id, fmt.Errorf(format, args...))}
	}
	if len(token) == 0 || len(token) > wire.MaxToken {
		return fmt.Errorf("session %s: tag 554 (Password) has %d bytes; allowed: a token of user %.200q", id, len(token), s.roster.User(id))
	}
	j, known := l.Proof.(*judged)
	if !known {
		if p := s.tokens.Known(judge.SumOf(string(token))); p != nil {
			j, known = &judged{proof: p}, true
			l.Proof = j
		}
	}
	switch {
	case known && errors.Is(j.err, judge.ErrNotJudged):
		return notJudged("the grid could not be asked whose token it is: %w", judge.Why(j.err))
	case known && j.err != nil:
		return fmt.Errorf("session %s: tag 554 (Password): %w", id, j.err)
	case known:
		return s.roster.Proves(id, j.proof)
	case s.judging[id]:
		return notJudged("another token of the session is being judged; allowed: one at a time")
	}
	if !s.tokens.Judge(string(token), func(p *judge.Proof, err error) {
		s.server.Post(func(fix.Now) {
			delete(s.judging, id)
			l.Proof = &judged{p, err}
			l.Decided()
		})
	}) {
		return notJudged("%d tokens are being judged, allowed: %d at a time", judge.AtOnce, judge.AtOnce)
	}
	s.judging[id] = true
	return fix.ErrUndecided
}

// Texts of the Logout of a session whose token is not good for it any more.
const (
	tokenLost = "the grid takes the token of this session no more; log on with another one"
	userLost  = "the token of this session is not the one that it needs any more; log on with another one"
)

// keepTokens logs out the sessions whose token is not good any more, and marks the other tokens.
func (s *Service) keepTokens(now fix.Now) {
	for id, k := range s.sessions {
		l := k.Link()
		if l == nil {
			continue
		}
		j, is := l.Proof.(*judged)
		switch {
		case !is || j.proof == nil:
		case !s.tokens.Keeps(j.proof):
			k.Logout(now, tokenLost)
		case s.roster.Proves(id, j.proof) != nil:
			k.Logout(now, userLost)
		}
	}
}

// reviewTokens has the grid judge the tokens of sessions again when a node would, until ctx ends.
func (s *Service) reviewTokens(ctx context.Context) {
	mark := func() {
		done := make(chan struct{})
		if !s.server.Post(func(now fix.Now) { s.keepTokens(now); close(done) }) {
			return
		}
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	again := time.NewTicker(s.cfg.Reread)
	defer again.Stop()
	for {
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
		if s.tokens.Review(mark) {
			s.log.Info("the grid takes the token of a FIX session no more")
			mark()
		}
	}
}
