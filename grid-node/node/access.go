package node

import (
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Access makes a node ask clients who they are. Whoever is at the other end of a
// connection is looked at when it begins, and when rules change or a token has to be
// looked at again; what it may do is a mask in link, read once for each request.
type Access struct {
	Rules  *access.File
	Tokens *access.Tokens // nil: certificates only
}

const (
	// proofTimeout is what a client whose certificate gives it nothing has to send a
	// token. A review that is under way is waited for; access.Tokens bounds it.
	proofTimeout = helloTimeout
	// rulesEvery is how often the file of rules is looked at. The kubelet takes about a
	// minute to bring a changed ConfigMap.
	rulesEvery = time.Second
	// lookEvery is how often standing connections are looked through at most.
	lookEvery = int64(time.Second)
)

func (c *Config) checkAccess() error {
	if c.Access != nil && c.TLS == nil {
		return errors.New("--authorization: needs --tls-cert, --tls-key and --tls-ca: over plain TCP nobody can prove who he is")
	}
	return nil
}

// proof is what a client has shown.
type proof struct {
	who    *access.Identity
	may    access.Permissions
	token  []byte // that proves who; looked at again at until
	until  int64  // wall clock, unix ns; 0: never
	asking bool   // a look at a token is under way
	// countedAs is whose connection it is counted as; empty: nobody's.
	countedAs string
}

// admit judges a client by its certificate, when it has said Hello. The answer is
// its Welcome, or why it has to go.
func (c *clients) admit(l *link) error {
	if c.cfg.Access == nil {
		l.may = access.All
	} else {
		l.who = c.identityOf(l.conn.Chain())
		l.may = c.cfg.Access.Rules.Rules().Of(l.who)
		if l.may == 0 && c.cfg.Access.Tokens == nil {
			return c.turnAway(l)
		}
		if l.may != 0 {
			if err := c.takeIn(l); err != nil {
				return err
			}
		}
	}
	l.conn.SetOut(c.appendWelcome(l.conn.Out(), l.version))
	if l.may == 0 {
		l.state, l.helloBy = awaitProof, c.loop.Clock().Mono()+int64(proofTimeout)
		return nil
	}
	c.welcomeClient(l)
	return nil
}

// identityOf is who a certificate proves somebody to be. Only the grid's own authority
// makes the operator's tools.
func (c *clients) identityOf(chain []*x509.Certificate) *access.Identity {
	if len(chain) == 0 {
		return nil
	}
	own := chain[0].Subject.CommonName == access.Tools && c.cfg.TLS.Own(chain) == nil // a signature is looked at: only where it counts
	return access.OfCertificate(chain[0], own)
}

// welcomeClient makes l one of the clients.
func (c *clients) welcomeClient(l *link) {
	c.listeners.undecided.remove(l)
	l.state = ready
	l.conn.SetLimits(clientSoftOut, clientHardOut)
	l.conn.SetFrameTime(clientFrameTime)
	l.conn.SetSendBuffer(clientSendBuffer)
	l.client = clientID(l)
	c.byID[l.conn.ID()] = l
}

// proofFrame handles a frame of a client that has not proved anything that counts.
func (c *clients) proofFrame(l *link, frame []byte) error {
	switch t := wire.FrameType(frame); t {
	case wire.TypeAuthenticate:
		return c.authenticate(l, frame)
	case wire.TypePing:
		return l.pong(frame)
	case wire.TypeGoaway:
		return saidGoaway(frame)
	}
	return c.turnAway(l)
}

// turnAway ends the connection of a client that may do nothing here.
func (c *clients) turnAway(l *link) error {
	if l.who == nil {
		c.refused(l, metrics.RefusedUnauthenticated, "no certificate and no token")
		return l.goaway(wire.GoawayUnauthenticated, fmt.Sprintf("grid %q asks clients who they are: connect with a certificate (Config.TLS, --tls-cert), or with a token for audience %q (Config.Token, --token-file)",
			c.cfg.Grid, c.audience()))
	}
	c.refused(l, metrics.RefusedNotPermitted, "no rule gives it anything")
	return l.goaway(wire.GoawayNotPermitted, fmt.Sprintf("%s has no permission on grid %q: a rule in spec.security.authorization.rules of the OrderGrid gives Submit, Read or Admin", l.who, c.cfg.Grid))
}

func (c *clients) audience() string {
	if c.cfg.Access == nil || c.cfg.Access.Tokens == nil {
		return ""
	}
	return c.cfg.Access.Tokens.Audience()
}

// refused counts and logs; strangers must not flood the log.
func (c *clients) refused(l *link, why metrics.Refusal, text string) {
	c.counters.ClientsRefused[why]++
	c.limited("refused-"+why.String()+l.who.String(), func() {
		c.log.Warn("a client was refused; the same within a second is counted only", "remote", l.conn.Remote(), "client", l.who.String(), "name", fmt.Sprintf("%.64q", l.name), "reason", text)
	})
}

// authenticate begins to look at a token. It must never be in an error or a log.
func (c *clients) authenticate(l *link, frame []byte) error {
	var m wire.Authenticate
	if err := wire.DecodeAuthenticate(frame, &m); err != nil {
		return c.badFrame(l, wire.GoawayProtocol, err.Error())
	}
	switch {
	case c.cfg.Access == nil:
		c.authenticated(l, m.ReqID)
		return nil
	case c.cfg.Access.Tokens == nil:
		c.refused(l, metrics.RefusedUnauthenticated, "this node takes no tokens")
		return l.goaway(wire.GoawayUnauthenticated, "this node takes no tokens, allowed: a certificate")
	case l.asking:
		return c.badFrame(l, wire.GoawayProtocol, "second Authenticate before the answer to the first")
	}
	token := append([]byte(nil), m.Token...)
	c.ask(l, token, false, func(v access.Verdict) { c.judge(l, m.ReqID, token, v) })
	return nil
}

// ask has a token looked at; judge runs on the loop unless the connection is gone by
// then.
func (c *clients) ask(l *link, token []byte, again bool, judge func(access.Verdict)) {
	l.asking = true
	l.helloBy = math.MaxInt64
	host, _, _ := net.SplitHostPort(l.conn.Remote())
	c.cfg.Access.Tokens.Ask(host, token, again, func(v access.Verdict) {
		c.loop.Post(func() {
			l.asking = false
			if l.conn.Open() {
				judge(v)
			}
		})
	})
}

// judge is told who a client's new token stands for.
func (c *clients) judge(l *link, reqID uint64, token []byte, v access.Verdict) {
	switch {
	case v.Err == nil:
	case l.state == ready && errors.Is(v.Err, access.ErrUnavailable):
		c.authenticated(l, reqID) // it is let be who it was
		return
	case errors.Is(v.Err, access.ErrUnavailable):
		c.refused(l, metrics.RefusedUnavailable, v.Err.Error())
		_ = l.goaway(wire.GoawayAuthRetry, v.Err.Error()+"; connect again")
		return
	default:
		c.refused(l, metrics.RefusedUnauthenticated, v.Err.Error())
		_ = l.goaway(wire.GoawayUnauthenticated, fmt.Sprintf("%s: grid %q takes tokens for audience %q", v.Err, c.cfg.Grid, c.audience()))
		return
	}
	l.who = v.Identity
	if l.may = c.cfg.Access.Rules.Rules().Of(l.who); l.may == 0 {
		_ = c.turnAway(l)
		return
	}
	if c.takeIn(l) != nil {
		return
	}
	c.believe(l, token, v)
	if l.state != ready {
		c.welcomeClient(l)
	}
	c.authenticated(l, reqID)
}

// believe notes until when.
func (c *clients) believe(l *link, token []byte, v access.Verdict) {
	l.token, l.until = token, v.Until.UnixNano()
	if c.lookAt == 0 || l.until < c.lookAt {
		c.lookAt = l.until
	}
}

func (c *clients) authenticated(l *link, reqID uint64) {
	m := wire.Authenticated{ReqID: reqID, Permissions: uint16(l.may), User: []byte(l.who.Name())}
	if l.until != 0 {
		m.ForS = uint32(max(1, min(l.until-c.loop.Clock().Wall(), int64(time.Hour))/int64(time.Second)))
	}
	l.conn.SetOut(wire.AppendAuthenticated(l.conn.Out(), &m))
}

// notPermitted answers a request that takes a permission the client does not have.
// The text says whom to give what.
func (c *clients) notPermitted(l *link, t wire.Type, frame []byte) error {
	reqID, slot, err := wire.RequestID(frame)
	if err != nil {
		return c.badFrame(l, wire.GoawayProtocol, err.Error())
	}
	need := access.Needs(t)
	c.counters.NotPermitted[need]++
	c.limited("not-permitted"+l.who.String(), func() {
		c.log.Warn("a request was not permitted; the same within a second is counted only", "remote", l.conn.Remote(), "client", l.who.String(), "request", t.String(), "needs", need.String(), "has", l.may.String())
	})
	l.conn.SetOut(wire.AppendReject(l.conn.Out(), wire.FramePartition(frame), &wire.Reject{RequestID: reqID, Slot: slot, Code: wire.CodeNotPermitted, ForType: t,
		Text: fmt.Appendf(nil, "%s may %s on grid %q, %v takes %s", l.who, l.may, c.cfg.Grid, t, need)}))
	return nil
}

// lookAgain has tokens of standing connections looked at that are due.
func (c *clients) lookAgain(now int64) {
	wall := c.loop.Clock().Wall()
	if c.lookAt == 0 || wall < c.lookAt || now < c.lookedAt+lookEvery {
		return
	}
	c.lookedAt, c.lookAt = now, 0
	for _, l := range c.byID {
		switch {
		case l.until == 0:
		case l.until <= wall && !l.asking:
			c.ask(l, l.token, true, func(v access.Verdict) { c.judgeAgain(l, v) })
		case c.lookAt == 0 || l.until < c.lookAt:
			c.lookAt = l.until
		}
	}
}

// judgeAgain is told what became of the token of a standing connection. Whoever is
// away for the moment, client or API server, is waited for.
func (c *clients) judgeAgain(l *link, v access.Verdict) {
	switch {
	case v.Err == nil:
		l.who = v.Identity
		if l.may = c.cfg.Access.Rules.Rules().Of(l.who); l.may == 0 {
			_ = c.turnAway(l)
			return
		}
		if c.takeIn(l) == nil {
			c.believe(l, l.token, v)
		}
	case errors.Is(v.Err, access.ErrExpired):
		_ = l.goaway(wire.GoawayAuthRetry, fmt.Sprintf("the token of %s has ended: connect again with the present one", l.who))
	case errors.Is(v.Err, access.ErrUnavailable):
		c.refused(l, metrics.RefusedUnavailable, v.Err.Error())
		_ = l.goaway(wire.GoawayAuthRetry, v.Err.Error()+"; connect again")
	default:
		c.refused(l, metrics.RefusedUnauthenticated, v.Err.Error())
		_ = l.goaway(wire.GoawayUnauthenticated, fmt.Sprintf("the token of %s is not accepted any more: %v", l.who, v.Err))
	}
}

// rulesUnread says what that means for clients.
func (c *clients) rulesUnread(before *access.Rules, err error) {
	if before == nil {
		c.log.Error("no client may do anything until the authorization rules can be read", "reason", err)
		return
	}
	c.log.Error("the authorization rules cannot be read: those before stay in use", "reason", err)
}

// rulesChanged judges the standing connections by the rules of now.
func (c *clients) rulesChanged() {
	rules := c.cfg.Access.Rules.Rules()
	if err := c.cfg.Access.Rules.Err(); err != nil {
		c.rulesUnread(rules, err)
		return
	}
	ended := 0
	for _, l := range c.byID {
		if l.may = rules.Of(l.who); l.may == 0 && l.conn.Open() {
			_ = c.turnAway(l)
			ended++
		}
	}
	c.log.Info("authorization rules changed", "clients", len(c.byID), "ended", ended)
}
