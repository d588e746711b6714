package replica

// stage is how far a replica is on its way to where nothing commits without it and it may
// become primary. A peer has one stage, moves is all the ways from one to another, and
// become is the only way to go there.
type stage uint8

const (
	stageNew        stage = iota // not in the list of peers yet
	stageInstalling              // a learner that has to take the base state in first
	stageCatchingUp              // a learner that is fed the log
	stageSettling                // a learner that is fed no more until all of it is acknowledged
	stageCounted                 // a learner in the ack set: nothing commits without it, and it may be proposed for inSync
	stageInSync                  // a member of the configuration
	stageUncounted               // a member that is not waited for: in broken variants only
	stages
)

var stageNames = [stages]string{"new", "installing", "catching up", "settling", "counted", "in sync", "uncounted"}

func (s stage) String() string { return stageNames[s] }

// moves says when a peer goes from one stage to another. A peer that leaves goes from
// the list, whatever its stage. docs/replication.md has the table.
var moves = [stages][stages]string{
	stageNew: {
		stageInstalling: "its Join is accepted, and what it lacks is freed",
		stageCatchingUp: "its Join is accepted",
		stageInSync:     "the configuration has it",
	},
	stageInstalling: {
		stageCatchingUp: "it has the base state",
	},
	stageCatchingUp: {
		stageSettling: "it is close, and has been fed what it has not acknowledged",
		stageCounted:  "it is close, and has acknowledged all that it was fed",
	},
	stageSettling: {
		stageCatchingUp: "it falls behind, or joins again",
		stageCounted:    "it has acknowledged all that it was fed",
	},
	stageCounted: {
		stageCatchingUp: "the configuration changes without it: it enters the ack set anew",
		stageInSync:     "the configuration has it",
	},
	stageUncounted: {
		stageInSync: "the configuration has it still",
	},
}

// become moves a peer on.
func (r *Replica) become(p *peer, s stage) {
	if s != p.stage && moves[p.stage][s] == "" {
		r.broken(p.ID + " goes from " + p.stage.String() + " to " + s.String())
	}
	p.stage = s
}

// inSync reports whether the peer is in the configuration; one that is not is a learner.
func (p *peer) inSync() bool { return p.stage >= stageInSync }

func (p *peer) learner() bool { return !p.inSync() }

// acks reports whether the peer is in the ack set: nothing commits without it.
func (p *peer) acks() bool { return p.stage == stageCounted || p.stage == stageInSync }

// fault is why a peer is given up before it has been silent for a lease.
type fault uint8

const (
	faultNone     fault = iota
	faultReset          // its connection was reset or refused
	faultDiverged       // it acknowledged another history: for good
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
