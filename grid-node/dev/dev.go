// Package dev runs a whole grid on one machine without a cluster: every node a
// real process, and an arbiter in the memory of this one.
package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/memory"
	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/grid-node/placement"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/webguard"
)

// Options of Run. Zero fields take the documented default.
type Options struct {
	Grid        string // default "dev"
	Replicas    int    // nodes of a shard; default 2
	Shards      int    // default 1
	Partitions  int    // of the grid; default one for each node
	Host        string // address to listen on; default 127.0.0.1
	HostPerNode bool   // node i listens on Host + i and dials from there
	Port        int    // data port of the first node, the others follow; 0 = any free ports
	HTTPPort    int    // health port of the first node, the others follow; 0 = any free ports
	Exe         string // the grid-node program; default this one
	Args        []string
	Standby     bool   // all partitions are standbys of another grid
	Source      string // of a standby: the other grid, for clients
	TLS         bool   // make throw-away certificates and use them
	// Restore is the recovery point of every partition, by number; nil: they begin empty.
	// Args say where the nodes load them from.
	Restore []arbiter.Restore
	Log     *slog.Logger
	Stderr  io.Writer // of the nodes
}

// Info describes a grid to its user; `grid-node dev --json` prints it.
type Info struct {
	Grid      string   `json:"grid"`
	Endpoints []string `json:"endpoints"` // data ports, node by node
	Arbiter   string   `json:"arbiter"`
	PIDs      []int    `json:"pids"`
	HTTP      []string `json:"http"` // base URLs of metrics and health, node by node
	ReadyMS   int64    `json:"ready_ms"`
	TLS       *TLS     `json:"tls,omitempty"`
	FIX       string   `json:"fix,omitempty"` // where FIX sessions log on
}

// TLS are the PEM files for a client of the grid.
type TLS struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
	CA   string `json:"ca"`
}

// Fill sets defaults and checks every field; errors name the flag, the value and the
// allowed values.
func (o *Options) Fill() error {
	if o.Grid == "" {
		o.Grid = "dev"
	}
	if o.Replicas == 0 {
		o.Replicas = 2
	}
	if o.Shards == 0 {
		o.Shards = 1
	}
	if o.Partitions == 0 {
		o.Partitions = o.Replicas * o.Shards
	}
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	nodes := o.Replicas * o.Shards
	switch {
	case o.Replicas < 1 || o.Replicas > wire.MaxCopies:
		return fmt.Errorf("--replicas: value %d, allowed: 1..%d", o.Replicas, wire.MaxCopies)
	case o.Shards < 1 || o.Shards > 64:
		return fmt.Errorf("--shards: value %d, allowed: 1..64 on one machine", o.Shards)
	case o.Restore != nil && len(o.Restore) != o.Partitions:
		return fmt.Errorf("--partitions: value %d, allowed: %d, as many as the archive has; the number of a grid's partitions never changes", o.Partitions, len(o.Restore))
	case o.Partitions < o.Shards || o.Partitions > wire.MaxPartitions:
		return fmt.Errorf("--partitions: value %d, allowed: %d (one for each shard)..%d", o.Partitions, o.Shards, wire.MaxPartitions)
	case o.Source != "" && !o.Standby || len(o.Source) > 120:
		return fmt.Errorf("--source: value %.40q, allowed: up to 120 bytes, with --standby", o.Source)
	case net.ParseIP(o.Host) == nil:
		return fmt.Errorf("--listen: value %q, allowed: an IP address of this machine", o.Host)
	case o.HostPerNode && !loopbackRoom(o.Host):
		return fmt.Errorf("--address-per-node: --listen is %q, allowed: 127.x.y.1 with x or y other than 0, the nodes take the addresses from there on", o.Host)
	case o.Port < 0 || o.Port > 65535-nodes:
		return fmt.Errorf("--port: value %d, allowed: 0 (any) or 1..%d", o.Port, 65535-nodes)
	case o.HTTPPort < 0 || o.HTTPPort > 65535-nodes:
		return fmt.Errorf("--http-port: value %d, allowed: 0 (any) or 1..%d", o.HTTPPort, 65535-nodes)
	}
	if o.Exe == "" {
		exe, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		o.Exe = exe
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	return nil
}

// Run starts the grid, calls ready once every node is in sync in every
// partition, and serves until ctx ends; then it stops the nodes in order. A node
// that dies later is started again, as a new member.
func Run(ctx context.Context, o Options, ready func(Info)) error {
	if err := o.Fill(); err != nil {
		return err
	}
	start := time.Now()
	g := &grid{o: o, s: newSupervisor(o)}
	defer g.ports.Release()
	url, stopArbiter, err := g.serveArbiter()
	if err != nil {
		return err
	}
	defer stopArbiter()
	defer g.s.stop() // before the arbiter: a node that takes over at that moment ends when it has the answer
	dir, err := os.MkdirTemp("", "ordergrid-dev-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	g.peerKey = filepath.Join(dir, "peer.key")
	if err := peerkey.WriteFile(g.peerKey, peerkey.New()); err != nil {
		return err
	}
	if o.TLS {
		if err := g.makeCertificates(dir); err != nil {
			return fmt.Errorf("--tls: %w", err)
		}
	}
	if err := g.start(url); err != nil {
		return err
	}
	info := g.info(url)
	if err := awaitReady(ctx, g.s, info.HTTP); err != nil {
		if ctx.Err() != nil {
			return nil // interrupted while starting
		}
		return err
	}
	g.s.keep()
	info.ReadyMS = time.Since(start).Milliseconds()
	ready(info)
	<-ctx.Done()
	return nil
}

// serveArbiter puts an unclaimed record for every partition behind HTTP on
// loopback.
func (g *grid) serveArbiter() (url string, stop func(), err error) {
	o := g.o
	specs := map[string]arbiter.Spec{}
	for n := range o.Partitions {
		shard := placement.Home(n, o.Shards)
		spec := arbiter.Spec{Grid: o.Grid, Partition: n, Shard: shard,
			Replicas: o.Replicas, MinInSync: 1, PreferredPod: podName(o.Grid, shard, n/o.Shards%o.Replicas), Standby: o.Standby, Source: o.Source}
		if o.Restore != nil {
			spec.Restore = &o.Restore[n]
		}
		specs[node.PartitionName(o.Grid, n)] = spec
	}
	ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("arbiter: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", memory.NewStore(specs).Handler())
	g.controls(mux)
	// Requests that a fault cuts off would be logged as panics otherwise.
	srv := &http.Server{Handler: webguard.Local(mux), ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug)}
	go func() {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			o.Log.Error("the arbiter ended", "reason", err)
		}
	}()
	return "http://" + ln.Addr().String(), func() { _ = srv.Close() }, nil
}

func podName(grid string, shard, ordinal int) string {
	return fmt.Sprintf("%s-s%d-%d", grid, shard, ordinal)
}

// awaitReady polls every node's /readyz. A node that ends before is an error.
func awaitReady(ctx context.Context, s *supervisor, urls []string) error {
	client := &http.Client{Timeout: time.Second}
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for _, url := range urls {
		for !isReady(ctx, client, url+"/readyz") {
			select {
			case err := <-s.failed:
				return err
			case <-ctx.Done():
				return ctx.Err()
			case <-poll.C:
			}
		}
	}
	return nil
}

func isReady(ctx context.Context, c *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := c.Do(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
