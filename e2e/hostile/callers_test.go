package hostile

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/function"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// calls connects clients, which call until stop is closed.
func (n *neighbour) calls(t *testing.T, addrs []string, stop <-chan struct{}) {
	var all sync.WaitGroup
	for range n.conns {
		c, err := client.Dial(t.Context(), client.Config{Endpoints: addrs, DialTimeout: time.Minute, RequestTimeout: time.Minute})
		if err != nil {
			t.Error(err)
			continue
		}
		all.Go(func() {
			defer c.Close() //nolint:errcheck // it is not used any more
			n.call(t, c, stop)
		})
	}
	all.Wait()
}

// invoke16 has 16 calls of the function without pause. Each has to fail, and no other way than by the function's fault.
func invoke16(t *testing.T, c *client.Client, stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-stop; cancel() }()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for ctx.Err() == nil {
				_, _, err := c.Invoke(ctx, "positions", "harm", fmt.Appendf(nil, "key-%d", i), nil)
				if failed := (*client.FunctionError)(nil); ctx.Err() == nil && (!errors.As(err, &failed) || failed.Code != 0) {
					t.Errorf("a call of a hostile function: %v, want its fault", err)
					return
				}
			}
		})
	}
	all.Wait()
}

// Whatever the functions of a grid do when two clients call them without pause, 32 calls at a time, every order of another
// client is acknowledged and stays, and its quiet session too. What it does to latency is reported beside the same at another
// grid.
func TestInvokersDenyNothing(t *testing.T) {
	exe, dir := program(t), t.TempDir()
	regions := filepath.Join(dir, "regions.yaml")
	if err := os.WriteFile(regions, []byte("memory: 16Mi\nregions: [{name: positions}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs("../../grid-node/function/testdata/hostile-compute")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"endless-loop", "memory-growth", "trap"} {
		n := neighbour{name: "2 call a function with " + name + ", 16 calls at a time", conns: 2, call: invoke16, busy: true, seen: "ordergrid_node_compute_function_calls_total"}
		t.Run(n.name, func(t *testing.T) {
			path := filepath.Join(modules, name+".wasm")
			bin, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"--", "--regions", regions, "--function-compute", fmt.Sprintf("harm=%s:sha256=%x,fuel=1000000", path, sha256.Sum256(bin))}
			n.beside(t, start(t, exe, args...), start(t, exe, args...))
		})
	}
}

// harm16 has 16 orders on their way without pause, each of which one of the functions fails on. Each has to be refused for that.
func harm16(t *testing.T, c *client.Client, stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-stop; cancel() }()
	run := fixorder.NewRun()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				order, err := function.Amend(nil, testgrid.Order(fmt.Sprintf("HARM-%x-%d-%d", run, i, n), 305), []function.Set{{Tag: 38, Value: fmt.Append(nil, 1+i%function.MaxChain)}})
				if err == nil {
					_, err = c.Submit(ctx, order)
				}
				if ctx.Err() == nil && !errors.Is(err, client.ErrFunctionRefused) {
					t.Errorf("an order that a function fails on: %v, want it refused", err)
					return
				}
			}
		})
	}
	all.Wait()
}

// Whatever functions of kind Pre do with the orders of two clients that send nothing else, 32 at a time, every order of another
// client passes the same functions, is acknowledged and stays. What it does to latency is reported beside the same at another
// grid.
func TestFailingFunctionsDenyNothing(t *testing.T) {
	files, err := filepath.Glob("../../grid-node/function/testdata/hostile/*.wasm")
	if err != nil || len(files) != function.MaxChain {
		t.Fatalf("%d modules, want %d: %v", len(files), function.MaxChain, err)
	}
	args := []string{"--"}
	for _, name := range files {
		path, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		bin, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--function-pre", fmt.Sprintf("h%s=%s:sha256=%x,fuel=1000000", strings.TrimSuffix(filepath.Base(path), ".wasm"), path, sha256.Sum256(bin)))
	}
	exe := program(t)
	n := neighbour{name: "2 send orders that functions fail on, 16 at a time", conns: 2, call: harm16, busy: true, seen: "ordergrid_node_rejects_total"}
	n.beside(t, start(t, exe, args...), start(t, exe, args...))
}
