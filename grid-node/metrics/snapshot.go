package metrics

import (
	"time"

	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/histogram"
)

// NodeCounters belong to the node's loop; they are copied for a scrape.
type NodeCounters struct {
	BadFrames         uint64 // connections closed for an invalid frame
	HelloTimeouts     uint64
	Redirects         uint64 // requests answered NotPrimary
	PeersRefused      uint64
	NodesRefused      uint64 // claimed to be nodes without proof
	ClientsRefused    [refusals]uint64
	NotPermitted      [access.All + 1]uint64 // requests, by the access.Permissions they require: one bit each
	PeerFramesDropped uint64                 // no connection to the peer, or an unknown partition
	Proposals         uint64
	Restarts          uint64 // replicas discarded and restarted
	ArbiterErrors     uint64
	Alarms            map[string]uint64 // by kind, a bounded set
	Drains            map[string]uint64 // partitions this process left, by outcome
}

// Follow is about the streams of followers.
type Follow struct {
	Streams  int
	Windows  int64  // bytes that the windows of all streams allow to be on their way
	Examined uint64 // entries that were looked at for a stream
	Entries  uint64 // those of them that were sent
	Bytes    uint64
	Ends     [wire.EndReasons]uint64 // by wire.EndReason; 0: the connection ended
	Rejected uint64                  // by a bound on streams or windows
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

// Thread is the accounting of the thread of one loop.
type Thread struct {
	Usage   ThreadUsage
	Stalls  uint64 // ticks late enough to count as stalls
	Stalled int64  // time between those and the ticks before them, ns
}

// ThreadUsage is the kernel's accounting of a thread. Times are in nanoseconds.
type ThreadUsage struct {
	Known                    bool  // false: the loop has no thread of its own, or the kernel does not report it
	User, System             int64 // CPU time
	Waited                   int64 // ready to run, without a core
	MinorFaults, MajorFaults uint64
	Voluntary, Involuntary   uint64 // context switches: it slept, another thread took the core
}

// Since returns the increase since an earlier reading of the same thread.
func (u ThreadUsage) Since(e ThreadUsage) ThreadUsage {
	return ThreadUsage{Known: u.Known && e.Known, User: u.User - e.User, System: u.System - e.System, Waited: u.Waited - e.Waited,
		MinorFaults: u.MinorFaults - e.MinorFaults, MajorFaults: u.MajorFaults - e.MajorFaults,
		Voluntary: u.Voluntary - e.Voluntary, Involuntary: u.Involuntary - e.Involuntary}
}

// Partition is the part of a Snapshot about one partition.
type Partition struct {
	Name      string // "p1"
	Status    replica.Status
	Counters  replica.Counters
	Orders    uint64           // orders in the store
	Sinks     []Sink           // in the order of their names
	Inspected uint64           // the last entry that was reread and checked
	Broken    uint64           // corrupted entries found since the process began
	Unloaded  uint64           // entries of the archive that are to be loaded before the partition can be claimed
	Unread    uint64           // attempts to load it that failed
	View      *nodestatus.View // nil without views
	Regions   *Regions         // nil without regions
	Exchange  *Exchange        // nil in a partition that stores orders
	Limited   bool             // its log has limits
	Kills     int              // in effect there
	Targets   int              // FIX sessions that get copies of the reports of others
	LagNs     int64            // age of the oldest entry that is not known to be committed, ns; 0 if all are
}

// Sink is the progress of a sink in a partition's log.
type Sink struct {
	Name     string
	Seq      uint64 // everything up to here is in the sink
	Writes   bool   // this node writes it: it is the primary
	OldestNs int64  // age of the oldest committed entry it does not hold, ns; 0 if it holds all orders
}

// Liveness is what the liveness thread counts.
type Liveness struct {
	Links     map[string]int // liveness connections, dialled and accepted, by nodestatus.Protection…
	Dials     uint64         // attempts to connect
	Dropped   uint64         // beacons dropped for want of a connection
	BadFrames uint64         // connections closed for an invalid frame
}

// Fabric describes the network of the data port.
type Fabric struct {
	Network   string // namespace/name of the second network in use; "pods": the pod network
	Interface string // name of the network interface; "" if no interface has the address
	Address   string // IP address that clients and other nodes use
	Link      string // ethernet, infiniband, loopback, other, unknown
	Transport string // tcp, tls
}

// ThreadNames of Snapshot.Threads.
var ThreadNames = [2]string{"data", "liveness"}

// Snapshot is the state of the loop at one moment.
type Snapshot struct {
	Node          NodeCounters
	Loop          LoopHistograms
	Threads       [2]Thread // by ThreadNames
	Transport     transport.Stats
	Liveness      Liveness
	Follow        Follow
	Questions     Questions
	Clients       int
	Peers         int // connected nodes
	PeerLinks     []PeerLink
	DataLinks     map[string]int // other connections to nodes, by nodestatus.Protection…
	ArbiterAgo    int64          // age of the last message from the arbiter, ns; 0: none yet
	HTTPConns     int            // connections to the port of metrics and health
	HTTPEnded     uint64         // of those, ended to make room
	Partitions    []Partition
	MemoryUsed    int64 // bytes of orders and indexes
	MemoryLimit   int64
	Memory        nodestatus.Memory // the same, and derived figures
	Fabric        Fabric
	Replicas      int       // copies of each partition that the grid is to have
	TLSExpires    time.Time // of the certificate in use; zero without TLS
	Access        *Access   // nil: clients are not authenticated
	Functions     []Function
	PostFunctions []PostFunction

	ComputeFunctions []ComputeFunction

	Journal *Journal // nil: none is kept
}

// Questions are those that clients asked about orders.
type Questions struct {
	Open     int // waiting, running, or with an answer that is not read
	Ends     [wire.QueryEndCodes]uint64
	Rejected uint64                          // by a bound on how many are open
	Scanned  uint64                          // rows that were looked at
	Returned uint64                          // rows, or groups, of answers
	Took     [query.Ways]histogram.Histogram // from the question received to its answer made, by query.Way
}
