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
	dir   string // of its token
	token string // of the one client of its WebSocket
}

// gateway starts order-gateway with one listener before a grid. Its token, which may read all orders, is in a directory
// that is removed with it.
func (o *Options) gateway(ctx context.Context, g *devgrid.Grid, args ...string) (_ *gateway, err error) {
	program, err := devgrid.Find(o.Gateway, "order-gateway")
	if err != nil {
		return nil, err
	}
	w := &gateway{token: rand.Text()}
	if w.dir, err = os.MkdirTemp("", "order-probe-gateway-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(w.dir) // it has a token of a gateway that is gone
		}
	}()
	if strings.HasPrefix(args[0], "--websocket") {
		token, clients := filepath.Join(w.dir, "token"), filepath.Join(w.dir, "clients.json")
		entry, err := json.Marshal(map[string]any{"clients": []any{map[string]any{"name": "all", "tokenFile": token, "topics": []string{"orders.>"}}}})
		if err != nil {
			return nil, err
		}
		for file, text := range map[string][]byte{token: []byte(w.token), clients: entry} {
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

// streaming starts one for so many WebSocket clients.
func (o *Options) streaming(ctx context.Context, g *devgrid.Grid, clients int) (*gateway, error) {
	return o.gateway(ctx, g, "--websocket", "127.0.0.1:0", "--websocket-console=false", "--websocket-max-connections", fmt.Sprint(clients+64),
		"--websocket-client-connections", fmt.Sprint(clients+64), "--websocket-unknown-connections", "1024", "--websocket-memory-bytes", fmt.Sprint(max(256<<20, clients*96<<10)))
}

func (w *gateway) end() {
	w.Kill()
	_ = os.RemoveAll(w.dir) // below the directory for temporary files
}
