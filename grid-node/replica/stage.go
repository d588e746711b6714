package replica

// stage is the progress of a replica towards the ack set and inSync. A peer has one stage,
// moves lists all transitions, and become is the only way to make one.
type stage uint8

const (
	stageNew        stage = iota // not in the list of peers yet
	stageInstalling              // a learner that first installs the base state
	stageCatchingUp              // a learner that is fed the log
	stageSettling                // a learner that is fed no more until everything is acknowledged
	stageCounted                 // a learner in the ack set: commits wait for it, and it may be proposed for inSync
	stageInSync                  // a member of the configuration
	stageUncounted               // a member that commits do not wait for: only in mutants
	stages
)

var stageNames = [stages]string{"new", "installing", "catching up", "settling", "counted", "in sync", "uncounted"}

func (s stage) String() string { return stageNames[s] }

// moves has the condition of each transition. A peer that leaves is removed from the list,
// whatever its stage. docs/replication.md has the table.
var moves = [stages][stages]string{
	stageNew: {
		stageInstalling: "its Join is accepted, and entries it lacks are freed",
		stageCatchingUp: "its Join is accepted",
		stageInSync:     "the configuration has it",
	},
	stageInstalling: {
		stageCatchingUp: "it has the base state",
	},
	stageCatchingUp: {
		stageSettling: "it is close, and some entries it was fed are unacknowledged",
		stageCounted:  "it is close, and has acknowledged all entries it was fed",
	},
	stageSettling: {
		stageCatchingUp: "it falls behind, or joins again",
		stageCounted:    "it has acknowledged all entries it was fed",
	},
	stageCounted: {
		stageCatchingUp: "the configuration changes without it: it enters the ack set anew",
		stageInSync:     "the configuration has it",
	},
	stageUncounted: {
		stageInSync: "the configuration still has it",
	},
}

// become makes a transition of a peer.
func (r *Replica) become(p *peer, s stage) {
	if s != p.stage && moves[p.stage][s] == "" {
		r.broken(p.ID + " goes from " + p.stage.String() + " to " + s.String())
	}
	p.stage = s
}

// inSync reports whether the peer is in the configuration; one that is not is a learner.
func (p *peer) inSync() bool { return p.stage >= stageInSync }

func (p *peer) learner() bool { return !p.inSync() }

// acks reports whether the peer is in the ack set: commits wait for it.
func (p *peer) acks() bool { return p.stage == stageCounted || p.stage == stageInSync }

// fault is why a peer is dropped before it has been silent for a lease.
type fault uint8

const (
	faultNone     fault = iota
	faultReset          // its connection was reset or refused
	faultDiverged       // it acknowledged another history: permanent
)

// reset notes that the peer's connection has ended.
func (p *peer) reset() {
	if p.fault == faultNone {
		p.fault = faultReset
	}
}

// reached notes that the peer's connection works.
func (p *peer) reached() {
	if p.fault == faultReset {
		p.fault = faultNone
	}
}
