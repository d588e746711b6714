package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/dev"
)

// ask sends a request to the controls of a dev grid.
func (g *devGrid) ask(method, path, body string, into any) int {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.info.Arbiter+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	if into != nil {
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			g.t.Fatal(err)
		}
	}
	return resp.StatusCode
}

// The pids of a grid are known after a restart too.
func TestNodesAreListedWithTheirPresentPids(t *testing.T) {
	g := startDev(t)
	var nodes []dev.Node
	g.ask("GET", "/v1/nodes", "", &nodes)
	if len(nodes) != 2 || nodes[0].Pod != "dev-s0-0" || nodes[0].PID != g.info.PIDs[0] || nodes[1].Address != g.info.Endpoints[1] || nodes[1].HTTP != g.info.HTTP[1] {
		t.Fatalf("nodes %+v, info %+v", nodes, g.info)
	}
	old := nodes[0].PID
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "the killed node has another pid", func() bool {
		g.ask("GET", "/v1/nodes", "", &nodes)
		return nodes[0].PID != 0 && nodes[0].PID != old && nodes[0].Starts == 2
	})
}

// A pod's second process takes its place in the partition; the first, stopped meanwhile, is not restarted and does not
// outlive the grid.
func TestReplace(t *testing.T) {
	g := startDev(t, "--listen", "127.0.11.1", "--address-per-node")
	if !strings.HasPrefix(g.info.Endpoints[1], "127.0.11.2:") || !strings.HasPrefix(g.info.HTTP[1], "http://127.0.11.2:") {
		t.Fatalf("addresses %v %v", g.info.Endpoints, g.info.HTTP)
	}
	old := g.info.PIDs[0]
	if err := syscall.Kill(old, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var n dev.Node
	if code := g.ask("POST", "/v1/nodes/dev-s0-0/replace", "", &n); code != http.StatusOK || n.PID == old || !strings.HasPrefix(n.Address, "127.0.11.3:") {
		t.Fatalf("status %d, %+v", code, n)
	}
	until(t, "the new process is in sync", func() bool {
		resp, err := http.Get(n.HTTP + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	var nodes []dev.Node
	g.ask("GET", "/v1/nodes", "", &nodes)
	if len(nodes) != 3 || !nodes[0].Replaced || nodes[0].PID != old || nodes[2].Replaced || nodes[2].Pod != "dev-s0-0" {
		t.Fatalf("nodes %+v", nodes)
	}
	if code := g.ask("POST", "/v1/nodes/unknown/replace", "", nil); code != http.StatusBadRequest {
		t.Fatalf("unknown pod: status %d", code)
	}
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	if err := g.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{old, n.PID, g.info.PIDs[1]} {
		if alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
}

func TestFlagsBehindTheDashesReachTheNodes(t *testing.T) {
	g := startDev(t, "--", "--min-in-sync", "2")
	for _, pid := range g.info.PIDs {
		if b := cmdline(t, pid); !strings.HasSuffix(b, "--min-in-sync\x002\x00") {
			t.Errorf("node %d runs with %q", pid, b)
		}
	}
}

func cmdline(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
