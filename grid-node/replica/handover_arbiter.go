package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Who does not reach the arbiter cannot take a partition over: nobody leads on a peer's
// word. So a primary asks the target of a hand-over first, which reads the record and
// says so with its acknowledgements. Until then the primary serves on, and its copies
// stay.

// arbiterProof is what a primary knows of a member's way to the arbiter.
type arbiterProof struct {
	askDue  bool  // it is asked with the next flush
	askedAt int64 // the last time
	since   int64 // when it was asked first, of questions close together that it has not answered
	at      int64 // when it proved it last
}

// proofPatience in Timing.Retry is how long a proof counts, and how long a member is waited
// for rather than another. After that it is asked seldom: each time it reads the record.
const (
	proofPatience = answerPatience
	askSeldom     = 10
)

// reachesArbiter says whether a member that is to be handed the partition has shown that it
// reaches the arbiter, and asks it if not.
func (r *Replica) reachesArbiter(p *peer) bool {
	a, retry := &p.arbiter, int64(r.opt.Timing.Retry)
	if a.at != 0 && r.now.Mono-a.at <= proofPatience*retry || mutant(mutHandOverUnproved) {
		return true
	}
	if a.since == 0 || r.now.Mono-a.askedAt > proofPatience*retry {
		a.since = r.now.Mono
	}
	every := retry
	if r.now.Mono-a.since > proofPatience*retry {
		every *= askSeldom
	}
	if a.askedAt == 0 || r.now.Mono-a.askedAt >= every {
		a.askDue, a.askedAt = true, r.now.Mono
	}
	return false
}

// seemsCutOff says whether a member has been asked for long and does not reach the arbiter.
// It goes on being asked.
func (r *Replica) seemsCutOff(p *peer) bool {
	a, patience := &p.arbiter, proofPatience*int64(r.opt.Timing.Retry)
	return a.since != 0 && r.now.Mono-a.askedAt <= patience && r.now.Mono-a.since > patience && !r.reachesArbiter(p)
}

// tellCutOff says once that this primary is to stop and its copies do not reach the arbiter.
func (r *Replica) tellCutOff() {
	if !r.leaving || r.primary.hand.toldNobody {
		return
	}
	names := ""
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.inSync() && r.seemsCutOff(p) {
			names += " " + p.ID
		}
	}
	if names != "" {
		r.primary.hand.toldNobody = true
		r.alarm(AlarmNoTarget, fmt.Sprintf("%s is to stop, and what could take the partition does not reach the arbiter:%s; it serves on until that does", r.self.ID, names))
	}
}

// arbiterProved takes in what an acknowledgement says.
func (r *Replica) arbiterProved(p *peer, flags uint8) {
	if flags&wire.FlagReachesArbiter != 0 {
		p.arbiter.at, p.arbiter.since = r.now.Mono, 0
	}
}

// arbiterFlags is what an acknowledgement says about the arbiter.
func (r *Replica) arbiterFlags() uint8 {
	if r.backup.arbiterAsked && r.freshAt != 0 && r.now.Mono-r.freshAt <= int64(r.opt.Timing.Retry) {
		r.backup.arbiterAsked = false
		return wire.FlagReachesArbiter
	}
	return 0
}
