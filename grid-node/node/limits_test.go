package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// limitsOf is a profile of a generation, as the operator writes it.
func limitsOf(generation int) string {
	return fmt.Sprintf(`{"name":"desk-a","maxOrderVolume":"%d","source":{"grid":"g","object":"u","sinceMs":1795435380000,"generation":%d}}`, 10*generation, generation)
}

// TestTakeOverWithALateFile: the node that takes over has a file of limits that was not renewed yet. Those of the log stay in
// force, its page tells why, and its next file changes them.
func TestTakeOverWithALateFile(t *testing.T) {
	g := newGrid(t, 2, 1)
	dir := t.TempDir()
	file := func(i int) string { return filepath.Join(dir, fmt.Sprintf("limits-%d.json", i)) }
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil { // at once, as the kubelet does
			t.Fatal(err)
		}
	}
	for i := range 2 {
		write(file(i), `{"name":"for nodes of releases before"}`)
		write(file(i)+limits.SourcedFile, limitsOf(1))
		g.base.LimitsFile = file(i)
		g.start(i)
	}
	g.ready()
	c := g.client()
	inForce := func() string {
		all, err := c.Limits(t.Context())
		if err != nil {
			return err.Error()
		}
		return all[0].Profile
	}
	g.until(func() bool { return inForce() == limitsOf(1) }, "in force is %s", func() any { return inForce() })
	write(file(0)+limits.SourcedFile, limitsOf(2))
	g.until(func() bool { return inForce() == limitsOf(2) }, "in force is %s", func() any { return inForce() })

	g.kill(0)
	// An entry of the new primary: what its file has would have come before it.
	g.until(func() bool {
		_, err := c.Kill(t.Context(), client.Kill{Scope: order.GuardTrader, Name: "ann", Why: "test"})
		return err == nil
	}, "no primary takes a kill")
	if got := inForce(); got != limitsOf(2) {
		t.Errorf("after the take-over %s is in force, want %s", got, limitsOf(2))
	}
	row := func() (row nodestatus.PartitionLimits) {
		_ = g.nodes[1].onLoop(func() { row = g.nodes[1].data.parts.limitsInForce().Partitions[0] })
		return row
	}
	if got := row(); !strings.Contains(got.Waits, "the file has generation 1 of u") || got.Refused != "" {
		t.Errorf("the page has %+v", got)
	}
	write(file(1)+limits.SourcedFile, limitsOf(3))
	g.until(func() bool { return inForce() == limitsOf(3) }, "in force is %s", func() any { return inForce() })
	if got := row(); got.Waits != "" {
		t.Errorf("the page has %+v", got)
	}
}

// TestReadProfile: the file with a source is read in place of the other one, and one that is wrong is not passed over.
func TestReadProfile(t *testing.T) {
	c := Config{LimitsFile: filepath.Join(t.TempDir(), "limits.json")}
	if _, err := c.readProfile(); err == nil {
		t.Error("no file is read")
	}
	if err := os.WriteFile(c.LimitsFile, []byte(`{"maxOrderVolume":"10"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := c.readProfile(); err != nil || string(text) != `{"maxOrderVolume":"10"}` {
		t.Errorf("%s, %v", text, err)
	}
	if err := os.WriteFile(c.LimitsFile+limits.SourcedFile, []byte(limitsOf(2)), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := c.readProfile(); err != nil || string(text) != limitsOf(2) {
		t.Errorf("%s, %v", text, err)
	}
	if err := os.WriteFile(c.LimitsFile+limits.SourcedFile, []byte(`{"source":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := c.readProfile(); err == nil {
		t.Errorf("a source that is none: %s", text)
	}
}
