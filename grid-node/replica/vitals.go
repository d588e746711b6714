package replica

import (
	"sync"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Vitals are the signs of life of one replica: heartbeats and their answers. They
// are a state machine of their own, without I/O, goroutine or clock, so that a
// thread of its own can drive them while the replica's thread is busy:
//
//	v := replica.NewVitals(self, partition, timing)
//	r, err := replica.New(replica.Options{..., Vitals: v})
//
//	loop thread       r.Step(now, &event, &out), as without; a tick at least every Timing.Beacon / 2
//	liveness thread   v.Beats(now, rows)           // every Timing.Beacon, of all Vitals at once
//	                  v.Hear(now, &row)            // a row of a Heartbeat that came
//	                  v.Answered(now, echo, &row)  // a row of a HeartbeatAck that came
//
// A node sends another the signs of life of all its partitions in one Heartbeat. now of
// Hear and Answered is read after the frame was received. A process that stops, stops both
// threads; a loop that hangs, hangs alone. A new incarnation of the replica has new Vitals.
//
// # Why a second thread may answer
//
// An answer says "this member has not given the epoch up", and three things could
// be hung on it by mistake.
//
// A lease: it counts from SentNs of an answered Heartbeat. Whoever answers notes
// under the mutex that the primary was heard, and a backup takes over only by
// fence, which looks at what was noted and ends all answers in one critical
// section, before the proposal leaves. So an answer is either counted in the
// silence that the backup waits out, or is never given.
//
// A confirmed read, or the first acknowledgement after a sleep: both wait for
// rounds, which travel with the data only, and only the replica itself echoes them.
//
// An acknowledgement of an order: it needs entries stored, and an answer of
// Vitals says nothing about entries.
//
// What is left is that nobody is dropped or replaced who lives. A process whose
// loop hangs does live, for a while: after stallLimit without a step Vitals fall
// silent, and the others go on without it.
type Vitals struct {
	part   wire.PartitionID
	self   Member
	timing Timing

	mu        sync.Mutex
	mode      vitalMode
	steppedAt int64 // last tick of the replica
	epoch     uint64
	flags     uint8  // of every row sent
	leaving   uint8  // flags of every answer
	commit    uint64 // committed prefix, told with every row

	peers []vitalPeer // vitalLeads: who gets rows

	// vitalFollows: the primary and what it said.
	primary    Member
	heardAt    int64
	leased     bool // it answers leased reads
	heardFlags uint8
	told       uint64 // highest committed prefix

	newer     uint64 // an epoch above ours that was spoken of; 0: none
	newerFrom uint64 // boot id of who spoke of it
	count     VitalsCounters
}

// VitalsCounters count since the Vitals were made.
type VitalsCounters struct {
	Sent     uint64 // rows sent
	Heard    uint64 // rows of the primary taken in, and answered
	Late     uint64 // of those: came more than lateBeacons beacon times after the one before
	Answered uint64 // answers of others taken in
	Stale    uint64 // rows of another epoch or incarnation, dropped
}

type vitalMode uint8

const (
	vitalQuiet   vitalMode = iota // says nothing, answers nothing
	vitalLeads                    // a primary: sends signs of life
	vitalFollows                  // a backup, or a learner that was accepted: answers the primary's
)

// vitalPeer is a member or learner that a primary sends signs of life to.
type vitalPeer struct {
	boot    uint64
	address string
	sentNs  int64 // when the last was sent
	heardAt int64
	echoNs  int64 // SentNs of the latest that was answered
	flags   uint8 // of its last answer
}

const (
	// stallLimit in graces: how long a loop may hang and still count as alive.
	// Long enough for what a machine does to a process (swapping, a snapshot, a
	// debugger's dump), short enough that a hung primary is replaced.
	stallLimit  = 4
	lateBeacons = 3
)

// NewVitals makes the vitals of one incarnation of a replica. self and timing
// are those of its Options.
func NewVitals(self Member, partition wire.PartitionID, timing Timing) *Vitals {
	_ = timing.fill() // New refuses what is wrong with it
	return &Vitals{part: partition, self: self, timing: timing, peers: make([]vitalPeer, 0, maxPeers)}
}

// note notes the primary's sign of life, and reports whether it is to be answered.
func (v *Vitals) note(now Time, m *wire.HeartbeatRow) bool {
	if !v.present(&m.PeerHead) || v.mode != vitalFollows || m.From != v.primary.Boot || v.stuck(now) {
		v.count.Stale++
		return false
	}
	v.count.Heard++
	if v.heardAt != 0 && now.Mono-v.heardAt > lateBeacons*int64(v.timing.Beacon) {
		v.count.Late++
	}
	v.heardAt = max(v.heardAt, now.Mono)
	v.leased = v.leased || m.Flags&wire.FlagLeased != 0
	v.heardFlags = m.Flags
	v.told = max(v.told, m.CommitSeq)
	return true
}

// present says whether a frame is for this incarnation and in its epoch.
func (v *Vitals) present(h *wire.PeerHead) bool {
	if h.To == v.self.Boot && h.Epoch > v.epoch {
		v.newer, v.newerFrom = h.Epoch, h.From
	}
	return h.To == v.self.Boot && (h.Epoch == v.epoch || mutant(mutStaleBeacon) && h.Epoch < v.epoch)
}

// stuck says whether the replica has not stepped for so long that nobody should
// count on it.
func (v *Vitals) stuck(now Time) bool {
	return now.Mono-v.steppedAt > stallLimit*int64(v.timing.Grace)
}

func (v *Vitals) peer(boot uint64) *vitalPeer {
	for i := range v.peers {
		if v.peers[i].boot == boot {
			return &v.peers[i]
		}
	}
	return nil
}

// Counters of the vitals, as a copy.
func (v *Vitals) Counters() VitalsCounters {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.count
}

// fence ends all answers in this epoch, for good, if the primary is gone: heard
// neither by the replica nor by the vitals for long enough. Both are decided in
// one critical section, see the comment of Vitals.
func (v *Vitals) fence(heardAt int64, leased, down bool, now int64) (silent int64, fenced bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := &v.timing
	silent = now - max(heardAt, v.heardAt)
	if mutant(mutFenceUnheard) {
		silent = now - heardAt
	}
	due := silent > int64(t.Grace)
	if down {
		// The lease counts from when the primary sent what was last heard
		// here, so from now it ends sooner; an eighth is for clocks that drift.
		due = due || !leased && !v.leased || mutant(mutTakeOverInLease) || silent > int64(t.Lease+t.Lease/8)
	}
	if due && !mutant(mutFencedAnswers) {
		v.mode = vitalQuiet
	}
	return silent, due
}
