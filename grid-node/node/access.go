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
func (n *Node) admit(l *link) error {
	if n.cfg.Access == nil {
		l.may = access.All
	} else {
		l.who = n.identityOf(l.conn.Chain())
		l.may = n.cfg.Access.Rules.Rules().Of(l.who)
		if l.may == 0 && n.cfg.Access.Tokens == nil {
			return n.turnAway(l)
		}
		if l.may != 0 {
			if err := n.takeIn(l); err != nil {
				return err
			}
		}
	}
	l.conn.SetOut(wire.AppendWelcome(l.conn.Out(), welcomeOf(&n.cfg, n.self, l.version)))
	if l.may == 0 {
		l.state, l.helloBy = awaitProof, n.loop.Clock().Mono()+int64(proofTimeout)
		return nil
	}
	n.welcomeClient(l)
	return nil
}

// identityOf is who a certificate proves somebody to be. Only the grid's own authority
// makes the operator's tools.
func (n *Node) identityOf(chain []*x509.Certificate) *access.Identity {
	if len(chain) == 0 {
		return nil
	}
	own := chain[0].Subject.CommonName == access.Tools && n.cfg.TLS.Own(chain) == nil // a signature is looked at: only where it counts
	return access.OfCertificate(chain[0], own)
}

// welcomeClient makes l one of the clients.
func (n *Node) welcomeClient(l *link) {
	n.awaiting.remove(l)
	l.state = ready
	l.conn.SetLimits(clientSoftOut, clientHardOut)
	l.conn.SetFrameTime(clientFrameTime)
	l.conn.SetSendBuffer(clientSendBuffer)
	l.client = clientID(l)
	n.clients[l.conn.ID()] = l
}

// proofFrame handles a frame of a client that has not proved anything that counts.
func (n *Node) proofFrame(l *link, frame []byte) error {
	switch t := wire.FrameType(frame); t {
	case wire.TypeAuthenticate:
		return n.authenticate(l, frame)
	case wire.TypePing:
		return n.pong(l, frame)
	case wire.TypeGoaway:
		return saidGoaway(frame)
	}
	return n.turnAway(l)
}

// turnAway ends the connection of a client that may do nothing here.
func (n *Node) turnAway(l *link) error {
	if l.who == nil {
		n.refused(l, metrics.RefusedUnauthenticated, "no certificate and no token")
		return n.goaway(l, wire.GoawayUnauthenticated, fmt.Sprintf("grid %q asks clients who they are: connect with a certificate (Config.TLS, --tls-cert), or with a token for audience %q (Config.Token, --token-file)",
			n.cfg.Grid, n.audience()))
	}
	n.refused(l, metrics.RefusedNotPermitted, "no rule gives it anything")
	return n.goaway(l, wire.GoawayNotPermitted, fmt.Sprintf("%s has no permission on grid %q: a rule in spec.security.authorization.rules of the OrderGrid gives Submit, Read or Admin", l.who, n.cfg.Grid))
}

func (n *Node) audience() string {
	if n.cfg.Access == nil || n.cfg.Access.Tokens == nil {
		return ""
	}
	return n.cfg.Access.Tokens.Audience()
}

// refused counts and logs; strangers must not flood the log.
func (n *Node) refused(l *link, why metrics.Refusal, text string) {
	n.counters.ClientsRefused[why]++
	n.alarms.limited(n.loop.Clock().Mono(), "refused-"+why.String()+l.who.String(), func() {
		n.log.Warn("a client was refused; the same within a second is counted only", "remote", l.conn.Remote(), "client", l.who.String(), "name", fmt.Sprintf("%.64q", l.name), "reason", text)
	})
}

// authenticate begins to look at a token. It must never be in an error or a log.
func (n *Node) authenticate(l *link, frame []byte) error {
	var m wire.Authenticate
	if err := wire.DecodeAuthenticate(frame, &m); err != nil {
		n.counters.BadFrames++
		return n.goaway(l, wire.GoawayProtocol, err.Error())
	}
	switch {
	case n.cfg.Access == nil:
		n.authenticated(l, m.ReqID)
		return nil
	case n.cfg.Access.Tokens == nil:
		n.refused(l, metrics.RefusedUnauthenticated, "this node takes no tokens")
		return n.goaway(l, wire.GoawayUnauthenticated, "this node takes no tokens, allowed: a certificate")
	case l.asking:
		n.counters.BadFrames++
		return n.goaway(l, wire.GoawayProtocol, "second Authenticate before the answer to the first")
	}
	token := append([]byte(nil), m.Token...)
	n.ask(l, token, false, func(v access.Verdict) { n.judge(l, m.ReqID, token, v) })
	return nil
}

// ask has a token looked at; judge runs on the loop unless the connection is gone by
// then.
func (n *Node) ask(l *link, token []byte, again bool, judge func(access.Verdict)) {
	l.asking = true
	l.helloBy = math.MaxInt64
	host, _, _ := net.SplitHostPort(l.conn.Remote())
	n.cfg.Access.Tokens.Ask(host, token, again, func(v access.Verdict) {
		n.loop.Post(func() {
			l.asking = false
			if l.conn.Open() {
				judge(v)
			}
		})
	})
}

// judge is told who a client's new token stands for.
func (n *Node) judge(l *link, reqID uint64, token []byte, v access.Verdict) {
	switch {
	case v.Err == nil:
	case l.state == ready && errors.Is(v.Err, access.ErrUnavailable):
		n.authenticated(l, reqID) // it is let be who it was
		return
	case errors.Is(v.Err, access.ErrUnavailable):
		n.refused(l, metrics.RefusedUnavailable, v.Err.Error())
		_ = n.goaway(l, wire.GoawayAuthRetry, v.Err.Error()+"; connect again")
		return
	default:
		n.refused(l, metrics.RefusedUnauthenticated, v.Err.Error())
		_ = n.goaway(l, wire.GoawayUnauthenticated, fmt.Sprintf("%s: grid %q takes tokens for audience %q", v.Err, n.cfg.Grid, n.audience()))
		return
	}
	l.who = v.Identity
	if l.may = n.cfg.Access.Rules.Rules().Of(l.who); l.may == 0 {
		_ = n.turnAway(l)
		return
	}
	if n.takeIn(l) != nil {
		return
	}
	n.believe(l, token, v)
	if l.state != ready {
		n.welcomeClient(l)
	}
	n.authenticated(l, reqID)
}

// believe notes until when.
func (n *Node) believe(l *link, token []byte, v access.Verdict) {
	l.token, l.until = token, v.Until.UnixNano()
	if n.lookAt == 0 || l.until < n.lookAt {
		n.lookAt = l.until
	}
}

func (n *Node) authenticated(l *link, reqID uint64) {
	m := wire.Authenticated{ReqID: reqID, Permissions: uint16(l.may), User: []byte(l.who.Name())}
	if l.until != 0 {
		m.ForS = uint32(max(1, min(l.until-n.loop.Clock().Wall(), int64(time.Hour))/int64(time.Second)))
	}
	l.conn.SetOut(wire.AppendAuthenticated(l.conn.Out(), &m))
}

// notPermitted answers a request that takes a permission the client does not have.
// The text says whom to give what.
func (n *Node) notPermitted(l *link, t wire.Type, frame []byte) error {
	reqID, slot, err := wire.RequestID(frame)
	if err != nil {
		n.counters.BadFrames++
		return n.goaway(l, wire.GoawayProtocol, err.Error())
	}
	need := access.Needs(t)
	n.counters.NotPermitted[need]++
	n.alarms.limited(n.loop.Clock().Mono(), "not-permitted"+l.who.String(), func() {
		n.log.Warn("a request was not permitted; the same within a second is counted only", "remote", l.conn.Remote(), "client", l.who.String(), "request", t.String(), "needs", need.String(), "has", l.may.String())
	})
	l.conn.SetOut(wire.AppendReject(l.conn.Out(), wire.FramePartition(frame), &wire.Reject{RequestID: reqID, Slot: slot, Code: wire.CodeNotPermitted, ForType: t,
		Text: fmt.Appendf(nil, "%s may %s on grid %q, %v takes %s", l.who, l.may, n.cfg.Grid, t, need)}))
	return nil
}

// lookAgain has tokens of standing connections looked at that are due.
func (n *Node) lookAgain(now int64) {
	wall := n.loop.Clock().Wall()
	if n.lookAt == 0 || wall < n.lookAt || now < n.lookedAt+lookEvery {
		return
	}
	n.lookedAt, n.lookAt = now, 0
	for _, l := range n.clients {
		switch {
		case l.until == 0:
		case l.until <= wall && !l.asking:
			n.ask(l, l.token, true, func(v access.Verdict) { n.judgeAgain(l, v) })
		case n.lookAt == 0 || l.until < n.lookAt:
			n.lookAt = l.until
		}
	}
}

// judgeAgain is told what became of the token of a standing connection. Whoever is
// away for the moment, client or API server, is waited for.
func (n *Node) judgeAgain(l *link, v access.Verdict) {
	switch {
	case v.Err == nil:
		l.who = v.Identity
		if l.may = n.cfg.Access.Rules.Rules().Of(l.who); l.may == 0 {
			_ = n.turnAway(l)
			return
		}
		if n.takeIn(l) == nil {
			n.believe(l, l.token, v)
		}
	case errors.Is(v.Err, access.ErrExpired):
		_ = n.goaway(l, wire.GoawayAuthRetry, fmt.Sprintf("the token of %s has ended: connect again with the present one", l.who))
	case errors.Is(v.Err, access.ErrUnavailable):
		n.refused(l, metrics.RefusedUnavailable, v.Err.Error())
		_ = n.goaway(l, wire.GoawayAuthRetry, v.Err.Error()+"; connect again")
	default:
		n.refused(l, metrics.RefusedUnauthenticated, v.Err.Error())
		_ = n.goaway(l, wire.GoawayUnauthenticated, fmt.Sprintf("the token of %s is not accepted any more: %v", l.who, v.Err))
	}
}

// rulesUnread says what that means for clients.
func (n *Node) rulesUnread(before *access.Rules, err error) {
	if before == nil {
		n.log.Error("no client may do anything until the authorization rules can be read", "reason", err)
		return
	}
	n.log.Error("the authorization rules cannot be read: those before stay in use", "reason", err)
}

// rulesChanged judges the standing connections by the rules of now.
func (n *Node) rulesChanged() {
	rules := n.cfg.Access.Rules.Rules()
	if err := n.cfg.Access.Rules.Err(); err != nil {
		n.rulesUnread(rules, err)
		return
	}
	ended := 0
	for _, l := range n.clients {
		if l.may = rules.Of(l.who); l.may == 0 && l.conn.Open() {
			_ = n.turnAway(l)
			ended++
		}
	}
	n.log.Info("authorization rules changed", "clients", len(n.clients), "ended", ended)
}
