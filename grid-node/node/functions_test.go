package node

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/function"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

func pre(name string, module []byte, config string, tags ...uint32) PreFunction {
	return PreFunction{Name: name, Module: module, SHA256: sha256.Sum256(module), Config: []byte(config), Tags: tags}
}

// sized is an order of this quantity.
func sized(t *testing.T, id, quantity string) []byte {
	t.Helper()
	b, err := function.Amend(nil, fix(id), []function.Set{{Tag: 38, Value: []byte(quantity)}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// payload is the message of the entry, the same on all nodes that run.
func (g *grid) payload(r client.Receipt) (text string) {
	g.t.Helper()
	for i, n := range g.nodes {
		if n == nil {
			continue
		}
		g.until(func() bool { return g.stored(i, r) != "" }, "node %d has no entry %d", i, r.Seq)
		switch got := g.stored(i, r); {
		case text == "":
			text = got
		case text != got:
			g.t.Fatalf("entry %d is %q on one node and %q on another", r.Seq, text, got)
		}
	}
	return text
}

func (g *grid) stored(i int, r client.Receipt) (text string) {
	g.onLoop(i, func() {
		if e := g.nodes[i].data.parts.at(r.Partition).store.Get(r.Seq); e != nil {
			text = string(order.Payload(e))
		}
	})
	return text
}

func (g *grid) functions(i int) (s *nodestatus.Functions) {
	g.onLoop(i, func() { s = g.nodes[i].data.status().Functions })
	return s
}

// TestFunctionsDecide: what they decide is the entry, on both nodes, through a kill of the
// primary; what they refuse is nowhere.
func TestFunctionsDecide(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Functions = &Functions{Stamp: 10002, Pre: []PreFunction{
		pre("fat-finger", examples.FatFinger, "quantity=1000"), pre("enrich-client", examples.EnrichClient, "ACCT=DESK-7", 10001),
	}}
	g.up()
	c := g.client()
	chain := g.functions(0).Chain
	want := "\x0110001=DESK-7\x0110002=" + chain[:16] + "\x0110="
	refusal := func(id, quantity string) {
		t.Helper()
		_, err := c.Submit(t.Context(), sized(t, id, quantity))
		reject, ok := errors.AsType[*client.RejectError](err)
		if !errors.Is(err, client.ErrFunctionRefused) || !ok || reject.Detail != 3 || !strings.Contains(reject.Text, "quantity above the limit") {
			t.Fatalf("order %s of %s: %v, want a refusal by fat-finger", id, quantity, err)
		}
		if o, err := c.GetByClOrdID(t.Context(), id); !errors.Is(err, client.ErrNotFound) {
			t.Fatalf("refused order %s: %v, %v, want none", id, o.ID, err)
		}
	}
	for _, killed := range []int{-1, 0} {
		if killed >= 0 {
			g.kill(killed)
		}
		for n := range 20 {
			r, err := c.Submit(t.Context(), sized(t, fmt.Sprintf("ok%d-%d", killed, n), "1000"))
			if err != nil {
				t.Fatal(err)
			}
			if got := g.payload(r); !strings.Contains(got, want) {
				t.Fatalf("entry %d is %q, want %q in it", r.Seq, got, want)
			}
			refusal(fmt.Sprintf("large%d-%d", killed, n), "1001")
		}
	}
	if s := g.functions(1); s.Chain != chain || s.Pre[0].Refused != 20 || s.Pre[0].Accepted != 20 || s.Pre[1].Changed != 20 || s.Pre[1].Failed != 0 {
		t.Errorf("the node that took over counts %+v", s)
	}
}

// linesWith are how many lines of a log have all of these.
func linesWith(l *logged, all ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range strings.Split(l.b.String(), "\n") {
		if !slices.ContainsFunc(all, func(s string) bool { return !strings.Contains(line, s) }) {
			n++
		}
	}
	return n
}

// TestHostileFunctionsAreCutOff: each harms the orders it was written for and no other.
func TestHostileFunctionsAreCutOff(t *testing.T) {
	files, err := filepath.Glob("../function/testdata/hostile/*.wasm")
	if err != nil || len(files) != function.MaxChain {
		t.Fatalf("%d modules, want %d; %v", len(files), function.MaxChain, err)
	}
	g := newGrid(t, 2, 1)
	g.base.Functions = &Functions{}
	for _, path := range files {
		bin, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := pre(strings.TrimSuffix(filepath.Base(path), ".wasm"), bin, "")
		if len(g.base.Functions.Pre)%2 == 1 {
			f.OnError = function.Pass
		}
		g.base.Functions.Pre = append(g.base.Functions.Pre, f)
	}
	var log logged
	g.base.Log = slog.New(slog.NewTextHandler(&log, nil))
	g.up()
	const rounds = 15
	var wg sync.WaitGroup
	for k, f := range g.base.Functions.Pre { // each by its own client
		c := g.client()
		wg.Go(func() {
			for n := range rounds {
				_, err := c.Submit(t.Context(), sized(t, fmt.Sprintf("%s-%d", f.Name, n), fmt.Sprint(k+1)))
				if f.OnError == function.Pass && err != nil || f.OnError == function.Reject && !errors.Is(err, client.ErrFunctionRefused) {
					t.Errorf("%s: %v, with onError %s", f.Name, err, f.OnError)
				}
			}
		})
	}
	good := g.client()
	wg.Go(func() { submit(t, good, "beside", 10*rounds) })
	wg.Wait()
	for _, f := range g.functions(0).Pre {
		if f.Failed != rounds {
			t.Errorf("%s failed %d times, want %d", f.Name, f.Failed, rounds)
		}
	}
	for _, f := range g.base.Functions.Pre {
		n, id := linesWith(&log, "a function failed", "function="+f.Name+" "), linesWith(&log, "a function failed", "clOrdID="+f.Name+"-")
		if n == 0 || n != id || n > rounds {
			t.Errorf("%d lines are about %s, %d with the id of an order", n, f.Name, id)
		}
	}
	g.onLoop(1, func() { // which had no orders: one line for all that fail in a wake-up
		for range 5 {
			g.nodes[1].data.parts.functions.failed(0, function.OutOfFuel, []byte("again"))
		}
	})
	if n := linesWith(&log, "a function failed", "clOrdID=again"); n != 1 {
		t.Errorf("%d lines about 5 orders at once, want 1", n)
	}
	for i := range g.nodes {
		if n := g.nodes[i].alarmCounts()["TakeOver"]; n != 0 {
			t.Errorf("node %d took over %d times", i, n)
		}
	}
}

// TestFunctionsThatAreRefused: the node does not start.
func TestFunctionsThatAreRefused(t *testing.T) {
	finger := examples.FatFinger
	other := pre("f", finger, "")
	other.SHA256[0] ^= 1
	large := pre("f", finger, "")
	large.Pages = maxPrePages + 1
	costly := pre("f", finger, "")
	costly.Fuel = maxPreFuel + 1
	many := make([]PreFunction, function.MaxChain+1)
	for i := range many {
		many[i] = pre(fmt.Sprint("f", i), finger, "")
	}
	names := append(append([]byte{}, finger...), 0, 0x80, 0x80, 0x80, 0x32) // a name table of 100 MiB is announced
	for _, c := range []struct {
		name string
		list []PreFunction
		want string
	}{
		{"another module", []PreFunction{other}, "f: the module has sha256"},
		{"too much memory", []PreFunction{large}, "f: memory of 65 pages"},
		{"too much fuel", []PreFunction{costly}, "f: fuel 1000001"},
		{"too many", many, "9 functions, allowed: 1..8"},
		{"one name twice", []PreFunction{pre("f", finger, ""), pre("f", finger, "")}, `name "f"`},
		{"a name that is none", []PreFunction{pre("a b", finger, "")}, `name "a b"`},
		{"the tag of the ClOrdID", []PreFunction{pre("f", finger, "", 11)}, "tag 11 cannot be granted"},
		{"another kind", []PreFunction{pre("f", examples.AuditTrail, "")}, `no export "og1_pre"`},
		{"a bad configuration", []PreFunction{pre("f", finger, "quantity=x")}, "og1_configure refused"},
		{"no module", []PreFunction{pre("f", []byte("#!/bin/sh"), "")}, "not a WebAssembly module"},
		{"a huge name table", []PreFunction{pre("f", names, "")}, "module refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGrid(t, 1, 1)
			cfg := g.base
			cfg.Pod, cfg.Listen, cfg.Advertise, cfg.Arbiter = "g-s0-0", g.addrs[0], g.addrs[0], g.arb
			cfg.Functions = &Functions{Pre: c.list}
			if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
