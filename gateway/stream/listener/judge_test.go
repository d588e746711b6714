package listener

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestTokensOfTheGrid: the grid's judgement is used while it is fresh, asked for again while a client has it, and lost with
// the rights of its user.
func TestTokensOfTheGrid(t *testing.T) {
	file := files(t)
	path := file("clients.json", fmt.Sprintf(`{"clients": [{"name": "a", "tokenFile": "a", "topics": ["orders.A.>"]}, {"name": "desk", "user": "system:serviceaccount:trading:desk", "topics": ["orders.D.>"]}]}`))
	tokens := t.TempDir()
	if err := writeToken(tokens, "a", tokenA); err != nil {
		t.Fatal(err)
	}
	known := map[string]client.Identity{
		"token-of-watcher": {User: "watcher", Permissions: wire.MayWatch, For: 30 * time.Millisecond},
		"token-of-desk":    {User: "system:serviceaccount:trading:desk", Permissions: wire.MayRead, For: time.Hour},
		"token-of-reader":  {User: "reader", Permissions: wire.MayRead, For: time.Hour},
	}
	var asked atomic.Int64
	var away atomic.Bool
	var gone atomic.Bool
	a, err := OpenAccess(Files{Clients: path, Tokens: tokens, Judge: func(_ context.Context, token string) (client.Identity, error) {
		asked.Add(1)
		id, is := known[token]
		switch {
		case away.Load():
			return id, errors.New("connection refused")
		case token == "token-of-nobody":
			return id, fmt.Errorf("dial: %w", client.ErrNotPermitted)
		case !is || gone.Load():
			return id, fmt.Errorf("dial: %w", client.ErrUnauthenticated)
		}
		return id, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	login := func(token string) (*server.Grant, error) {
		g, err := a.byToken(token, nil)
		if !errors.Is(err, server.ErrUndecided) {
			return g, err
		}
		type decided struct {
			g   *server.Grant
			err error
		}
		out := make(chan decided, 1)
		if !a.ask(token, func(g *server.Grant, err error) { out <- decided{g, err} }) {
			t.Fatal("no room to ask about one token")
		}
		d := <-out
		return d.g, d.err
	}
	for token, want := range map[string]string{tokenA: "a [orders.A.>]", "token-of-watcher": "watcher [orders.> executions.> book.> grid.status]", "token-of-desk": "desk [orders.D.>]",
		"token-of-reader": "reader is not in the file of clients and has no permission Watch", "guess": "the token is not known", "token-of-nobody": "no rule gives the token's user a permission"} {
		g, err := login(token)
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(g.Client, " ", g.Topics)
		}
		if !strings.Contains(got, want) || strings.Contains(got, "token-of") {
			t.Errorf("%s: %s, want %s", token, got, want)
		}
	}
	before := asked.Load()
	desk, err := login("token-of-desk")
	if err != nil || asked.Load() != before {
		t.Errorf("a fresh judgement is asked for again: %v", err)
	}
	if r, _ := http.NewRequest(http.MethodGet, "/stream", http.NoBody); true {
		r.Header.Set("Authorization", "Bearer something")
		if _, err := a.admit(r, nil); !errors.Is(err, server.ErrUndecided) {
			t.Errorf("a header with an unknown token: %v, want to ask the grid", err)
		}
	}

	watcher, err := login("token-of-watcher")
	if err != nil {
		t.Fatal(err)
	}
	keep := func() { // the clients that there are
		a.keeps(watcher)
		a.keeps(desk)
	}
	over := func() { time.Sleep(40 * time.Millisecond) }
	over()
	away.Store(true)
	if a.reviewProofs(keep) || !a.keeps(watcher) {
		t.Error("while the grid is away, what it judged is lost")
	}
	away.Store(false)
	for _, p := range a.proofs.bySum {
		p.until = time.Now().Add(-time.Second)
	}
	if a.reviewProofs(keep) || !a.keeps(watcher) || !a.keeps(desk) {
		t.Error("what the grid judges as before is lost")
	}
	over()
	before = asked.Load()
	if a.reviewProofs(func() { a.keeps(desk) }); asked.Load() != before || a.keeps(watcher) {
		t.Error("a token that no client has is asked about, or kept")
	}
	for _, p := range a.proofs.bySum {
		p.until = time.Now().Add(-time.Second)
	}
	gone.Store(true)
	if !a.reviewProofs(keep) || a.keeps(desk) {
		t.Error("a token that the grid takes no more is kept")
	}
	gone.Store(false)
	if desk, err = login("token-of-desk"); err != nil || !a.keeps(desk) {
		t.Fatal(err)
	}
	c, err := readClients(Files{Clients: file("clients.json", `{"clients": [{"name": "desk", "user": "system:serviceaccount:trading:desk", "topics": ["orders.E.>"]}]}`), Judge: a.files.Judge})
	if err != nil {
		t.Fatal(err)
	}
	a.known.Store(c)
	if a.keeps(desk) {
		t.Error("a client keeps what the file gave it before")
	}
}

// TestJudgesAreBounded: tokens that are being judged are bounded.
func TestJudgesAreBounded(t *testing.T) {
	hold := make(chan struct{})
	a, err := OpenAccess(Files{Judge: func(context.Context, string) (client.Identity, error) {
		<-hold
		return client.Identity{}, client.ErrUnauthenticated
	}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, maxJudged)
	for i := range maxJudged {
		if !a.ask(fmt.Sprint(i), func(_ *server.Grant, err error) { ended <- err }) {
			t.Fatalf("no room for %d", i)
		}
	}
	if a.ask("more", func(*server.Grant, error) {}) {
		t.Error("one more is judged")
	}
	close(hold)
	for range maxJudged {
		<-ended
	}
	if !a.ask("again", func(_ *server.Grant, err error) { ended <- err }) {
		t.Error("no room when all are judged")
	}
}
