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

// Access makes a node authenticate clients. A connection is judged when it begins, when
// rules change, and when its token must be reviewed again; its permissions are a mask in
// link, read once per request.
type Access struct {
	Rules  *access.File
	Tokens *access.Tokens // nil: certificates only
}

const (
	// proofTimeout is how long a client whose certificate has no permission may take to
	// send a token. A pending review is waited for; access.Tokens bounds it.
	proofTimeout = helloTimeout
	// rulesEvery is the interval of reading the file of rules. The kubelet takes about a
	// minute to update a changed ConfigMap.
	rulesEvery = time.Second
	// lookEvery is the minimum interval of checking open connections.
	lookEvery = int64(time.Second)
)

func (c *Config) checkAccess() error {
	if c.Access != nil && c.TLS == nil {
		return errors.New("--authorization: needs --tls-cert, --tls-key and --tls-ca: plain TCP has no authentication")
	}
	return nil
}

// proof is what a client has proved.
type proof struct {
	who    *access.Identity
	may    access.Permissions
	token  []byte // that authenticates the client; reviewed again at until
	until  int64  // wall clock, unix ns; 0: never
	asking bool   // a token review is pending
	// countedAs is the key under which the connection counts; empty: none.
	countedAs string
}

// admit judges a client by its certificate, after its Hello. The answer is its Welcome, or
// a Goaway with the reason.
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

// identityOf returns the identity of a certificate. Only the grid's own authority makes
// the operator's tools.
func (c *clients) identityOf(chain []*x509.Certificate) *access.Identity {
	if len(chain) == 0 {
		return nil
	}
	own := chain[0].Subject.CommonName == access.Tools && c.cfg.TLS.Own(chain) == nil // verifies a signature: only where it counts
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

// proofFrame handles a frame of a client that is not authenticated yet.
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

// turnAway ends the connection of a client without a permission.
func (c *clients) turnAway(l *link) error {
	if l.who == nil {
		c.refused(l, metrics.RefusedUnauthenticated, "no certificate and no token")
		return l.goaway(wire.GoawayUnauthenticated, fmt.Sprintf("grid %q authenticates clients: connect with a certificate (Config.TLS, --tls-cert), or with a token for audience %q (Config.Token, --token-file)",
			c.cfg.Grid, c.audience()))
	}
	c.refused(l, metrics.RefusedNotPermitted, "no rule gives it a permission")
	return l.goaway(wire.GoawayNotPermitted, fmt.Sprintf("%s has no permission on grid %q: a rule in spec.security.authorization.rules of the OrderGrid gives %s", l.who, c.cfg.Grid, access.All))
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

// authenticate starts the review of a token. It must never be in an error or a log.
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

// ask starts a review; judge runs on the loop unless the connection is gone by then.
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

// judge handles the verdict on a client's new token.
func (c *clients) judge(l *link, reqID uint64, token []byte, v access.Verdict) {
	switch {
	case v.Err == nil:
	case l.state == ready && errors.Is(v.Err, access.ErrUnavailable):
		c.authenticated(l, reqID) // it keeps its identity
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
	c.stillMay(l)
	c.believe(l, token, v)
	if l.state != ready {
		c.welcomeClient(l)
	}
	c.authenticated(l, reqID)
}

// believe sets how long a verdict is valid.
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

// notPermitted answers a request that requires a permission the client lacks. The text
// names both.
func (c *clients) notPermitted(l *link, t wire.Type, frame []byte) error {
	return c.lacks(l, t, access.Needs(t), frame)
}

// lacks is notPermitted of the permission that the client needs. The text says whom to give
// what.
func (c *clients) lacks(l *link, t wire.Type, need access.Permissions, frame []byte) error {
	reqID, slot, err := wire.RequestID(frame)
	if err != nil {
		return c.badFrame(l, wire.GoawayProtocol, err.Error())
	}
	c.counters.NotPermitted[need]++
	c.limited("not-permitted"+l.who.String(), func() {
		c.log.Warn("a request was not permitted; the same within a second is counted only", "remote", l.conn.Remote(), "client", l.who.String(), "request", t.String(), "needs", need.String(), "has", l.may.String())
	})
	l.conn.SetOut(wire.AppendReject(l.conn.Out(), wire.FramePartition(frame), &wire.Reject{RequestID: reqID, Slot: slot, Code: wire.CodeNotPermitted, ForType: t,
		Text: fmt.Appendf(nil, "%s may %s on grid %q, %v requires %s", l.who, l.may, c.cfg.Grid, t, need)}))
	return nil
}

// lookAgain starts the reviews that are due for tokens of open connections.
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

// judgeAgain handles the new verdict on the token of an open connection. An unreachable
// client or API server is waited for.
func (c *clients) judgeAgain(l *link, v access.Verdict) {
	switch {
	case v.Err == nil:
		l.who = v.Identity
		if l.may = c.cfg.Access.Rules.Rules().Of(l.who); l.may == 0 {
			_ = c.turnAway(l)
			return
		}
		if c.takeIn(l) == nil {
			c.stillMay(l)
			c.believe(l, l.token, v)
		}
	case errors.Is(v.Err, access.ErrExpired):
		_ = l.goaway(wire.GoawayAuthRetry, fmt.Sprintf("the token of %s has expired: reconnect with the present one", l.who))
	case errors.Is(v.Err, access.ErrUnavailable):
		c.refused(l, metrics.RefusedUnavailable, v.Err.Error())
		_ = l.goaway(wire.GoawayAuthRetry, v.Err.Error()+"; connect again")
	default:
		c.refused(l, metrics.RefusedUnauthenticated, v.Err.Error())
		_ = l.goaway(wire.GoawayUnauthenticated, fmt.Sprintf("the token of %s is not accepted any more: %v", l.who, v.Err))
	}
}

// rulesUnread logs the consequence for clients.
func (c *clients) rulesUnread(before *access.Rules, err error) {
	if before == nil {
		c.log.Error("no client has a permission until the authorization rules can be read", "reason", err)
		return
	}
	c.log.Error("the authorization rules cannot be read: the previous ones stay in use", "reason", err)
}

// rulesChanged judges the open connections by the present rules.
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
		} else {
			c.stillMay(l)
		}
	}
	c.log.Info("authorization rules changed", "clients", len(c.byID), "ended", ended)
}
