// Package devgrid starts `grid-node dev` for tests: the real node, as the real
// processes, built from this checkout.
package devgrid

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Grid is a running `grid-node dev`.
type Grid struct {
	Endpoints []string `json:"endpoints"`
	PIDs      []int    `json:"pids"`
	cmd       *exec.Cmd
	stderr    *syncBuffer
}

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

// Start builds grid-node and starts a grid with more arguments for `grid-node dev`.
func Start(args ...string) (*Grid, error) {
	exe, err := build()
	if err != nil {
		return nil, err
	}
	g := &Grid{stderr: &syncBuffer{}}
	g.cmd = exec.Command(exe, append([]string{"dev", "--json", "--port", "0", "--http-port", "0"}, args...)...)
	g.cmd.Stderr = g.stderr
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, g)
	}
	if err != nil {
		g.Stop()
		return nil, fmt.Errorf("grid-node dev said %q: %w\n%s", line, err, g.Log())
	}
	return g, nil
}

// Stop ends all processes of the grid.
func (g *Grid) Stop() {
	g.cmd.Process.Signal(os.Interrupt) //nolint:errcheck // it may be gone
	dead := time.AfterFunc(30*time.Second, func() { g.cmd.Process.Kill() })
	g.cmd.Wait() //nolint:errcheck // its exit code is not what is tested
	dead.Stop()
}

// Log is what the nodes wrote to standard error.
func (g *Grid) Log() string { return g.stderr.String() }

// Run is Start and Stop for a test.
func Run(t testing.TB, args ...string) *Grid {
	t.Helper()
	g, err := Start(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Stop()
		if t.Failed() {
			t.Logf("grid-node dev:\n%s", g.Log())
		}
	})
	return g
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
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

// PIDOf is the process that listens on address now; a node that was killed is
// started again under a new id.
func (g *Grid) PIDOf(address string) (int, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	for _, pid := range g.children() {
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && bytes.Contains(cmdline, []byte(":"+port+"\x00")) {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("no process of the grid listens on %s", address)
}

// children of any thread of the grid's first process.
func (g *Grid) children() (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", g.cmd.Process.Pid))
	for _, list := range lists {
		b, _ := os.ReadFile(list) // a thread may have ended
		for _, f := range bytes.Fields(b) {
			if pid, err := strconv.Atoi(string(f)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
