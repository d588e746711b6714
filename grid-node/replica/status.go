package replica

// Role of a replica in its partition.
type Role uint8

// Roles.
const (
	RoleIdle     Role = iota // no configuration seen yet
	RoleClaiming             // the partition is unclaimed; this replica waits to claim it or is doing so
	RolePrimary              // orders the log and acknowledges
	RoleBackup               // in sync, stores what the primary sends
	RoleLearner              // not in sync: registers with the primary and catches up
	RoleFenced               // has given up its epoch and proposed another; serves nothing until the arbiter answers
	RoleStopped              // asked for a restart; ignores everything
)

func (r Role) String() string {
	return [...]string{"idle", "claiming", "primary", "backup", "learner", "fenced", "stopped"}[r]
}

// Status is what the replica knows about itself and its partition.
type Status struct {
	Role        Role
	Suspended   bool    // a primary that waits for a change of configuration and does not acknowledge
	HandingOver bool    // a primary that takes no new order until its successor does
	Draining    bool    // it is to stop: see EventDrain
	Config      *Config // last adopted, nil if none; not to be changed
	Unconfirmed bool    // Config is the word of its primary, which the arbiter has not shown yet
	Replicas    int     // members wanted, by the record, or by Options until it was read
	LastSeq     uint64
	CommitSeq   uint64
	Readers     int    // readers with a name that the committed log has a position of
	CursorSeq   uint64 // committed write-behind position
	DataSeq     uint64 // last entry that is more than a write-behind position: with CursorSeq there, all is downstream
	FreedSeq    uint64 // entries up to here are not held any more
	Sessions    int
	InFlight    int
	Learners    []Member // of a primary: those that catch up
}

// Counters count since the replica was made. They never fall.
type Counters struct {
	Submits          uint64 // Submit frames seen
	Acks             uint64 // orders acknowledged, duplicates not counted
	Duplicates       uint64 // Submits answered from the session's stored replies
	Rejects          [24]uint64
	ClientGaps       uint64 // Submits that skipped a clientSeq
	PeerGaps         uint64 // Nacks sent or received
	Resends          uint64 // times entries were sent again
	Prepares         uint64 // Prepare frames sent
	LearnerBytes     uint64 // entries sent to learners, bytes
	PeerAcks         uint64 // acknowledgement frames sent
	StaleFrames      uint64 // frames of another epoch or incarnation, dropped
	BadFrames        uint64 // frames of replicas that could not be decoded
	ReadsConfirmed   uint64
	ReadsLeased      uint64
	ReadsBackup      uint64
	ReadBytes        uint64 // of the orders that were found for reads
	SessionsOpened   uint64
	SessionsEvicted  uint64
	ConfigChanges    uint64 // configurations adopted
	ConfigRegressed  uint64
	CASUnknown       uint64
	EntriesStored    uint64
	EntriesDuplicate uint64 // received again and dropped
	Vitals           VitalsCounters
}
