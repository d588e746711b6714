package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
)

// TestMapOfARealGrid: what function map prints and returns, against processes.
func TestMapOfARealGrid(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	g := testgrid.Run(t, "--", "--regions", file("regions.yaml", []byte("memory: 16Mi\nregions: [{name: numbers}]\n")),
		"--function-compute", fmt.Sprintf("primes=%s:sha256=%x", file("primes.wasm", examples.Primes), sha256.Sum256(examples.Primes)),
		"--function-compute", fmt.Sprintf("notional=%s:sha256=%x", file("notional.wasm", examples.Notional), sha256.Sum256(examples.Notional)))
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	for v := range uint32(100) {
		if _, err := c.Region("numbers").Put(t.Context(), fmt.Appendf(nil, "n%d", v), binary.LittleEndian.AppendUint32(nil, v)); err != nil {
			t.Fatal(err)
		}
	}
	partitions := len(c.Table())
	const upTo10000 = "--args-hex=1027000001000000"
	call := func(code int, args ...string) string {
		t.Helper()
		out, err := run(append(append([]string{"function", "map", "dev"}, args...), "--endpoint="+strings.Join(g.Endpoints, ","))...)
		var exit exitError
		if code == 0 && err != nil || code != 0 && (!errors.As(err, &exit) || int(exit) != code) {
			t.Fatalf("%v: %v, want exit code %d\n%s", args, err, code, out)
		}
		return out
	}
	// sum adds up the primes and the entries of all parts.
	sum := func(out string, parts int) (primes, rows uint64) {
		t.Helper()
		var list []mapPartJSON
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != parts {
			t.Fatalf("%d parts (%v), want %d\n%s", len(list), err, parts, out)
		}
		for _, p := range list {
			reply := p.ReplyBase64
			if p.Reply != nil {
				reply = []byte(*p.Reply)
			}
			if len(reply) != 16 || p.Address == "" || p.Fuel == 0 || p.Seconds <= 0 || (p.Entry == "") != (p.Rows == 0) {
				t.Fatalf("part %+v", p)
			}
			primes, rows = primes+binary.LittleEndian.Uint64(reply), rows+p.Rows
		}
		return primes, rows
	}
	if primes, rows := sum(call(0, "primes", upTo10000, "--slices=5", "-o=json"), 5); primes != 1229 || rows != 0 {
		t.Errorf("without a region: %d primes in %d entries, want 1229 in 0", primes, rows)
	}
	if primes, rows := sum(call(0, "primes", upTo10000, "--region=numbers", "-o=json"), partitions); primes != 25 || rows != 100 {
		t.Errorf("in the region: %d primes in %d entries, want 25 in 100", primes, rows)
	}
	lines := strings.Split(strings.TrimSpace(call(0, "primes", upTo10000, "--region=numbers", "--slices=2", "--at-once=1")), "\n")
	if len(lines) != 1+2*partitions || !strings.HasPrefix(lines[0], "PARTITION  SLICE  ENTRIES") || !strings.HasPrefix(lines[2], "p0         1") || !strings.Contains(lines[1], "  p0/") {
		t.Errorf("as a table:\n%s", strings.Join(lines, "\n"))
	}
	one := strings.Split(strings.TrimSpace(call(0, "primes", upTo10000, "--region=numbers", "--partition=1")), "\n")
	if len(one) != 2 || !strings.HasPrefix(one[1], "p1 ") {
		t.Errorf("of one partition:\n%s", strings.Join(one, "\n"))
	}
	ordersOf(t, call(0, "notional", "--orders", "--slices=2", "-o=json"), 2*partitions)
	if out := call(exitFailedCall, "primes", "--args=x"); !strings.Contains(out, "0 of 1 parts were there: function primes returned error 1: arguments are n and rounds") {
		t.Errorf("an error of the function: %q", out)
	}
	if out := call(exitFailedCall, "primes", "--args-hex=00000001e8030000", "--slice-timeout=200ms"); !strings.Contains(out, "0 of 1 parts were there") {
		t.Errorf("a part without an end: %q", out)
	}
	if _, err := run("function", "map", "dev", "none", "--endpoint="+strings.Join(g.Endpoints, ",")); !errors.Is(err, client.ErrFunctionUnknown) {
		t.Errorf("a function that is not there: %v", err)
	}
	for _, wrong := range [][]string{{}, {"primes", "--slices=0"}, {"primes", "--slices=1025"}, {"primes", "--at-once=61"}, {"primes", "--partition=0"}, {"primes", "--orders", "--region=numbers"}, {"primes", "--slice-timeout=2m"}, {"primes", "-o=text"}, {"primes", "--args=" + strings.Repeat("x", 4097)}, {"primes", "--args=a", "--args-hex=61"}} {
		if _, err := run(append([]string{"function", "map", "dev"}, wrong...)...); !errors.As(err, new(usageError)) {
			t.Errorf("%v: %v, want wrong usage", wrong, err)
		}
	}
}

// ordersOf has parts of a grid without orders: entries that a log has in any case, and no row.
func ordersOf(t *testing.T, out string, parts int) {
	t.Helper()
	var list []mapPartJSON
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != parts {
		t.Fatalf("%d parts (%v), want %d\n%s", len(list), err, parts, out)
	}
	for _, p := range list {
		if p.Rows != 0 || p.From != 1 || len(p.Hash) != 16 || !strings.HasPrefix(p.Entry, p.Partition+"/") || p.Reply == nil || *p.Reply != "" {
			t.Errorf("part %+v", p)
		}
	}
}

// TestMapProgress: a line every ten seconds where there is no terminal, one that changes where there is.
func TestMapProgress(t *testing.T) {
	var out bytes.Buffer
	p := newMapProgress(&out, 4)
	p.part(client.MapPart{Rows: 10})
	if out.Len() != 0 {
		t.Errorf("at once: %q", out.String())
	}
	p.said = p.said.Add(-sayEach)
	p.part(client.MapPart{Rows: 1990})
	if text := out.String(); !strings.HasPrefix(text, " 50 %  2 of 4 parts, 2,000 entries, ") || strings.Count(text, "\n") != 1 {
		t.Errorf("ten seconds later: %q", text)
	}
	out.Reset()
	p.line.terminal = true
	p.part(client.MapPart{})
	p.part(client.MapPart{})
	p.line.end()
	if text := out.String(); strings.Count(text, "\r") != 2 || !strings.Contains(text, "100 %  4 of 4 parts") || !strings.HasSuffix(text, "\n") || p.begun.After(time.Now()) {
		t.Errorf("on a terminal: %q", text)
	}
}

func TestReplyText(t *testing.T) {
	for reply, want := range map[string]string{"": "-", "42": `"42"`, "a\x00": "6100", strings.Repeat("x", 65): `"` + strings.Repeat("x", 64) + `"...`, "\xff": "ff"} {
		if got := replyText([]byte(reply)); got != want {
			t.Errorf("%q: %s, want %s", reply, got, want)
		}
	}
}
