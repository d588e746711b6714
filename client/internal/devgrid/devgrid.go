// Package devgrid starts `grid-node dev` for tests of the client: the real node,
// as the real processes, built from this checkout.
package devgrid

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/probe/devgrid"
)

// Grid is a running `grid-node dev`.
type Grid struct{ *devgrid.Grid }

var built string // directory of the program, once it is built

var build = sync.OnceValues(func() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(file), "..", "..", "..")
	dir, err := os.MkdirTemp("", "ordergrid-client-test-")
	if err != nil {
		return "", err
	}
	built = dir
	exe := filepath.Join(dir, "grid-node")
	cmd := exec.Command("go", "build", "-o", exe, "./cmd/grid-node")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/grid-node: %w\n%s", err, out)
	}
	return exe, nil
})

// Clean removes the built program; for TestMain.
func Clean() {
	if built != "" {
		os.RemoveAll(built)
	}
}

// Start builds grid-node and starts a grid of one shard with two nodes; args are
// more arguments for `grid-node dev` and come last.
func Start(args ...string) (*Grid, error) {
	exe, err := build()
	if err != nil {
		return nil, err
	}
	g, err := devgrid.Start(context.Background(), devgrid.Options{Program: exe, Shards: 1, Replicas: 2, MemoryMiB: 2048, Args: args})
	if err != nil {
		return nil, err
	}
	return &Grid{g}, nil
}

// Run is Start and Stop for a test.
func Run(t testing.TB, args ...string) *Grid {
	t.Helper()
	g, err := Start(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("grid-node dev:\n%s", g.Log())
		}
	})
	return g
}

// Order is a FIX 4.2 NewOrderSingle with this ClOrdID, padded with tag 58 to
// size bytes if it would be shorter.
func Order(clOrdID string, size int) []byte {
	body := fmt.Appendf(nil, "35=D\x0149=CLIENT\x0156=GRID\x0134=1\x0152=20261121-09:30:00\x0111=%s\x011=ACC\x0121=1\x0155=IBM\x0154=1\x0160=20261121-09:30:00\x0138=100\x0140=2\x0144=125.25\x0159=0\x01", clOrdID)
	if pad := size - len(body) - len("8=FIX.4.2\x019=000\x0110=000\x01") - len("58=\x01"); pad > 0 {
		body = append(append(append(body, "58="...), bytes.Repeat([]byte{'x'}, pad)...), 1)
	}
	m := append([]byte("8=FIX.4.2\x019="+strconv.Itoa(len(body))+"\x01"), body...)
	return fmt.Appendf(m, "10=%03d\x01", order.CheckSum(m))
}

// Node is one process, as the grid lists it.
type Node struct {
	Pod     string
	Address string
	PID     int
}

// Nodes are the present processes; one that was killed is started again.
func (g *Grid) Nodes() (nodes []Node, err error) {
	return nodes, g.control(http.MethodGet, "/v1/nodes", "", &nodes)
}

// PIDOf is the process that listens on address now.
func (g *Grid) PIDOf(address string) (int, error) {
	nodes, err := g.Nodes()
	for _, n := range nodes {
		if n.Address == address && n.PID != 0 {
			return n.PID, nil
		}
	}
	return 0, fmt.Errorf("no process of the grid listens on %s: %w", address, err)
}

// SetSpec changes fields of a partition's spec, for example {"preferredPod":
// "dev-s0-1"}. name is the record's, for example dev-p1.
func (g *Grid) SetSpec(name, fields string) error {
	return g.control(http.MethodPut, "/v1/partitions/"+name+"/spec", fields, nil)
}

// control talks to the arbiter's address, where the grid's switches are.
func (g *Grid) control(method, path, body string, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, g.Arbiter+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: status %s: %s", method, path, resp.Status, bytes.TrimSpace(text))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
