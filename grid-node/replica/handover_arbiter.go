package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A process that does not reach the arbiter cannot take a partition over: no process leads
// on a peer's announcement. So a primary first asks the target of a hand-over, which reads
// the record and reports that with its acknowledgements. Until then the primary keeps
// serving, and its copies stay.

// arbiterProof is what a primary knows about a member's connection to the arbiter.
type arbiterProof struct {
	askDue  bool  // asked with the next flush
	askedAt int64 // when last asked
	since   int64 // when the current series of unanswered requests began
	at      int64 // when it last proved it
}

// proofPatience in Timing.Retry is how long a proof is valid, and how long a member is
// waited for before another is preferred. After that it is asked rarely: each time it
// reads the record.
const (
	proofPatience = answerPatience
	askSeldom     = 10
)

// reachesArbiter reports whether a hand-over target has proved that it reaches the
// arbiter, and asks it if not.
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

// seemsCutOff reports whether a member has been asked for long and does not reach the
// arbiter. It keeps being asked.
func (r *Replica) seemsCutOff(p *peer) bool {
	a, patience := &p.arbiter, proofPatience*int64(r.opt.Timing.Retry)
	return a.since != 0 && r.now.Mono-a.askedAt <= patience && r.now.Mono-a.since > patience && !r.reachesArbiter(p)
}

// tellCutOff reports once that this primary should stop and its copies do not reach the
// arbiter.
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
		r.alarm(AlarmNoTarget, fmt.Sprintf("%s should stop, and no target of a hand-over reaches the arbiter:%s; it keeps serving until one does", r.self.ID, names))
	}
}

// arbiterProved handles the arbiter flag of an acknowledgement.
func (r *Replica) arbiterProved(p *peer, flags uint8) {
	if flags&wire.FlagReachesArbiter != 0 {
		p.arbiter.at, p.arbiter.since = r.now.Mono, 0
	}
}

// arbiterFlags returns the arbiter flag of an acknowledgement.
func (r *Replica) arbiterFlags() uint8 {
	if r.backup.arbiterAsked && r.freshAt != 0 && r.now.Mono-r.freshAt <= int64(r.opt.Timing.Retry) {
		r.backup.arbiterAsked = false
		return wire.FlagReachesArbiter
	}
	return 0
}
