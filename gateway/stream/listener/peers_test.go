package listener

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/gateway/stream/server"
)

// A gateway with the token of the deployment reads what clients publish, and nothing else; with the one before it is a
// stranger once that was replaced.
func TestPeerToken(t *testing.T) {
	file := files(t)
	f := Files{Peer: file("peers", tokenA), Clients: file("clients.json", `{"clients": [{"name": "a", "tokenFile": "`+file("token", tokenB)+`", "topics": [">"], "publish": ["user.a"]}]}`)}
	a, err := OpenAccess(f)
	if err != nil {
		t.Fatal(err)
	}
	of := func(token string) (*server.Grant, error) {
		return a.admit(&http.Request{Header: http.Header{"Authorization": {"Bearer " + strings.TrimSpace(token)}}}, nil)
	}
	g, err := of(tokenA)
	if err != nil || !g.Relay || len(g.Topics) != 1 || g.Topics[0].String() != "user.>" || len(g.Publish) != 0 || !a.keeps(g) {
		t.Fatalf("another gateway is %+v, %v", g, err)
	}
	if g, err := of(tokenB); err != nil || g.Relay || len(g.Publish) != 1 {
		t.Errorf("a client is %+v, %v", g, err)
	}
	file("peers", tokenB+"-other")
	if changed, err := a.readPeer(); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if _, err := of(tokenA); err == nil || a.keeps(g) {
		t.Errorf("the token before is taken: %v", err)
	}
	file("peers", "short")
	if changed, err := a.readPeer(); changed || err == nil {
		t.Errorf("a short token: %v, %v", changed, err)
	}
	if _, err := of(tokenB + "-other"); err != nil {
		t.Errorf("the one that was read before: %v", err)
	}
	if _, err := OpenAccess(f); err == nil || !strings.Contains(err.Error(), "allowed: a token of at least 16") {
		t.Errorf("it begins with a short token: %v", err)
	}
}

// Each address of a name is a gateway.
func TestPeersAreLookedUp(t *testing.T) {
	p := Peers{Addresses: []string{"127.0.0.1:7441", "127.0.0.2:7441", "127.0.0.1:7441"}}
	found, failed, err := p.lookUp(t.Context())
	if err != nil || len(failed) != 0 || len(found) != 2 || found["127.0.0.1:7441"] != "127.0.0.1" {
		t.Errorf("%v, %v, %v", found, failed, err)
	}
	p.Addresses = append(p.Addresses, "no-such-host.invalid:7441")
	if found, failed, err = p.lookUp(t.Context()); err == nil || len(found) != 2 || !failed["no-such-host.invalid"] || failed["127.0.0.1"] {
		t.Errorf("with a name that does not resolve: %v, %v, %v", found, failed, err)
	}
}
