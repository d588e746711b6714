package alerts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// aloneOfTwo runs the first of two gateways.
func aloneOfTwo(ctx context.Context, w *world) error {
	token, clients := filepath.Join(w.dir, "peers"), filepath.Join(w.dir, "clients.json")
	err := errors.Join(os.WriteFile(token, []byte("a-token-of-two-gateways\n"), 0o600), os.WriteFile(filepath.Join(w.dir, "page"), []byte("a-token-of-the-page\n"), 0o600),
		os.WriteFile(clients, []byte(`{"clients": [{"name": "page", "tokenFile": "`+filepath.Join(w.dir, "page")+`", "topics": ["user.>"]}]}`), 0o600))
	for i := range w.peers {
		if err == nil {
			w.peers[i], err = w.ports.Take("127.0.0.1", 0)
		}
	}
	if err != nil {
		return err
	}
	return w.ofTwo(ctx, 0)
}

// theOtherOfTwo runs the second one.
func theOtherOfTwo(ctx context.Context, w *world) error { return w.ofTwo(ctx, 1) }

func (w *world) ofTwo(ctx context.Context, i int) error {
	return w.beside(ctx, map[string]string{"gateway": "desk", "pod": fmt.Sprintf("desk-gateway-%d", i)}, "order-gateway", "--endpoint", strings.Join(w.grid.Endpoints, ","), "--grid", "dev",
		"--websocket", w.peers[i], "--websocket-insecure-plain", "--websocket-clients", filepath.Join(w.dir, "clients.json"),
		"--websocket-peer", strings.Join(w.peers[:], ","), "--websocket-peer-token", filepath.Join(w.dir, "peers"))
}
