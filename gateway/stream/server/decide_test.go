package server

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// A token that is judged elsewhere: what the client sends meanwhile waits, by login or header, and the loop goes on.
func TestTokensJudgedElsewhere(t *testing.T) {
	kinds(t, func(t *testing.T, kind transport.Kind) {
		judged := make(chan func(*Grant, error), 10)
		room := make(chan struct{}, 100)
		s, addr := start(t, kind, func(c *Config) {
			c.Admit = func(r *http.Request, _ *x509.Certificate) (*Grant, error) {
				if r.Header.Get("Authorization") != "" {
					return nil, ErrUndecided
				}
				return nil, nil
			}
			c.Login = func(string, *x509.Certificate) (*Grant, error) { return nil, ErrUndecided }
			c.Ask = func(_ string, decided func(*Grant, error)) bool {
				select {
				case <-room:
					judged <- decided
					return true
				default:
					return false
				}
			}
		})
		pattern, err := topics.ParsePattern("orders.A17.>")
		if err != nil {
			t.Fatal(err)
		}
		grant := func() *Grant { return &Grant{Client: "desk", Topics: []topics.Pattern{pattern}} }
		const login, subscribe = `{"op":"login","token":"x"}`, `{"op":"subscribe","id":1,"topics":"orders.A17.>"}`

		room <- struct{}{}
		a := connect(t, addr, JSON)
		a.send(login)
		a.send(subscribe) // it must not be answered before the login
		decide := <-judged
		b := connect(t, addr, JSON) // the loop is not held up, and there is no room for another one
		b.send(login)
		b.want(`"error":"not permitted: login: too many tokens are being judged: try again"`)
		decide(grant(), nil)
		a.want(`"welcome"`)
		a.want(`"subscribed"`)

		room <- struct{}{}
		c := connect(t, addr, JSON)
		c.send(login)
		c.send(subscribe)
		(<-judged)(nil, errors.New("the token is not known"))
		c.want(`"error":"not permitted: login: the token is not known"`)
		if _, _, err := c.read(); err == nil || !strings.Contains(err.Error(), "login refused") {
			t.Errorf("%v, want the end", err)
		}

		dial := func() chan error {
			ended := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				ws, _, err := websocket.Dial(ctx, "ws://"+addr+"/stream", &websocket.DialOptions{Subprotocols: []string{JSON}, HTTPHeader: http.Header{"Authorization": {"Bearer x"}}})
				if err == nil {
					err = ws.Close(websocket.StatusNormalClosure, "")
				}
				ended <- err
			}()
			return ended
		}
		for _, k := range []struct {
			room bool
			err  error
			want string
		}{{true, nil, ""}, {true, errors.New("no"), "403"}, {false, nil, "403"}} {
			if k.room {
				room <- struct{}{}
			}
			ended := dial()
			if k.room {
				(<-judged)(grant(), k.err)
			}
			if err := <-ended; k.want == "" && err != nil || k.want != "" && (err == nil || !strings.Contains(err.Error(), k.want)) {
				t.Errorf("%+v: %v", k, err)
			}
		}

		// A client that is gone before the decision is not let in.
		room <- struct{}{}
		d := connect(t, addr, JSON)
		d.send(login)
		decide = <-judged
		_ = d.c.CloseNow()
		until := func(what string, ok func() bool) {
			t.Helper()
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
				is := false
				s.Do(func(*fanout.Hub) { is = ok() })
				if is {
					return
				}
				if time.Now().After(end) {
					t.Fatalf("not within 20 s: %s", what)
				}
			}
		}
		until("all that have not logged in are gone", func() bool { return len(s.unknown) == 0 })
		decide(grant(), nil)
		until("the first client is the only one", func() bool { return s.named["desk"] != nil && s.named["desk"].conns == 1 && len(s.clients) == 1 })
	})
}
