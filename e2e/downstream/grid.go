// Package downstream starts the systems that sinks write to, and a grid beside them, as real processes for tests and
// for a laptop.
package downstream

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/probe/devgrid"
)

var programs struct {
	sync.Mutex
	dir   string
	built map[string]string
}

// Program builds a program of cmd from this checkout, once in a process.
func Program(name string) (string, error) {
	programs.Lock()
	defer programs.Unlock()
	if exe := programs.built[name]; exe != "" {
		return exe, nil
	}
	root, err := checkout()
	if err != nil {
		return "", err
	}
	if programs.dir == "" {
		if programs.dir, err = os.MkdirTemp("", "ordergrid-downstream-"); err != nil {
			return "", err
		}
		programs.built = map[string]string{}
	}
	exe := filepath.Join(programs.dir, name)
	cmd := exec.Command("go", "build", "-o", exe, "./cmd/"+name)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/%s: %w\n%s", name, err, out)
	}
	programs.built[name] = exe
	return exe, nil
}

// Clean removes the programs that were built; for TestMain.
func Clean() {
	programs.Lock()
	defer programs.Unlock()
	if programs.dir != "" {
		_ = os.RemoveAll(programs.dir) // below the directory of temporary files
		programs.dir, programs.built = "", nil
	}
}

func checkout() (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ordergrid/ordergrid").Output()
	if err != nil {
		return "", fmt.Errorf("find the checkout (run this inside it): %w", err)
	}
	return strings.TrimSpace(string(root)), nil
}

// Grid is a grid of real processes: one shard of two nodes. args are more arguments of grid-node dev, such as
// --external-sink kafka. It ends with the test.
func Grid(t testing.TB, args ...string) *devgrid.Grid {
	t.Helper()
	exe, err := Program("grid-node")
	if err != nil {
		t.Fatal(err)
	}
	g, err := devgrid.Start(context.Background(), devgrid.Options{Program: exe, Shards: 1, Replicas: 2, MemoryMiB: 2048, Args: args})
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

// Order is a FIX 4.2 NewOrderSingle with this ClOrdID, padded with tag 58 to size bytes if it would be shorter.
func Order(clOrdID string, size int) []byte {
	body := fmt.Appendf(nil, "35=D\x0149=CLIENT\x0156=GRID\x0134=1\x0152=20261121-09:30:00\x0111=%s\x011=ACC\x0121=1\x0155=IBM\x0154=1\x0160=20261121-09:30:00\x0138=100\x0140=2\x0144=125.25\x0159=0\x01", clOrdID)
	if pad := size - len(body) - len("8=FIX.4.2\x019=000\x0110=000\x01") - len("58=\x01"); pad > 0 {
		body = append(append(append(body, "58="...), bytes.Repeat([]byte{'x'}, pad)...), 1)
	}
	m := append([]byte("8=FIX.4.2\x019="+strconv.Itoa(len(body))+"\x01"), body...)
	return fmt.Appendf(m, "10=%03d\x01", order.CheckSum(m))
}
