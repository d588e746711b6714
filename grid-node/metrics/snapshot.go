package metrics

import (
	"time"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/internal/histogram"
)

// NodeCounters belong to the node's loop; they are copied for a scrape.
type NodeCounters struct {
	BadFrames         uint64 // connections closed for a frame that cannot be
	HelloTimeouts     uint64
	Redirects         uint64 // requests answered NotPrimary
	PeersRefused      uint64
	NodesRefused      uint64 // said to be nodes and did not prove it
	ClientsRefused    [refusals]uint64
	NotPermitted      [8]uint64 // requests, by the access.Permissions they take: one bit each
	PeerFramesDropped uint64    // no connection to the peer, or a partition that is not here
	Proposals         uint64
	Restarts          uint64 // replicas discarded and made anew
	ArbiterErrors     uint64
	Alarms            map[string]uint64 // by kind, a bounded set
	Drains            map[string]uint64 // partitions this process left, by outcome
}

// Drain counts one partition that this process left.
func (c *NodeCounters) Drain(outcome string) {
	if c.Drains == nil {
		c.Drains = map[string]uint64{}
	}
	c.Drains[outcome]++
}

// Alarm counts one alarm.
func (c *NodeCounters) Alarm(kind string) {
	if c.Alarms == nil {
		c.Alarms = map[string]uint64{}
	}
	c.Alarms[kind]++
}

// LoopHistograms belong to the node's loop.
type LoopHistograms struct {
	Order       histogram.Histogram // primary: order received to committed
	RoundTrip   histogram.Histogram // primary: Prepare sent to its acknowledgement received
	Tick        histogram.Histogram // between two ticks
	WakeUp      histogram.Histogram // of one wake-up, from its start to the end of its writes
	Preprocess  histogram.Histogram // primary: one Submit parsed, checked, stored; a sample of them
	Postprocess histogram.Histogram // primary: one acknowledgement, what it commits and the answers; a sample of them
}

// Thread is what is known of the thread of one loop.
type Thread struct {
	Usage   ThreadUsage
	Stalls  uint64 // ticks that came too late to go unnoticed
	Stalled int64  // time between those and the ticks before them, ns
}

// ThreadUsage is what the kernel charges a thread with. Times are in nanoseconds.
type ThreadUsage struct {
	Known                    bool  // false: the loop has no thread of its own, or the kernel does not tell
	User, System             int64 // CPU time
	Waited                   int64 // ready to run, without a core
	MinorFaults, MajorFaults uint64
	Voluntary, Involuntary   uint64 // context switches: it slept, another thread took the core
}

// Since is what was added since an earlier reading of the same thread.
func (u ThreadUsage) Since(e ThreadUsage) ThreadUsage {
	return ThreadUsage{Known: u.Known && e.Known, User: u.User - e.User, System: u.System - e.System, Waited: u.Waited - e.Waited,
		MinorFaults: u.MinorFaults - e.MinorFaults, MajorFaults: u.MajorFaults - e.MajorFaults,
		Voluntary: u.Voluntary - e.Voluntary, Involuntary: u.Involuntary - e.Involuntary}
}

// Partition is one partition's part of a Snapshot.
type Partition struct {
	Name      string // "p1"
	Status    replica.Status
	Counters  replica.Counters
	Orders    uint64 // orders in the store
	Sinks     []Sink // in the order of their names
	Inspected uint64 // the last entry that was read again and checked
	Broken    uint64 // entries that could not be right, since the process began
	LagNs     int64  // age of the oldest entry that is not known to be committed, ns; 0 if all are
}

// Sink is how far a sink holds a partition's log.
type Sink struct {
	Name     string
	Seq      uint64 // it holds everything up to here
	Writes   bool   // this node writes it: it is the primary
	OldestNs int64  // age of the oldest committed entry it does not hold, ns; 0 if it holds all orders
}

// Liveness is what the liveness thread counts.
type Liveness struct {
	Links     map[string]int // liveness connections, dialled and accepted, by nodestatus.Protection…
	Dials     uint64         // attempts to connect
	Dropped   uint64         // beacons dropped for want of a connection
	BadFrames uint64         // connections closed for a frame that cannot be
}

// Fabric is what the data port is on.
type Fabric struct {
	Network   string // namespace/name of the second network in use; "pods": the pod network
	Interface string // name of the network interface; "" if no interface has the address
	Address   string // IP address that clients and other nodes use
	Link      string // ethernet, infiniband, loopback, other, unknown
	Transport string // tcp, tls
}

// ThreadNames of Snapshot.Threads.
var ThreadNames = [2]string{"data", "liveness"}

// Snapshot is everything the loop knows at one moment.
type Snapshot struct {
	Node        NodeCounters
	Loop        LoopHistograms
	Threads     [2]Thread // by ThreadNames
	Transport   transport.Stats
	Liveness    Liveness
	Clients     int
	Peers       int // nodes connected to
	PeerLinks   []PeerLink
	DataLinks   map[string]int // other connections to nodes, by nodestatus.Protection…
	ArbiterAgo  int64          // age of the last word from the arbiter, ns; 0: none yet
	HTTPConns   int            // connections to the port of metrics and health
	HTTPEnded   uint64         // of those, ended to make room
	Partitions  []Partition
	MemoryUsed  int64 // bytes of orders and indexes
	MemoryLimit int64
	Memory      nodestatus.Memory // the same, and what follows from it
	Fabric      Fabric
	Replicas    int       // copies of each partition that the grid is to have
	TLSExpires  time.Time // of the certificate in use; zero without TLS
	Access      *Access   // nil: nobody is asked who he is
}
