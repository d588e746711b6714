package replica

import (
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Time is the caller's clocks at a Step. Mono never jumps and counts while the machine is
// suspended (CLOCK_BOOTTIME); only differences of it are used. Wall is unix time and only
// stored in entries.
type Time struct {
	Mono int64 // nanoseconds
	Wall int64 // nanoseconds since 1970
}

// Timing of liveness. Zero fields take the defaults.
type Timing struct {
	Beacon     time.Duration // interval of heartbeats; 20 ms
	Lease      time.Duration // a member silent for this long is dropped by the primary; 200 ms
	Grace      time.Duration // a primary silent for this long is replaced; 300 ms, more than Lease
	ClaimDelay time.Duration // pods other than the preferred one wait this long before they claim; 10 s
	Resend     time.Duration // entries unacknowledged for this long are resent; 2 x Beacon
	Retry      time.Duration // between two attempts of a proposal, a join, a read of the configuration; 5 x Beacon
	// HandOverDelay is how long the preferred pod has to be in sync before the partition
	// is handed back to it, so that a repeatedly failing pod does not move the primary
	// each time; 5 s.
	HandOverDelay time.Duration
}

// Limits bound every queue. Zero fields take the defaults.
type Limits struct {
	MaxPayload    int // bytes of one order; 16 KiB, at most 64 KiB - 64
	InFlight      int // entries prepared and not committed; 16384, rounded up to a power of two
	InFlightBytes int // bytes of those; 16 MiB
	PendingReads  int // pending confirmed reads; 16384, rounded up to a power of two
	// PendingReadBytes bounds their answers: 16 MiB. They are sent at once, and must not
	// exceed a connection's output limit.
	PendingReadBytes int
	FixSessions      int // FIX sessions, of all clients; 16384
	Sessions         int // open sessions; 4096
	ClientSessions   int // open sessions of one client; a quarter of Sessions
	Window           int // replies kept per session, submits a session may have in flight; 512, a power of two
	BatchBytes       int // entries in one Prepare; 256 KiB, at most wire.MaxPrepareEntries
	LearnerBytes     int // sent to a learner and unacknowledged; 4 MiB
	LearnerRate      int // bytes per second sent to a learner; 256 MiB
	LearnerBatch     int // of those in one wake-up, one entry at least; 64 KiB
	JoinBound        int // a learner this many entries behind, or fewer, enters the ack set; 4096
	DigestEvery      int // entries between two that states are compared at; 4096
}

// Options of New.
type Options struct {
	Partition wire.PartitionID
	Self      Member
	Store     *store.Store // empty; the replica is its only writer
	Timing    Timing
	Limits    Limits
	Replicas  int // members wanted, 1..3; 2
	MinInSync int // 1..Replicas; 1
	MaxInSync int // most members, at least Replicas; Replicas
	Retention Retention
	// Readers are the names of the consumers of the log that every node of the grid has:
	// no entry is freed that one of them does not hold. "" is the unnamed sink, nil stands
	// for that alone.
	Readers []string
	// Outside are those of Readers that are outside the grid: they report their position by
	// Advance, and get no EventCursor.
	Outside []string
	// Removed are the names of former readers of the grid: their positions no longer hold
	// entries back. Positions of unknown readers do.
	Removed []string
	// Execution makes the partition match; nil: it stores orders.
	Execution *Execution
	// Regions are the keyed objects of the partition; nil: those that its log has.
	Regions *Regions
	// Profile is the limits that a primary puts in force, as limits.Profile writes them;
	// nil: those that the log has stay.
	Profile []byte
	// CapacityAdvice is appended to a rejection for lack of memory: what can be done about
	// it; it may be empty.
	CapacityAdvice string
	Preferred      bool // claims an unclaimed partition at once
	// LeaseClock reads the clock of Time.Mono. It is called for leased reads, after the
	// value was read: only this detects a suspension in between. Without it a leased read
	// is answered as a confirmed one.
	LeaseClock func() int64
	// Functions are called for each order that is stored; nil: this replica cannot have a
	// log with functions.
	Functions *Functions
	// Pre decides on orders before they are entries; nil: all become entries as they are.
	Pre Decider
	// Compute calls functions with keys of regions; nil: there are none.
	Compute Computer
	// Map calls them for many keys; nil: there are none.
	Map Mapper
	// Journal makes the replica vouch only for what is durable in its journal; nil: it has
	// none.
	Journal *Journal
	// Vitals of this incarnation, driven by their own thread; nil: not driven, and data is
	// the only evidence of life.
	Vitals *Vitals
	// Rest lets an idle replica skip most of its ticks. See TickDue.
	Rest bool
	// Known is what the replica says that it knows; wire.Features. A test of an update has a
	// replica that knows less.
	Known wire.FeatureSet
}

func or[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

func (t *Timing) fill() error {
	t.Beacon = or(t.Beacon, 20*time.Millisecond)
	t.Lease = or(t.Lease, 200*time.Millisecond)
	t.Grace = or(t.Grace, 300*time.Millisecond)
	t.ClaimDelay = or(t.ClaimDelay, 10*time.Second)
	t.Resend = or(t.Resend, 2*t.Beacon)
	t.Retry = or(t.Retry, 5*t.Beacon)
	t.HandOverDelay = or(t.HandOverDelay, 5*time.Second)
	switch {
	case t.Beacon < 0 || t.Lease < 2*t.Beacon:
		return fmt.Errorf("timing: lease is %v, allowed: at least twice the beacon (%v)", t.Lease, t.Beacon)
	case t.Grace <= t.Lease:
		return fmt.Errorf("timing: grace is %v, allowed: more than the lease (%v)", t.Grace, t.Lease)
	case t.ClaimDelay < 0 || t.Resend <= 0 || t.Retry <= 0 || t.HandOverDelay < 0:
		return fmt.Errorf("timing: claimDelay %v, resend %v, retry %v, handOverDelay %v, allowed: not negative", t.ClaimDelay, t.Resend, t.Retry, t.HandOverDelay)
	}
	return nil
}

func (l *Limits) fill() error {
	l.MaxPayload = or(l.MaxPayload, wire.DefaultMaxPayload)
	l.InFlight = powerOfTwo(or(l.InFlight, 16384))
	l.InFlightBytes = or(l.InFlightBytes, 16<<20)
	l.PendingReads = powerOfTwo(or(l.PendingReads, 16384))
	l.PendingReadBytes = or(l.PendingReadBytes, 16<<20)
	l.FixSessions = min(or(l.FixSessions, 16384), machine.MaxFix)
	l.Sessions = or(l.Sessions, 4096)
	l.ClientSessions = or(l.ClientSessions, max(1, l.Sessions/4))
	l.Window = or(l.Window, 512)
	l.BatchBytes = or(l.BatchBytes, 256<<10)
	l.LearnerBytes = or(l.LearnerBytes, 4<<20)
	l.LearnerRate = or(l.LearnerRate, 256<<20)
	l.LearnerBatch = or(l.LearnerBatch, feedBatch)
	l.JoinBound = or(l.JoinBound, 4096)
	l.DigestEvery = powerOfTwo(or(l.DigestEvery, 4096))
	switch {
	case l.MaxPayload < 1 || l.MaxPayload > wire.MaxPayload:
		return fmt.Errorf("limits: maxPayload is %d, allowed: 1..%d", l.MaxPayload, wire.MaxPayload)
	case l.InFlight < 2 || l.InFlightBytes < 1 || l.PendingReads < 1 || l.PendingReadBytes < 1 || l.Sessions < 1 || l.ClientSessions < 1 || l.ClientSessions > l.Sessions || l.JoinBound < 1 || l.DigestEvery < 1 || l.LearnerBytes < 1 || l.LearnerRate < 1 || l.LearnerBatch < 1:
		return fmt.Errorf("limits: inFlight %d, inFlightBytes %d, pendingReads %d, pendingReadBytes %d, sessions %d, clientSessions %d, joinBound %d, digestEvery %d, learnerBytes %d, learnerRate %d, learnerBatch %d, allowed: positive, and clientSessions at most sessions",
			l.InFlight, l.InFlightBytes, l.PendingReads, l.PendingReadBytes, l.Sessions, l.ClientSessions, l.JoinBound, l.DigestEvery, l.LearnerBytes, l.LearnerRate, l.LearnerBatch)
	case l.Window < 1 || l.Window&(l.Window-1) != 0 || l.Window > 1<<16:
		return fmt.Errorf("limits: window is %d, allowed: a power of two up to 65536", l.Window)
	case l.BatchBytes < 64<<10 || l.BatchBytes > wire.MaxPrepareEntries:
		return fmt.Errorf("limits: batchBytes is %d, allowed: 65536..%d", l.BatchBytes, wire.MaxPrepareEntries)
	}
	return nil
}

func powerOfTwo(n int) int {
	p := 1
	for p < n {
		p <<= 1
	}
	return p
}

func (o *Options) fill() error {
	if o.Self.Boot == 0 || o.Self.ID == "" || o.Self.Address == "" {
		return fmt.Errorf("replica %s: self is %+v, allowed: an id, a boot id and an address", o.Partition, o.Self)
	}
	if o.Store == nil {
		return fmt.Errorf("replica %s: no store", o.Partition)
	}
	if seq, _ := o.Store.Last(); seq != 0 {
		return fmt.Errorf("replica %s: the store holds %d entries, allowed: an empty one", o.Partition, seq)
	}
	if o.Known == 0 {
		o.Known = wire.Features
	}
	o.Replicas = or(o.Replicas, 2)
	o.MinInSync = or(o.MinInSync, 1)
	if o.Replicas < 1 || o.Replicas > wire.MaxCopies || o.MinInSync < 1 || o.MinInSync > o.Replicas {
		return fmt.Errorf("replica %s: replicas %d, minInSync %d, allowed: 1..%d and minInSync at most replicas",
			o.Partition, o.Replicas, o.MinInSync, wire.MaxCopies)
	}
	o.MaxInSync = min(max(o.MaxInSync, o.Replicas), wire.MaxCopies)
	if err := o.Timing.fill(); err != nil {
		return err
	}
	if v := o.Vitals; v != nil && (v.self != o.Self || v.part != o.Partition || v.timing != o.Timing) {
		return fmt.Errorf("replica %s: vitals belong to %s in %s, or have another timing; allowed: made with this replica's self, partition and timing", o.Partition, v.self.ID, v.part)
	}
	if t := &o.Retention; t.FreeDownstream && (t.Low < 0 || t.High <= t.Low || t.Critical < t.High) {
		return fmt.Errorf("replica %s: retention frees from %d down to %d bytes and is critical at %d, allowed: low < high <= critical", o.Partition, t.High, t.Low, t.Critical)
	}
	if o.Regions != nil {
		if err := o.Regions.Check(); err != nil {
			return fmt.Errorf("replica %s: %w", o.Partition, err)
		}
	}
	if o.Execution != nil {
		x := *o.Execution
		if err := x.fill(); err != nil {
			return fmt.Errorf("replica %s: %w", o.Partition, err)
		}
		o.Execution = &x
	}
	if called := o.Pre != nil || o.Compute != nil || o.Functions != nil && len(o.Functions.Want) > 0; called && !order.FunctionsBuilt {
		return fmt.Errorf("replica %s: it is to call functions, allowed: none in a program built with the tag nofunctions", o.Partition)
	}
	if o.Functions != nil {
		f := *o.Functions
		if err := f.fill(); err != nil {
			return fmt.Errorf("replica %s: %w", o.Partition, err)
		}
		o.Functions = &f
	}
	return o.Limits.fill()
}
