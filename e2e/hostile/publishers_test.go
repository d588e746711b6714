package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/proc"
	"github.com/ordergrid/ordergrid/internal/race"
)

// publishers are WebSocket clients of an order-gateway that publish to a region as fast as they can.
var publishers = []neighbour{
	{name: "100 publish values of 16 KiB to a region and read no answer", conns: 100, talk: publishesUnread, busy: true, seen: "ordergrid_node_region_operations_total"},
	{name: "100 publish values of 16 KiB to a region and read no answer, and reconnect", conns: 100, talk: publishesUnread, busy: true, stay: 300 * time.Millisecond, seen: "ordergrid_node_region_operations_total"},
}

const publisherToken = "publisher-token-publisher-token"

func publishesUnread(c net.Conn) {
	over := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return c, nil }}}
	ws, _, err := websocket.Dial(context.Background(), "ws://"+c.RemoteAddr().String()+"/stream", &websocket.DialOptions{HTTPClient: over, Subprotocols: []string{"ordergrid.json.v1"}})
	if err != nil {
		return
	}
	send := func(text string) { err = ws.Write(context.Background(), websocket.MessageText, []byte(text)) }
	send(`{"op":"login","token":"` + publisherToken + `"}`)
	put := fmt.Sprintf(`{"op":"publish","id":1,"replicated":true,"topic":"region.positions.k%d","data":"%s"}`, rand.Uint32(), strings.Repeat("x", 16<<10))
	for err == nil {
		send(put)
		if race.Enabled { // the detector would have the publishers take the machine, not the gateway
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// openPublishing starts an order-gateway for WebSocket clients before a grid, and returns its address.
func openPublishing(t *testing.T, g *testgrid.Grid) string {
	t.Helper()
	dir, addr, page := t.TempDir(), proc.PortForTest(t), proc.PortForTest(t)
	token, clients := filepath.Join(dir, "token"), filepath.Join(dir, "clients.json")
	for file, text := range map[string]string{token: publisherToken + "\n",
		clients: fmt.Sprintf(`{"clients": [{"name": "publisher", "tokenFile": %q, "topics": ["user.>"], "publish": ["region.positions.>"]}]}`, token)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	downstream.Run(t, "order-gateway", "--http", page, "--websocket", addr, "--websocket-insecure-plain", "--websocket-clients", clients, "--websocket-publish-regions", "positions",
		"--endpoint", strings.Join(g.Endpoints, ","))
	downstream.WaitFor(t, "order-gateway", func() bool {
		resp, err := http.Get("http://" + page + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return addr
}

// What such clients do to orders is as with other neighbours; and a program that changes an object of the region reads it back
// beside them.
func TestPublishersDenyNothing(t *testing.T) {
	exe := program(t)
	// The log keeps every value: on a slow machine there are many until the orders are through.
	args := []string{"--memory-limit", "2Gi", "--", "--regions=" + fileOf(t, "regions.yaml", "memory: 64Mi\nregions: [{name: positions}]\n")}
	for _, n := range publishers {
		t.Run(n.name, func(t *testing.T) {
			g, other := start(t, exe, args...), start(t, exe, args...)
			doors := map[*testgrid.Grid]string{g: openPublishing(t, g), other: openPublishing(t, other)}
			n.door = func(g *testgrid.Grid) []string { return []string{doors[g]} }
			stop, changed := make(chan struct{}), make(chan int)
			go func() { changed <- changesBeside(t, g, stop) }()
			n.beside(t, g, other)
			close(stop)
			made := <-changed
			theirs := total(t, g, n.seen) - float64(made)
			t.Logf("%d changes of another client were made, %.0f of the publishers", made, theirs)
			if least := n.least(made); made == 0 || theirs < float64(least) {
				t.Errorf("%d changes of another client, want some; %.0f of the publishers, want at least %d", made, theirs, least)
			}
		})
	}
}

// least is how many values publishers have put at the least, beside so many changes of another client. Under the race
// detector they are paced: one for each connection.
func (n *neighbour) least(made int) int {
	if race.Enabled {
		return n.conns
	}
	return 4 * made
}

// changesBeside counts an object up until stop is closed, and returns how far.
func changesBeside(t *testing.T, g *testgrid.Grid, stop <-chan struct{}) (n int) {
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints, DialTimeout: time.Minute, RequestTimeout: time.Minute})
	if err != nil {
		t.Error(err)
		return 0
	}
	defer c.Close() //nolint:errcheck // it never fails
	r := c.Region("positions")
	for {
		select {
		case <-stop:
			return n
		case <-time.After(20 * time.Millisecond):
		}
		if _, err := r.Put(t.Context(), []byte("own"), fmt.Append(nil, n+1)); err != nil {
			t.Errorf("after %d changes: %v", n, err)
			return n
		}
		n++
		if e, err := r.Get(t.Context(), []byte("own")); err != nil || string(e.Value) != fmt.Sprint(n) {
			t.Errorf("after %d changes: value %q, %v", n, e.Value, err)
			return n
		}
	}
}
