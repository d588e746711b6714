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
	"github.com/ordergrid/ordergrid/gateway/judge"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestTokensOfTheGrid: what the holder of a token may read is what the file has for the user, or all with the permission
// Watch; it loses what the file gave it with the file.
func TestTokensOfTheGrid(t *testing.T) {
	file := files(t)
	path := file("clients.json", `{"clients": [{"name": "a", "tokenFile": "a", "topics": ["orders.A.>"]}, {"name": "desk", "user": "system:serviceaccount:trading:desk", "topics": ["orders.D.>"]}]}`)
	tokens := t.TempDir()
	if err := writeToken(tokens, "a", tokenA); err != nil {
		t.Fatal(err)
	}
	known := map[string]client.Identity{
		"token-of-watcher": {User: "watcher", Permissions: wire.MayWatch, For: time.Hour},
		"token-of-auditor": {User: "auditor", Permissions: wire.MayWatch | wire.MayRead, For: time.Hour},
		"token-of-desk":    {User: "system:serviceaccount:trading:desk", Permissions: wire.MayRead, For: time.Hour},
		"token-of-reader":  {User: "reader", Permissions: wire.MayRead, For: time.Hour},
	}
	var asked atomic.Int64
	a, err := OpenAccess(Files{Clients: path, Tokens: tokens, Judge: func(_ context.Context, token string) (client.Identity, error) {
		asked.Add(1)
		id, is := known[token]
		switch {
		case token == "token-of-nobody":
			return id, fmt.Errorf("dial: %w", client.ErrNotPermitted)
		case !is:
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
	for token, want := range map[string]string{tokenA: "a [orders.A.>]", "token-of-watcher": "watcher [orders.> executions.> book.> downstream.> grid.status]", "token-of-auditor": "auditor [region.> orders.> executions.> book.> downstream.> grid.status]", "token-of-desk": "desk [orders.D.>]",
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
	if !a.keeps(desk) {
		t.Error("a client is lost for nothing")
	}
	c, err := readClients(Files{Clients: file("clients.json", `{"clients": [{"name": "desk", "user": "system:serviceaccount:trading:desk", "topics": ["orders.E.>"]}]}`), Judge: a.files.Judge})
	if err != nil {
		t.Fatal(err)
	}
	a.known.Store(c)
	if a.keeps(desk) {
		t.Error("a client keeps what the file gave it before")
	}
	if desk, err = login("token-of-desk"); err != nil || !a.keeps(desk) || asked.Load() != before {
		t.Errorf("what the file gives it now is lost, or the grid is asked for it: %v", err)
	}
	if g, err := login("token-of-watcher"); err != nil || !a.keeps(g) || a.tokens.Review(func() { a.keeps(g) }) {
		t.Errorf("a client by permission: %v", err)
	}
}

// TestJudgesOfStreamsAreBounded: a login that comes while too many tokens are judged is told so.
func TestJudgesOfStreamsAreBounded(t *testing.T) {
	hold := make(chan struct{})
	a, err := OpenAccess(Files{Judge: func(context.Context, string) (client.Identity, error) {
		<-hold
		return client.Identity{}, client.ErrUnauthenticated
	}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, judge.AtOnce)
	for i := range judge.AtOnce {
		if !a.ask(fmt.Sprint(i), func(_ *server.Grant, err error) { ended <- err }) {
			t.Fatalf("no room for %d", i)
		}
	}
	if a.ask("more", func(*server.Grant, error) {}) {
		t.Error("one more is judged")
	}
	close(hold)
	for range judge.AtOnce {
		if err := <-ended; !errors.Is(err, judge.ErrToken) {
			t.Error(err)
		}
	}
}
