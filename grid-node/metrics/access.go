package metrics

import (
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/access"
)

// Refusal is the reason why a client was rejected.
type Refusal uint8

// The reasons.
const (
	RefusedUnauthenticated Refusal = iota
	RefusedNotPermitted
	RefusedUnavailable
	RefusedTooMany
	refusals
)

var refusalNames = [refusals]string{"unauthenticated", "not_permitted", "unavailable", "too_many"}

// String is the label of the metric.
func (r Refusal) String() string { return refusalNames[r] }

// Access is the state of the authorization of clients.
type Access struct {
	RulesUnread bool
	RulesRead   time.Time // zero before any could be read
	Tokens      access.TokenStats
}

func (e emitter) access(s *Snapshot) {
	if s.Access == nil {
		return
	}
	for r := range refusals {
		e.counter(clientsRefused, s.Node.ClientsRefused[r], r.String())
	}
	for _, p := range access.Each() {
		e.counter(notPermitted, s.Node.NotPermitted[p], strings.ToLower(p.String()))
	}
	e.gauge(rulesUnread, b2f(s.Access.RulesUnread))
	var read float64
	if at := s.Access.RulesRead; !at.IsZero() {
		read = float64(at.Unix())
	}
	e.gauge(rulesRead, read)
	t := &s.Access.Tokens
	e.counter(tokenReviews, t.Accepted, "accepted")
	e.counter(tokenReviews, t.Refused, "refused")
	e.counter(tokenReviews, t.Failed, "failed")
	e.counter(tokenReviews, t.Cached, "cached")
	e.counter(tokenReviews, t.Turned, "turned_away")
}
