package metrics

import (
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// NodeCounters belong to the node's loop; they are copied for a scrape.
type NodeCounters struct {
	BadFrames         uint64 // connections closed for a frame that cannot be
	HelloTimeouts     uint64
	Redirects         uint64 // requests answered NotPrimary
	PeersRefused      uint64
	PeerFramesDropped uint64 // no connection to the peer, or a partition that is not here
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
	Order      Histogram // primary: order received to committed
	RoundTrip  Histogram // primary: Prepare sent to its acknowledgement received
	Tick       Histogram // between two ticks
	Preprocess Histogram // primary: one Submit parsed, checked, stored; a sample of them
}

// Partition is one partition's part of a Snapshot.
type Partition struct {
	Name     string // "s0p1"
	Status   replica.Status
	Counters replica.Counters
	Orders   uint64 // orders in the store
	SinkSeq  uint64 // the write-behind sink holds everything up to here
	OldestNs int64  // age of the oldest committed entry the sink does not hold, ns; 0 if it holds all
}

// Liveness is what the liveness thread counts.
type Liveness struct {
	Links     int    // liveness connections, dialled and accepted
	Dials     uint64 // attempts to connect
	Dropped   uint64 // beacons dropped for want of a connection
	BadFrames uint64 // connections closed for a frame that cannot be
}

// Snapshot is everything the loop knows at one moment.
type Snapshot struct {
	Node        NodeCounters
	Loop        LoopHistograms
	Transport   transport.Stats
	Liveness    Liveness
	Clients     int
	Peers       int // nodes connected to
	Partitions  []Partition
	MemoryUsed  int64 // bytes of orders and indexes
	MemoryLimit int64
}
