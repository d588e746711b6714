package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/memory"
	"github.com/ordergrid/ordergrid/grid-node/dev"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/devgrid"
)

// DevOptions of a grid of processes on this machine.
type DevOptions struct {
	Program   string // grid-node; required
	Replicas  int
	MemoryMiB int64
	Dir       string   // for the file sinks; required
	Logs      string   // directory for what the nodes write; "" keeps nothing
	Args      []string // more flags of grid-node serve, for every node
}

// Dev is a grid of `grid-node dev`: each node a process with an address of its
// own, the arbiter in memory.
type Dev struct {
	o    DevOptions
	grid *devgrid.Grid
	log  *os.File // nil: nothing is kept
	net  *filter
	http *http.Client
	freezer
}

var _ Target = (*Dev)(nil)

// StartDev starts the grid; it is redundant when it returns.
func StartDev(ctx context.Context, o DevOptions) (*Dev, error) {
	pid := os.Getpid()
	host := fmt.Sprintf("127.%d.%d.1", 64+pid%64, 1+pid/64%250)
	args := []string{"--address-per-node", "--listen", host, "--sink", "file", "--dir", o.Dir}
	start := devgrid.Options{Program: o.Program, Shards: 1, Replicas: o.Replicas, MemoryMiB: o.MemoryMiB}
	d := &Dev{o: o, net: newFilter(), http: &http.Client{Timeout: 5 * time.Second}}
	if o.Logs != "" {
		if err := os.MkdirAll(o.Logs, 0o755); err != nil {
			return nil, err
		}
		var err error
		if d.log, err = os.Create(filepath.Join(o.Logs, "nodes.log")); err != nil {
			return nil, err
		}
		start.Log, args = d.log, append(args, "--log-level", "info")
	}
	start.Args = append(append(args, "--"), o.Args...)
	var err error
	if d.grid, err = devgrid.Start(ctx, start); err != nil {
		return nil, errors.Join(err, d.closeLog())
	}
	return d, nil
}

func (d *Dev) closeLog() error {
	if d.log == nil {
		return nil
	}
	return d.log.Close()
}

// Name implements Target.
func (d *Dev) Name() string { return "dev" }

// Grid implements Target.
func (d *Dev) Grid() string { return "dev" }

// Replicas implements Target.
func (d *Dev) Replicas() int { return d.o.Replicas }

// Endpoints implements Target.
func (d *Dev) Endpoints() []string { return d.grid.Endpoints }

// ask talks to the arbiter's address.
func (d *Dev) ask(ctx context.Context, method, path string, body, into any) error {
	var b []byte
	if body != nil {
		var err error
		if b, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, d.grid.Arbiter+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := d.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: status %s: %s", method, path, resp.Status, bytes.TrimSpace(text))
	}
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// Nodes implements Target.
func (d *Dev) Nodes(ctx context.Context) ([]Node, error) {
	var list []dev.Node
	if err := d.ask(ctx, http.MethodGet, "/v1/nodes", nil, &list); err != nil {
		return nil, err
	}
	var out []Node
	for _, n := range list {
		if n.Replaced && n.PID == 0 {
			continue
		}
		out = append(out, Node{Pod: n.Pod, Address: n.Address, HTTP: n.HTTP, PID: n.PID, Former: n.Replaced})
	}
	return out, nil
}

// Partitions implements Target.
func (d *Dev) Partitions(ctx context.Context) ([]Partition, error) {
	var list []arbiter.Record
	if err := d.ask(ctx, http.MethodGet, "/v1/partitions", nil, &list); err != nil {
		return nil, err
	}
	var out []Partition
	for _, r := range list {
		id, err := wire.MakePartitionID(r.Spec.Partition)
		if err != nil {
			return nil, err
		}
		p := Partition{ID: id, Name: r.Name, Epoch: r.Epoch, Primary: r.Primary.PodName, Preferred: r.Spec.PreferredPod}
		for _, m := range r.InSync {
			p.InSync = append(p.InSync, m.PodName)
		}
		out = append(out, p)
	}
	return out, nil
}

// SinkFiles implements Target.
func (d *Dev) SinkFiles(context.Context) (map[string]string, error) {
	paths, err := filepath.Glob(filepath.Join(d.o.Dir, "*", "*.log*"))
	out := map[string]string{}
	for _, p := range paths {
		rel, _ := filepath.Rel(d.o.Dir, p) // both begin alike
		out[rel] = p
	}
	return out, err
}

func signal(n Node, sig syscall.Signal) error {
	if n.PID <= 0 {
		return fmt.Errorf("%s has no process now", n.Pod)
	}
	if err := syscall.Kill(n.PID, sig); err != nil {
		return fmt.Errorf("send %s to %s (process %d): %w", sig, n.Pod, n.PID, err)
	}
	return nil
}

// Kill implements Target.
func (d *Dev) Kill(_ context.Context, n Node) error { return signal(n, syscall.SIGKILL) }

// Stop implements Target.
func (d *Dev) Stop(_ context.Context, n Node) error { return signal(n, syscall.SIGTERM) }

// Drain implements Target.
func (d *Dev) Drain(context.Context, Node) error {
	return fmt.Errorf("drain: %w: there is no machine to empty; planned-stop sends SIGTERM", ErrUnsupported)
}

// Undrain implements Target.
func (d *Dev) Undrain(context.Context, Node) error { return nil }

// Roll implements Target.
func (d *Dev) Roll(context.Context) error {
	return fmt.Errorf("rolling-update: %w: there is no operator; planned-stop sends SIGTERM", ErrUnsupported)
}

// Rolled implements Target.
func (d *Dev) Rolled(context.Context) (bool, string) { return true, "" }

func ipOf(n Node) string {
	host, _, _ := net.SplitHostPort(n.Address) // our own devgrid made it
	return host
}

// Cut implements Target.
func (d *Dev) Cut(ctx context.Context, n Node) error {
	if err := d.net.available(ctx); err != nil {
		return err
	}
	return d.net.set(ctx, ipOf(n), true)
}

// Join implements Target.
func (d *Dev) Join(ctx context.Context, n Node) error { return d.net.set(ctx, ipOf(n), false) }

// Away implements Target.
func (d *Dev) Away(ctx context.Context) error {
	return d.ask(ctx, http.MethodPost, "/v1/faults", memory.Fault{Mode: memory.FaultAway}, nil)
}

// Back implements Target.
func (d *Dev) Back(ctx context.Context) error {
	return d.ask(ctx, http.MethodPost, "/v1/faults", memory.Fault{Mode: memory.FaultNone}, nil)
}

// Prefer implements Target.
func (d *Dev) Prefer(ctx context.Context, p Partition, pod string) error {
	return d.ask(ctx, http.MethodPut, "/v1/partitions/"+p.Name+"/spec", map[string]string{"preferredPod": pod}, nil)
}

// Quiet implements Target.
func (d *Dev) Quiet(ctx context.Context) error {
	parts, err := d.Partitions(ctx)
	for _, p := range parts {
		err = errors.Join(err, d.Prefer(ctx, p, ""))
	}
	return err
}

// Replace implements Target.
func (d *Dev) Replace(ctx context.Context, n Node) error {
	return d.ask(ctx, http.MethodPost, "/v1/nodes/"+n.Pod+"/replace", nil, nil)
}

// Forget implements Target.
func (d *Dev) Forget(ctx context.Context) error {
	nodes, err := d.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n.Former && n.PID != 0 {
			err = errors.Join(err, signal(n, syscall.SIGKILL))
		}
	}
	return err
}

// Heal implements Target.
func (d *Dev) Heal(ctx context.Context) error {
	err := d.net.heal(ctx)
	d.thawAll()
	return errors.Join(err, d.Back(ctx))
}

// Close implements Target.
func (d *Dev) Close(ctx context.Context) error {
	return errors.Join(d.net.heal(ctx), d.grid.Stop(), d.closeLog())
}

// CPU implements Target.
func (d *Dev) CPU(ctx context.Context) []int {
	nodes, _ := d.Nodes(ctx) // best effort
	var pids []int
	for _, n := range nodes {
		pids = append(pids, n.PID)
	}
	slices.Sort(pids)
	return pids
}
