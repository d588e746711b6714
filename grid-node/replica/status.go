package replica

import "github.com/ordergrid/ordergrid/grid-node/limits"

// Role of a replica in its partition.
type Role uint8

// Roles.
const (
	RoleIdle     Role = iota // no configuration seen yet
	RoleClaiming             // the partition is unclaimed; this replica waits to claim it or is doing so
	RolePrimary              // orders the log and acknowledges
	RoleBackup               // in sync, stores what the primary sends
	RoleLearner              // not in sync: registers with the primary and catches up
	RoleFenced               // has left its epoch and proposed another; serves nothing until the arbiter answers
	RoleStopped              // asked for a restart; ignores everything
)

func (r Role) String() string {
	return [...]string{"idle", "claiming", "primary", "backup", "learner", "fenced", "stopped"}[r]
}

// Status is a replica's view of itself and its partition.
type Status struct {
	Role        Role
	Suspended   bool    // a primary that does not acknowledge until a change of configuration
	HandingOver bool    // a primary that takes no new order until its successor does
	Draining    bool    // it should stop: see EventDrain
	Config      *Config // last adopted, nil if none; read-only
	Unconfirmed bool    // Config was announced by its primary and is not confirmed by the arbiter yet
	Replicas    int     // members wanted, by the record, or by Options until that was read
	LastSeq     uint64
	CommitSeq   uint64
	Readers     int    // named readers with a position in the committed log
	CursorSeq   uint64 // committed write-behind position
	DataSeq     uint64 // last entry that is not a write-behind position: with CursorSeq there, everything is downstream
	FreedSeq    uint64 // entries up to here are freed
	Sessions    int
	InFlight    int
	Learners    []Member // of a primary: its learners
}

// Counters count since the replica was made. They never fall.
type Counters struct {
	Submits          uint64 // Submit frames seen
	Acks             uint64 // orders acknowledged, duplicates not counted
	Duplicates       uint64 // Submits answered from the session's stored replies
	Rejects          [36]uint64
	ClientGaps       uint64 // Submits that skipped a clientSeq
	PeerGaps         uint64 // Nacks sent or received
	Resends          uint64 // times entries were resent
	Prepares         uint64 // Prepare frames sent
	LearnerBytes     uint64 // entries sent to learners, bytes
	PeerAcks         uint64 // acknowledgement frames sent
	StaleFrames      uint64 // frames of another epoch or incarnation, dropped
	BadFrames        uint64 // frames of replicas that could not be decoded
	ReadsConfirmed   uint64
	ReadsLeased      uint64
	ReadsBackup      uint64
	ReadBytes        uint64 // of the orders found for reads
	SessionsOpened   uint64
	SessionsEvicted  uint64
	ConfigChanges    uint64 // configurations adopted
	ConfigRegressed  uint64
	CASUnknown       uint64
	EntriesStored    uint64
	EntriesDuplicate uint64                 // received again and dropped
	FixCopies        uint64                 // drop copies, as a primary
	FixLapses        uint64                 // FIX sessions whose orders were cancelled because they were gone
	LimitRefusals    [limits.Reasons]uint64 // orders that a limit refused
	Executions       ExecutionCounters
	Vitals           VitalsCounters
}
