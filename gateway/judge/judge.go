// Package judge has a grid judge the tokens of a gateway's clients (docs/adr/0066-the-grid-judges-the-tokens-of-its-gateways-clients.md):
// its nodes ask the API server (TokenReview) and apply their rules, so the gateway needs no right of its own. How many
// tokens are judged at the same time, and how many are known, is bounded.
package judge

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
)

// Asker asks the grid who the holder of a token is, such as client.Identify. client.ErrUnauthenticated and
// client.ErrNotPermitted are judgements; another error means that none was made. No error has the token.
type Asker func(ctx context.Context, token string) (client.Identity, error)

// Bounds of Tokens.
const (
	MaxKnown = 4096 // tokens that the grid has accepted
	AtOnce   = 16   // tokens that it is asked about at the same time

	askTime = 4 * time.Second // shorter than a client has to log in
	// lasts is how long a judgement is used where the grid names no time, or cannot be asked again.
	lasts = time.Minute
)

// Errors of a judgement, for errors.Is.
var (
	ErrToken     = errors.New("the token is not known")
	ErrNotJudged = errors.New("the grid cannot be asked about the token: try again")
)

// notJudged is ErrNotJudged with why: that is for the log of the gateway, and not for the client.
type notJudged struct{ why error }

func (*notJudged) Error() string        { return ErrNotJudged.Error() }
func (*notJudged) Is(target error) bool { return target == ErrNotJudged }

// Why returns why a judgement was not made, nil for another error.
func Why(err error) error {
	var e *notJudged
	if errors.As(err, &e) {
		return e.why
	}
	return nil
}

// Sum identifies a token.
type Sum [sha256.Size]byte

// SumOf returns the Sum of a token.
func SumOf(token string) Sum { return sha256.Sum256([]byte(token)) }

// Proof is a token that the grid has accepted.
type Proof struct {
	User string // the name of its holder
	May  uint16 // what the holder may do in the grid: wire.May* bits

	sum   Sum
	token string
	until time.Time
	seen  bool // a client has it
}

// Tokens are those that the grid has accepted. It is safe for concurrent use.
type Tokens struct {
	ask Asker

	mu     sync.Mutex
	known  map[Sum]*Proof
	judged int // at present
}

// New returns Tokens that ask.
func New(ask Asker) *Tokens { return &Tokens{ask: ask, known: map[Sum]*Proof{}} }

// Known returns the proof of a token that the grid has accepted before, while it would not review it again; nil: Judge it.
func (t *Tokens) Known(sum Sum) *Proof {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.known[sum]; p != nil && time.Now().Before(p.until) {
		return p
	}
	return nil
}

// Judge has the grid judge a token; decided is called once, from another goroutine. false: AtOnce are being judged, and
// decided is not called.
func (t *Tokens) Judge(token string, decided func(*Proof, error)) bool {
	t.mu.Lock()
	full := t.judged >= AtOnce
	if !full {
		t.judged++
	}
	t.mu.Unlock()
	if full {
		return false
	}
	go func() {
		p, err := t.judge(token)
		t.mu.Lock()
		t.judged--
		if err == nil {
			p, err = t.keep(p)
		}
		t.mu.Unlock()
		decided(p, err)
	}()
	return true
}

// keep makes a proof known. With the same judgement as before it is the same proof.
func (t *Tokens) keep(p *Proof) (*Proof, error) {
	switch old := t.known[p.sum]; {
	case old != nil && old.User == p.User && old.May == p.May:
		old.until, p = p.until, old
	case old == nil && len(t.known) >= MaxKnown:
		return nil, fmt.Errorf("%d tokens of the grid are in use, allowed: %d", len(t.known), MaxKnown)
	default:
		t.known[p.sum] = p
	}
	p.seen = true
	return p, nil
}

// judge asks the grid. The text of its error has nothing of the token.
func (t *Tokens) judge(token string) (*Proof, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	id, err := t.ask(ctx, token)
	switch {
	case errors.Is(err, client.ErrUnauthenticated):
		return nil, ErrToken
	case errors.Is(err, client.ErrNotPermitted):
		return nil, fmt.Errorf("%w by the grid: no rule gives the token's user a permission", client.ErrNotPermitted)
	case err != nil:
		return nil, &notJudged{err}
	}
	p := &Proof{User: id.User, May: id.Permissions, sum: SumOf(token), token: token, until: time.Now().Add(lasts)}
	if id.For > 0 {
		p.until = time.Now().Add(id.For)
	}
	return p, nil
}

// Keeps reports whether a proof that was given is one still, and marks it for Review.
func (t *Tokens) Keeps(p *Proof) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.seen = true
	return t.known[p.sum] == p
}

// Review drops the tokens that no client has, and has the grid judge those again whose time is over. It reports whether
// clients have lost their proof. mark calls Keeps for the proofs of all clients; it is not called without proofs.
func (t *Tokens) Review(mark func()) (lost bool) {
	t.mu.Lock()
	for _, p := range t.known {
		p.seen = false
	}
	some := len(t.known) > 0
	t.mu.Unlock()
	if !some {
		return false
	}
	mark()
	for _, p := range t.due() {
		now, err := t.judge(p.token)
		t.mu.Lock()
		switch {
		case errors.Is(err, ErrNotJudged):
			p.until = time.Now().Add(lasts) // it keeps its identity, as at a node
		case err != nil || now.User != p.User || now.May != p.May:
			delete(t.known, p.sum)
			lost = true
		default:
			p.until = now.until
		}
		t.mu.Unlock()
	}
	return lost
}

// due drops the proofs that are over and that no client has, and returns the others that are over.
func (t *Tokens) due() (list []*Proof) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for sum, p := range t.known {
		switch over := time.Now().After(p.until); {
		case over && !p.seen:
			delete(t.known, sum)
		case over:
			list = append(list, p)
		}
	}
	return list
}
