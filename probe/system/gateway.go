package system

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ordergrid/ordergrid/probe/devgrid"
)

// gateway is an order-gateway before a grid.
type gateway struct {
	*devgrid.Gateway
	dir              string // of its tokens
	token, publisher string // of the clients of its WebSocket: one that reads, and one that publishes to user.>
}

// gateway starts order-gateway with one listener before a grid. Its tokens, of a client that may read all and of one that
// publishes, are in a directory that is removed with it.
func (o *Options) gateway(ctx context.Context, g *devgrid.Grid, args ...string) (_ *gateway, err error) {
	program, err := devgrid.Find(o.Gateway, "order-gateway")
	if err != nil {
		return nil, err
	}
	w := &gateway{token: rand.Text(), publisher: rand.Text()}
	if w.dir, err = os.MkdirTemp("", "order-probe-gateway-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(w.dir) // it has a token of a gateway that is gone
		}
	}()
	if strings.HasPrefix(args[0], "--websocket") {
		token, publisher, clients := filepath.Join(w.dir, "token"), filepath.Join(w.dir, "publisher"), filepath.Join(w.dir, "clients.json")
		entries, err := json.Marshal(map[string]any{"clients": []any{
			map[string]any{"name": "all", "tokenFile": token, "topics": []string{"orders.>", "user.>"}},
			map[string]any{"name": "publisher", "tokenFile": publisher, "publish": []string{"user.>"}}}})
		if err != nil {
			return nil, err
		}
		for file, text := range map[string][]byte{token: []byte(w.token), publisher: []byte(w.publisher), clients: entries} {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				return nil, err
			}
		}
		args = append(args, "--websocket-clients", clients, "--websocket-insecure-plain")
	}
	if w.Gateway, err = g.StartGateway(ctx, program, args...); err != nil {
		return nil, err
	}
	return w, nil
}

// unbounded is more messages, and bytes, than a client publishes in a second.
const unbounded = "1099511627776"

// streaming starts one for so many WebSocket clients.
func (o *Options) streaming(ctx context.Context, g *devgrid.Grid, clients int) (*gateway, error) {
	return o.gateway(ctx, g, "--websocket", "127.0.0.1:0", "--websocket-console=false", "--websocket-max-connections", fmt.Sprint(clients+64),
		"--websocket-client-connections", fmt.Sprint(clients+64), "--websocket-unknown-connections", "1024", "--websocket-publish-messages", unbounded, "--websocket-publish-bytes", unbounded, "--websocket-memory-bytes", fmt.Sprint(max(256<<20, clients*96<<10)))
}

func (w *gateway) end() {
	w.Kill()
	_ = os.RemoveAll(w.dir) // below the directory for temporary files
}
