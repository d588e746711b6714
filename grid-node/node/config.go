package node

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Config of a node. The zero value of a field with a default takes it.
type Config struct {
	Grid  string // name of the grid
	Pod   string // name of the pod this process runs in; unique within the shard
	Shard int    // number of this pod's shard, 0..255
	// Partitions is how many the grid has, 1..1024: what clients route by. It never changes.
	Partitions int
	Replicas   int // copies of each partition, the primary's included, until its record was read: 1..3; default 2
	MinInSync  int // fewer in-sync copies refuse orders: 1..Replicas; default 1

	Listen    string // data port: "host:port" or ":port"
	Advertise string // "ip:port" at which peers and clients reach the data port
	// External is a second data port, for clients outside the cluster: they get the
	// addresses that the partitions' records have for them in place of those on the pod
	// network. "host:port" or ":port"; empty = none.
	External string
	HTTP     string // metrics and health: "host:port"; empty = none
	Fabric   string // network that the address of Advertise is on: namespace/name; empty = the pod network
	// FabricOnly keeps traffic between nodes on the fabric: this node dials from its own
	// address there, and accepts only nodes that connect from theirs.
	FabricOnly bool
	Peers      []string // "host:port" of the shard's nodes, dialled ahead of need; may contain this node

	// LeasedReads lets a primary answer leased reads at once. Its price: after a primary's
	// death its backup has to wait the lease out (about 225 ms) before it takes over.
	// Without it a leased read is answered as a confirmed one, and there is no such wait.
	LeasedReads bool

	MemoryLimit int64 // bytes the process may use, orders and everything else; default 1 GiB
	// Prefault is how many bytes for orders, all partitions together, the kernel has
	// to provide before the node starts to serve; default 0. Memory beyond is asked
	// for a little ahead of need, while orders come.
	Prefault int64
	MaxConns int // connections at the same time; default 4096
	// MaxClientConns is how many of them one client, by who it proved to be, may have;
	// with Access only. 0: any number.
	MaxClientConns int

	Beacon       time.Duration // default 20 ms
	Lease        time.Duration // default 200 ms
	Grace        time.Duration // default 300 ms
	ClaimDelay   time.Duration // default 10 s
	DrainTimeout time.Duration // default 20 s

	// HandOverDelay is how long the preferred pod of a partition has to be in sync
	// before the primary hands over to it; default 5 s.
	HandOverDelay time.Duration
	// LearnerRate bounds what this node sends to learners, all its partitions together, in
	// bytes per second; default 256 MiB. Active feeds share it.
	LearnerRate int64

	// Retention controls when entries that the sink holds are freed: "keep-all" (default:
	// never, a full node rejects orders) or "free-downstream".
	Retention string
	// HighWatermark is the part of the orders' memory, in percent, beyond which
	// entries are freed; default 80.
	HighWatermark int

	Sink    string // "hold" (default) or "file"
	SinkDir string // with "file"
	// FileSinks are further file sinks, directories by name: lowercase letters, digits and
	// hyphens. Every node of the grid has the same names.
	FileSinks map[string]string
	// ExternalSinks are names of sinks outside the grid, which follow the log and report their position.
	ExternalSinks []string
	// RemovedSinks are names of former sinks of the grid. Entries they lack may be freed.
	RemovedSinks []string

	// Views makes the node keep a view of the orders of each of its partitions; nil: none.
	Views *Views

	// Functions of users that the node calls; nil: none.
	Functions *Functions

	// Execution makes the grid's partitions match orders; nil: they store them.
	Execution *Execution

	// Regions are the grid's keyed objects; nil: those that the log has.
	Regions *Regions
	// ReadRegions reads the file that Regions are of again, and returns its digest; nil: they do not change. Memory that
	// it returns is not used.
	ReadRegions func() (*Regions, string, error)
	// LimitsFile has the limits that primaries put in force, see docs/limits.md; it is read
	// again when it changes. Empty: what the log has stays in force.
	LimitsFile string

	// TLS makes the data port TLS 1.3, for clients, peers and heartbeats; nil is plain
	// TCP.
	TLS *secure.Identity

	// TLSTransition lets a grid change from plain TCP to TLS, or back, one node at a time:
	// the data port accepts both. It needs TLS.
	TLSTransition TLSTransition

	// PeerKeys authenticate the nodes of the grid where there is no TLS; required then,
	// unless InsecurePeers or Replicas is 1.
	PeerKeys *peerkey.Keys
	// InsecurePeers accepts nodes without a proof. It is there to measure the cost of the
	// proof and must be set explicitly.
	InsecurePeers bool

	// Access makes the node authenticate clients and check their permissions; nil: every
	// client may do everything. It needs TLS.
	Access *Access

	// Journal makes the node acknowledge only what is on its disk; nil: it keeps none.
	Journal *Journal

	// Archive is where partitions are loaded from whose record is to be restored; nil: such a
	// partition is not claimed by this node.
	Archive Archive

	Transport transport.Kind
	Pprof     bool // serve /debug/pprof on HTTP
	Arbiter   arbiter.Arbiter
	Recorder  arbiter.Recorder // may be nil
	Log       *slog.Logger
}

const (
	minMemory = 64 << 20
	// Below, a learner of a busy grid never catches up; above is no limit at all.
	minLearnerRate = 1 << 20
	maxLearnerRate = arbiter.MaxLearnerRate
	maxReplicas    = wire.MaxCopies
)

// fill sets defaults and checks every field; the error lists all faults.
func (c *Config) fill() error {
	setDefault(&c.Replicas, 2)
	setDefault(&c.MinInSync, 1)
	setDefault(&c.MemoryLimit, 1<<30)
	setDefault(&c.MaxConns, 4096)
	setDefault(&c.Beacon, 20*time.Millisecond)
	setDefault(&c.Lease, 200*time.Millisecond)
	setDefault(&c.Grace, 300*time.Millisecond)
	setDefault(&c.ClaimDelay, 10*time.Second)
	setDefault(&c.DrainTimeout, 20*time.Second)
	setDefault(&c.HandOverDelay, 5*time.Second)
	setDefault(&c.LearnerRate, 256<<20)
	setDefault(&c.Sink, SinkHold)
	setDefault(&c.Retention, RetentionKeepAll)
	setDefault(&c.HighWatermark, 80)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	var errs []error
	bad := func(flag string, value any, allowed string) {
		errs = append(errs, fmt.Errorf("--%s: value %v, allowed: %s", flag, value, allowed))
	}
	inRange := func(flag string, v, lo, hi int) {
		if v < lo || v > hi {
			bad(flag, v, fmt.Sprintf("%d..%d", lo, hi))
		}
	}
	name := func(flag, v string, limit int) {
		if v == "" || len(v) > limit || strings.ContainsAny(v, "/ \t\n\"\\") {
			bad(flag, fmt.Sprintf("%q", v), fmt.Sprintf("1..%d characters without spaces, quotes and slashes", limit))
		}
	}
	name("grid", c.Grid, 200)
	name("pod", c.Pod, 63)
	inRange("shard", c.Shard, 0, 255)
	inRange("partitions", c.Partitions, 1, wire.MaxPartitions)
	inRange("replicas", c.Replicas, 1, maxReplicas)
	inRange("min-in-sync", c.MinInSync, 1, c.Replicas)
	inRange("max-connections", c.MaxConns, 8, 1<<20)
	if c.MemoryLimit < minMemory {
		bad("memory-limit", c.MemoryLimit, "at least 64Mi")
	}
	if orders := planMemory(c.MemoryLimit, 1).orders - c.viewMemory() - c.functionMemory() - c.executionMemory() - c.regionMemory(); c.Prefault < 0 || c.Prefault > orders {
		bad("prefault", c.Prefault, fmt.Sprintf("0..%d, what --memory-limit leaves to orders", orders))
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		bad("listen", fmt.Sprintf("%q", c.Listen), "host:port or :port")
	}
	if _, _, err := net.SplitHostPort(c.External); c.External != "" && (err != nil || c.External == c.Listen) {
		bad("external-listen", fmt.Sprintf("%q", c.External), "host:port or :port, another one than that of --listen")
	}
	if host, port, err := net.SplitHostPort(c.Advertise); err != nil || net.ParseIP(host) == nil || port == "" || port == "0" {
		bad("advertise", fmt.Sprintf("%q", c.Advertise), "ip:port, the address at which clients and peers reach this node")
	}
	if c.Lease < 2*c.Beacon {
		bad("lease", c.Lease, fmt.Sprintf("at least twice --beacon (%v)", c.Beacon))
	}
	if c.Grace <= c.Lease {
		bad("grace", c.Grace, fmt.Sprintf("more than --lease (%v)", c.Lease))
	}
	if c.HandOverDelay < 0 {
		bad("hand-over-delay", c.HandOverDelay, "a duration of 1ns or more, such as 5s")
	}
	if c.LearnerRate < minLearnerRate || c.LearnerRate > maxLearnerRate {
		bad("learner-rate", c.LearnerRate, "1Mi to 16Gi, bytes a second")
	}
	switch c.Sink {
	case SinkHold:
	case SinkFile:
		if c.SinkDir == "" {
			bad("sink-dir", `""`, "a directory; --sink=file writes to it")
		}
	default:
		bad("sink", fmt.Sprintf("%q", c.Sink), "hold, file")
	}
	c.checkSinks(bad)
	if c.Arbiter == nil {
		bad("arbiter", `""`, "kube, or http://host:port")
	}
	return errors.Join(append(errs, c.checkClientConns(), c.checkRetention(), c.checkTLS(), c.checkPeerKey(), c.checkAccess(), c.checkViews(), c.checkFunctions(), c.checkExecution(), c.checkRegions(), c.checkLimits(), c.checkJournal())...)
}

func (c *Config) checkRetention() error {
	switch {
	case c.HighWatermark < 20 || c.HighWatermark > 95:
		return fmt.Errorf("--high-watermark: value %d, allowed: 20..95", c.HighWatermark)
	case c.Retention != RetentionKeepAll && c.Retention != RetentionFreeDownstream:
		return fmt.Errorf("--retention: value %q, allowed: %s, %s", c.Retention, RetentionKeepAll, RetentionFreeDownstream)
	case c.Retention == RetentionFreeDownstream && c.Sink == SinkHold && len(c.FileSinks)+len(c.ExternalSinks) == 0:
		return fmt.Errorf("--retention: value %s, allowed: %s with --sink=hold, no --file-sink and no --external-sink, nothing is downstream", c.Retention, RetentionKeepAll)
	}
	return nil
}

// Source is the address that a node listens on, if it listens on one, or its address on
// the fabric: the node dials from there, so that all its traffic takes one interface and
// one address identifies the node. Invalid: the kernel chooses.
func (c *Config) Source() netip.Addr {
	if c.FabricOnly {
		advertise, _ := netip.ParseAddrPort(c.Advertise) // checked by fill
		return advertise.Addr()
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return netip.Addr{}
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.IsUnspecified() {
		return netip.Addr{}
	}
	return addr
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Retention policies.
const (
	RetentionKeepAll        = "keep-all"        // a full node refuses orders
	RetentionFreeDownstream = "free-downstream" // what the sink holds is freed above the high watermark
)

// retention in bytes, given the memory for orders. A tenth of it is freed at a time.
// Half-way from the watermark to the limit learners are not waited for.
func (c *Config) retention(orders int64) replica.Retention {
	high := orders / 100 * int64(c.HighWatermark)
	return replica.Retention{FreeDownstream: c.Retention == RetentionFreeDownstream, High: high, Low: high - orders/10, Critical: high + (orders-high)/2}
}

// Values of Sink.
const (
	SinkHold = "hold" // stays in memory, as the published system measured
	SinkFile = "file" // append-only file, fsync per batch
)

// PartitionName is the name of the arbiter's record of a partition.
func PartitionName(grid string, partition int) string {
	return fmt.Sprintf("%s-p%d", grid, partition)
}
