package system

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/internal/tail"
	"github.com/ordergrid/ordergrid/probe/devgrid"
)

// gateway is an order-gateway before a grid.
type gateway struct {
	cmd   *exec.Cmd
	dir   string // of its token
	addr  string // of its listener
	token string // of the one client of its WebSocket
	said  tail.Writer
	read  sync.WaitGroup
}

// listens is the line of the log with the address of a listener.
var listens = regexp.MustCompile(`(?:WebSocket clients are accepted|SQL is served)" address=(\S+)`)

// gatewayStart is how long a gateway may take to accept clients.
const gatewayStart = time.Minute

// gateway starts order-gateway with one listener before a grid. Its token, which may read all orders, is in a directory
// that is removed with it.
func (o *Options) gateway(ctx context.Context, g *devgrid.Grid, args ...string) (_ *gateway, err error) {
	program, err := find(o.Gateway, "order-gateway")
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
	w.cmd = exec.CommandContext(ctx, program, append([]string{"--endpoint", strings.Join(g.Endpoints, ","), "--http", "127.0.0.1:0"}, args...)...)
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
		w.cmd.Args = append(w.cmd.Args, "--websocket-clients", clients, "--websocket-insecure-plain")
	}
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := w.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	found := make(chan string, 1)
	w.read.Go(func() { w.follow(out, found) })
	select {
	case w.addr = <-found:
	case <-time.After(gatewayStart):
	}
	if w.addr == "" {
		w.end()
		return nil, fmt.Errorf("%s accepts no clients: %.1000s", program, w.said.String())
	}
	return w, nil
}

// streaming starts one for so many WebSocket clients.
func (o *Options) streaming(ctx context.Context, g *devgrid.Grid, clients int) (*gateway, error) {
	return o.gateway(ctx, g, "--websocket", "127.0.0.1:0", "--websocket-console=false", "--websocket-max-connections", fmt.Sprint(clients+64),
		"--websocket-client-connections", fmt.Sprint(clients+64), "--websocket-unknown-connections", "1024", "--websocket-memory-bytes", fmt.Sprint(max(256<<20, clients*96<<10)))
}

// follow keeps the end of what the gateway says, and finds its address.
func (w *gateway) follow(out io.Reader, found chan<- string) {
	lines := bufio.NewScanner(out)
	for sent := false; lines.Scan(); {
		fmt.Fprintln(&w.said, lines.Text())
		if m := listens.FindStringSubmatch(lines.Text()); m != nil && !sent {
			sent = true
			found <- m[1]
		}
	}
	close(found)
}

func (w *gateway) end() {
	_ = w.cmd.Process.Kill() // it may have ended
	w.read.Wait()
	_ = w.cmd.Wait() // it was killed
	_ = os.RemoveAll(w.dir)
}
