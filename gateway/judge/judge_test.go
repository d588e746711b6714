package judge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// grid answers about tokens as a test wants.
type grid struct {
	asked      atomic.Int64
	away, gone atomic.Bool
}

func (g *grid) ask(_ context.Context, token string) (client.Identity, error) {
	g.asked.Add(1)
	switch {
	case g.away.Load():
		return client.Identity{}, errors.New("connection refused")
	case token == "token-of-nobody":
		return client.Identity{}, fmt.Errorf("dial: %w", client.ErrNotPermitted)
	case g.gone.Load() || !strings.HasPrefix(token, "token-of-"):
		return client.Identity{}, fmt.Errorf("dial: %w", client.ErrUnauthenticated)
	}
	return client.Identity{User: strings.TrimPrefix(token, "token-of-"), Permissions: wire.MayRead, For: time.Hour}, nil
}

// of judges a token and waits for it.
func (t *Tokens) of(token string) (*Proof, error) {
	type judged struct {
		p   *Proof
		err error
	}
	out := make(chan judged, 1)
	if !t.Judge(token, func(p *Proof, err error) { out <- judged{p, err} }) {
		return nil, errors.New("full")
	}
	d := <-out
	return d.p, d.err
}

// expire ends the time of all judgements.
func (t *Tokens) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.known {
		p.until = time.Now().Add(-time.Second)
	}
}

// TestJudgements: a judgement is used while it is fresh, made again while a client has the token, and lost with the token.
func TestJudgements(t *testing.T) {
	g := &grid{}
	tokens := New(g.ask)
	for token, want := range map[string]error{"guess": ErrToken, "token-of-nobody": client.ErrNotPermitted} {
		if _, err := tokens.of(token); !errors.Is(err, want) || strings.Contains(err.Error(), "token-of") || Why(err) != nil {
			t.Errorf("%s: %v, want %v", token, err, want)
		}
	}
	desk, err := tokens.of("token-of-desk")
	if err != nil || desk.User != "desk" || desk.May != wire.MayRead {
		t.Fatalf("%+v, %v", desk, err)
	}
	if tokens.Known(SumOf("token-of-desk")) != desk || tokens.Known(SumOf("guess")) != nil {
		t.Error("what is known is not what was judged")
	}
	bank, err := tokens.of("token-of-bank")
	if err != nil {
		t.Fatal(err)
	}
	keep := func() { tokens.Keeps(desk); tokens.Keeps(bank) }

	tokens.expire()
	if tokens.Known(SumOf("token-of-desk")) != nil {
		t.Error("a judgement that is over is used")
	}
	g.away.Store(true)
	if _, err := tokens.of("token-of-desk"); !errors.Is(err, ErrNotJudged) || err.Error() != ErrNotJudged.Error() || fmt.Sprint(Why(err)) != "connection refused" {
		t.Errorf("while the grid is away: %v, because of %v", err, Why(err))
	}
	if tokens.Review(keep) || !tokens.Keeps(desk) {
		t.Error("while the grid is away, what it judged is lost")
	}
	g.away.Store(false)
	tokens.expire()
	if tokens.Review(keep) || !tokens.Keeps(desk) || !tokens.Keeps(bank) {
		t.Error("what the grid judges as before is lost")
	}
	if again, err := tokens.of("token-of-desk"); again != desk {
		t.Errorf("the same judgement is another proof: %v", err)
	}
	tokens.expire()
	before := g.asked.Load()
	if tokens.Review(func() { tokens.Keeps(desk) }); g.asked.Load() != before+1 || tokens.Keeps(bank) {
		t.Error("a token that no client has is asked about, or kept")
	}
	tokens.expire()
	g.gone.Store(true)
	if !tokens.Review(keep) || tokens.Keeps(desk) {
		t.Error("a token that the grid takes no more is kept")
	}
	if tokens.Review(func() { t.Error("without proofs, clients are looked at") }) {
		t.Error("without proofs, one is lost")
	}
}

// TestJudgesAreBounded: tokens that are being judged are bounded, and so are those that are known.
func TestJudgesAreBounded(t *testing.T) {
	hold := make(chan struct{})
	tokens := New(func(context.Context, string) (client.Identity, error) {
		<-hold
		return client.Identity{User: "u"}, nil
	})
	ended := make(chan error, AtOnce)
	for i := range AtOnce {
		if !tokens.Judge(fmt.Sprint(i), func(_ *Proof, err error) { ended <- err }) {
			t.Fatalf("no room for %d", i)
		}
	}
	if tokens.Judge("more", func(*Proof, error) {}) {
		t.Error("one more is judged")
	}
	close(hold)
	for range AtOnce {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for i := range MaxKnown - AtOnce {
		if _, err := tokens.of(fmt.Sprint("next ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tokens.of("one too many"); err == nil || !strings.Contains(err.Error(), "4096 tokens of the grid are in use, allowed: 4096") {
		t.Errorf("one more is known: %v", err)
	}
	if _, err := tokens.of("0"); err != nil {
		t.Errorf("one that is known: %v", err)
	}
}
