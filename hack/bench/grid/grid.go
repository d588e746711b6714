// Package grid runs OrderGrid for a benchmark: real grid-node processes, and the
// memory arbiter of `grid-node dev` in this process. It is `grid-node dev` with
// one difference: the processes may be in network namespaces of their own. Sinks is
// what follows the grid: grid-sink for an archive, for Kafka and for PostgreSQL.
package grid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/memory"
	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/internal/proc"
)

const (
	gridName   = "bench"
	readyLimit = 2 * time.Minute
	dataPort   = 7400
	httpPort   = 9400
)

// Grid is the system under test.
type Grid struct {
	// Program is grid-node, built as a release is.
	Program string
	// Args are further flags of `grid-node serve` for every node.
	Args []string
	// Label is its name in bench.json; "" is grid.
	Label string
	// TLS makes certificates in Dir and uses them, on nodes and client.
	TLS bool
	// Insecure is without the peer key by which nodes know each other, and the records it seals.
	Insecure bool
	// Dir is where the peer key and certificates are put.
	Dir string
	// Function is called for each order; nil: none.
	Function *Function
	// Match has the nodes match the orders of the generator. Told has them tell its clients what happened to theirs.
	Match, Told bool
	// Tags are build tags of Program.
	Tags []string
	// Scrape reads the metrics of all nodes every second.
	Scrape bool
	// Journal has every node keep a journal below Dir.
	Journal bool
	// Sinks follow the grid; nil: none.
	Sinks *Sinks
	// FIX has clients come by FIX sessions of an order-gateway. Gateway is that program.
	FIX     bool
	Gateway string
}

// Name implements system.System.
func (g *Grid) Name() string { return cmp.Or(g.Label, "grid") }

// Missing implements system.System.
func (g *Grid) Missing() string {
	if g.Sinks != nil {
		return g.Sinks.Missing()
	}
	return ""
}

// Floor implements system.System.
func (g *Grid) Floor() bool { return false }

// servers are the roles of the nodes, by ordinal.
var servers = []system.Role{system.Primary, system.Backup, system.Third}

// Start implements system.System.
func (g *Grid) Start(ctx context.Context, at system.Place, t system.Topology) (*system.Running, error) {
	called, err1 := g.functionArgs()
	matched, err2 := g.matchArgs()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	with := *g
	with.Args = slices.Concat(g.Args, called, matched)
	for attempt := 1; ; attempt++ {
		var group proc.Group
		r, err := with.start(ctx, at, t, &group)
		if err == nil && g.Function != nil {
			err = g.watchFunction(ctx, at, r.HTTP, t.Partitions, &group)
		}
		if err == nil && g.Match {
			g.watchTrades(at, r, &group)
		}
		if err == nil {
			r.Stop = group.Stop
			return r, nil
		}
		err = errors.Join(err, group.Stop())
		if attempt == startAttempts || !strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
			return nil, err
		}
	}
}

// startAttempts is how often free ports are looked for: one that was free may be
// taken, by a connection on its way out too, before the node listens on it.
const startAttempts = 3

func (g *Grid) start(ctx context.Context, at system.Place, t system.Topology, group *proc.Group) (*system.Running, error) {
	if t.Copies > len(servers) {
		return nil, fmt.Errorf("copies: value %d, allowed: 1..%d", t.Copies, len(servers))
	}
	t.Shards = max(1, t.Shards)
	if _, shared := at.(system.Loopback); t.Shards > 1 && !shared {
		return nil, fmt.Errorf("shards: value %d, allowed: 1 where processes have network namespaces of their own", t.Shards)
	}
	arbiterURL, records, err := serveArbiter(at, t, group)
	if err != nil {
		return nil, err
	}
	addresses, web := make([]string, t.Copies*t.Shards), make([]string, t.Copies*t.Shards)
	for i := range addresses {
		data, err1 := system.Address(at, servers[i%t.Copies], dataPort)
		health, err2 := system.Address(at, servers[i%t.Copies], httpPort)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		addresses[i], web[i] = data, health
	}
	run := &system.Running{Driver: generator.Grid, Addresses: addresses}
	run.Move, run.On = mover(records, t)
	secure, err := g.certificates(addresses, run)
	if err != nil {
		return nil, err
	}
	known, err := g.peers()
	if err != nil {
		return nil, err
	}
	journal, err := g.journal(group)
	if err != nil {
		return nil, err
	}
	secure = slices.Concat(secure, known, journal)
	nodes := make([]*proc.Process, len(addresses))
	for i := range nodes {
		args := append(append(g.args(t, arbiterURL, i, addresses, web[i]), g.Args...), secure...)
		if nodes[i], err = proc.Start(podName(t, i), at.Command(servers[i%t.Copies], g.Program, args...)); err != nil {
			return nil, err
		}
		group.Add(func() error {
			if run.HTTP[i] == "" { // killed by Kill
				return nil
			}
			return end(nodes[i])
		})
		run.PIDs = append(run.PIDs, nodes[i].PID())
		run.HTTP = append(run.HTTP, "http://"+web[i])
	}
	run.Kill = func(i int) {
		run.HTTP[i] = ""
		nodes[i].Kill()
	}
	for i, n := range nodes {
		if err := awaitReady(ctx, at, n, run.HTTP[i]+"/readyz"); err != nil {
			return nil, err
		}
	}
	if g.Scrape {
		group.Add(scrapeAll(at, run.HTTP))
	}
	if g.Sinks != nil {
		pids, err := g.Sinks.Follow(ctx, gridName, addresses, group)
		run.PIDs = append(run.PIDs, pids...)
		return run, err
	}
	if g.FIX {
		return run, g.before(ctx, at, run, group)
	}
	return run, nil
}

// journal returns the flags for journals in an empty directory, which is removed in the end: with nothing in it, what was
// measured had none.
func (g *Grid) journal(group *proc.Group) ([]string, error) {
	if !g.Journal {
		return nil, nil
	}
	dir, err := os.MkdirTemp(g.Dir, "journal-")
	if err != nil {
		return nil, err
	}
	group.Add(func() error {
		segments, err := filepath.Glob(filepath.Join(dir, "*", "p*", "*.log"))
		if err == nil && len(segments) == 0 {
			err = fmt.Errorf("no node wrote a journal below %s", dir)
		}
		return errors.Join(err, os.RemoveAll(dir))
	})
	return []string{"--journal", dir}, nil
}

// peers are the flags by which nodes know each other.
func (g *Grid) peers() ([]string, error) {
	if g.Insecure {
		return []string{"--insecure-peers"}, nil
	}
	path := filepath.Join(g.Dir, "peer.key")
	return []string{"--peer-key-file", path}, peerkey.WriteFile(path, peerkey.New())
}

// end kills a node. Its data is no longer needed, and a graceful stop of the last copy
// would wait for a new one. A node that has already exited must have failed under load.
func end(n *proc.Process) error {
	select {
	case <-n.Ended():
		return fmt.Errorf("%s ended while it was measured: %s", n.Name, n.Said())
	default:
		n.Kill()
		return nil
	}
}

// podName is that of node i of all shards.
func podName(t system.Topology, i int) string {
	return fmt.Sprintf("%s-s%d-%d", gridName, i/t.Copies, i%t.Copies)
}

// podsOf are those of a shard.
func podsOf(t system.Topology, shard int) (names []string) {
	for i := range t.Copies {
		names = append(names, podName(t, shard*t.Copies+i))
	}
	return names
}

// mover moves partitions as the operator does, by their records.
func mover(records *memory.Store, t system.Topology) (move func(partition, shard int) error, on func(partition, shard int) bool) {
	move = func(partition, shard int) error {
		_, err := records.SetSpec(node.PartitionName(gridName, partition), func(s *arbiter.Spec) error {
			s.Shard, s.Pods = shard, podsOf(t, shard)
			s.PreferredPod = s.Pods[partition%t.Copies]
			return nil
		})
		return err
	}
	on = func(partition, shard int) bool {
		r, err := records.Get(context.Background(), node.PartitionName(gridName, partition))
		return err == nil && len(r.InSync) == t.Copies &&
			!slices.ContainsFunc(r.InSync, func(m arbiter.Member) bool { return !slices.Contains(podsOf(t, shard), m.PodName) })
	}
	return move, on
}

func (g *Grid) args(t system.Topology, arbiterURL string, i int, addresses []string, web string) []string {
	args := []string{"serve", "--grid", gridName, "--arbiter", arbiterURL, "--pod", podName(t, i), "--shard", strconv.Itoa(i / t.Copies),
		"--replicas", strconv.Itoa(t.Copies), "--partitions", strconv.Itoa(t.Partitions),
		"--listen", addresses[i], "--advertise", addresses[i], "--http", web, "--peers", strings.Join(addresses, ","),
		"--memory-limit", fmt.Sprintf("%dMi", t.MemoryMiB), "--prefault", fmt.Sprintf("%dMi", t.Prefault), "--sink", "hold", "--log-level", "warn", "--log-format", "text"}
	if t.Leased {
		args = append(args, "--leased-reads")
	}
	if g.Sinks != nil {
		args = append(args, "--external-sink", strings.Join(SinkNames, ","))
	}
	if t.Profile {
		args = append(args, "--pprof")
	}
	return args
}

// serveArbiter holds the configuration records. It is asked at changes of
// membership only, never on the path of an order.
func serveArbiter(at system.Place, t system.Topology, group *proc.Group) (url string, records *memory.Store, err error) {
	specs := map[string]arbiter.Spec{}
	for i := range t.Partitions {
		specs[node.PartitionName(gridName, i)] = arbiter.Spec{Grid: gridName, Partition: i, Replicas: t.Copies, MinInSync: cmp.Or(t.MinInSync, t.Copies),
			PreferredPod: podName(t, i%t.Copies), Pods: podsOf(t, 0)}
	}
	ln, err := at.Listen()
	if err != nil {
		return "", nil, fmt.Errorf("arbiter: %w", err)
	}
	records = memory.NewStore(specs)
	srv := &http.Server{Handler: records.Handler(), ReadHeaderTimeout: 5 * time.Second}
	go srv.Serve(ln) //nolint:errcheck // it ends with Close
	group.Add(srv.Close)
	return "http://" + ln.Addr().String(), records, nil
}

// awaitReady asks a node until it is in sync in every partition.
func awaitReady(ctx context.Context, at system.Place, p *proc.Process, url string) error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DialContext: at.Dial}}
	defer client.CloseIdleConnections()
	late := time.After(readyLimit)
	for {
		if isReady(ctx, client, url) {
			return nil
		}
		select {
		case <-p.Ended():
			return fmt.Errorf("%s ended before it was ready: %s", p.Name, p.Said())
		case <-late:
			return fmt.Errorf("%s is not ready after %v: %s", p.Name, readyLimit, p.Said())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
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
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
