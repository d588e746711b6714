package replica

import (
	"sync"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Vitals are the heartbeats of one replica and their answers. They are a state machine of
// their own, without I/O, goroutine or clock, so that a separate thread can drive them
// while the replica's thread is busy:
//
//	v := replica.NewVitals(self, partition, timing)
//	r, err := replica.New(replica.Options{..., Vitals: v})
//
//	loop thread       r.Step(now, &event, &out), as without; a tick at least every Timing.Beacon / 2
//	liveness thread   v.Beats(now, rows)           // every Timing.Beacon, of all Vitals at once
//	                  v.Hear(now, &row)            // a row of a Heartbeat that came
//	                  v.Answered(now, echo, &row)  // a row of a HeartbeatAck that came
//
// A node sends another the heartbeats of all its partitions in one Heartbeat. now of Hear
// and Answered is read after the frame was received. A suspended process suspends both
// threads; a hung loop leaves the liveness thread running. A new incarnation of the
// replica has new Vitals.
//
// # Why a second thread may answer
//
// An answer means "this member has not left the epoch", and must not be mistaken for three
// other things.
//
// A lease: it counts from SentNs of an answered Heartbeat. An answer notes under the mutex
// that the primary was heard, and a backup takes over only by fence, which checks that
// note and ends all answers in one critical section, before the proposal is sent. So an
// answer is either counted in the silence that the backup waits out, or is never given.
//
// A confirmed read, or the first acknowledgement after a suspension: both wait for rounds,
// which travel with the data only, and only the replica itself echoes them.
//
// An acknowledgement of an order: it needs entries stored, and an answer of Vitals does
// not cover entries.
//
// What remains is that no live member is dropped or replaced. A process whose loop hangs
// is alive, for a while: after stallLimit without a step Vitals fall silent, and the
// others continue without it.
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
	commit    uint64 // committed prefix, sent with every row

	peers []vitalPeer // vitalLeads: receivers of rows

	// vitalFollows: the primary and its last heartbeat.
	primary    Member
	heardAt    int64
	leased     bool // it answers leased reads
	heardFlags uint8
	told       uint64 // highest committed prefix

	newer     uint64 // a later epoch seen in a row; 0: none
	newerFrom uint64 // boot id of its sender
	count     VitalsCounters
}

// VitalsCounters count since the Vitals were made.
type VitalsCounters struct {
	Sent     uint64 // rows sent
	Heard    uint64 // rows of the primary received and answered
	Late     uint64 // of those: more than lateBeacons beacon times after the previous one
	Answered uint64 // answers received
	Stale    uint64 // rows of another epoch or incarnation, dropped
}

type vitalMode uint8

const (
	vitalQuiet   vitalMode = iota // sends nothing, answers nothing
	vitalLeads                    // a primary: sends heartbeats
	vitalFollows                  // a backup, or a learner that was accepted: answers the primary's
)

// vitalPeer is a member or learner that a primary sends heartbeats to.
type vitalPeer struct {
	boot    uint64
	address string
	sentNs  int64 // when the last was sent
	heardAt int64
	echoNs  int64 // SentNs of the last answered one
	flags   uint8 // of its last answer
}

const (
	// stallLimit in graces: how long a loop may hang and still count as alive. Long enough
	// for what a machine does to a process (swapping, a snapshot, a debugger's dump),
	// short enough that a hung primary is replaced.
	stallLimit  = 4
	lateBeacons = 3
)

// NewVitals makes the vitals of one incarnation of a replica. self and timing
// are those of its Options.
func NewVitals(self Member, partition wire.PartitionID, timing Timing) *Vitals {
	_ = timing.fill() // New rejects it if invalid
	return &Vitals{part: partition, self: self, timing: timing, peers: make([]vitalPeer, 0, maxPeers)}
}

// note records the primary's heartbeat, and reports whether to answer it.
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

// present reports whether a frame is for this incarnation and in its epoch.
func (v *Vitals) present(h *wire.PeerHead) bool {
	if h.To == v.self.Boot && h.Epoch > v.epoch {
		v.newer, v.newerFrom = h.Epoch, h.From
	}
	return h.To == v.self.Boot && (h.Epoch == v.epoch || mutant(mutStaleBeacon) && h.Epoch < v.epoch)
}

// stuck reports whether the replica has not stepped for so long that it should not be
// relied on.
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

// fence ends all answers in this epoch, permanently, if the primary is gone: heard neither
// by the replica nor by the vitals for long enough. Both are decided in one critical
// section, see the comment of Vitals.
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
		// The lease counts from when the primary sent the last received heartbeat, so it
		// ends before now plus its length; an eighth is for clock drift.
		due = due || !leased && !v.leased || mutant(mutTakeOverInLease) || silent > int64(t.Lease+t.Lease/8)
	}
	if due && !mutant(mutFencedAnswers) {
		v.mode = vitalQuiet
	}
	return silent, due
}
