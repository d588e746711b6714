package replica

import "fmt"

// retireDraining removes members that are about to stop, or whose state differs. They
// acknowledge until the arbiter has accepted the configuration without them, so nothing
// waits: not for a reset connection, not for a lease. A primary that must stop at once
// releases learners only: it may be the only member left without the others.
func (r *Replica) retireDraining() {
	if r.primary.suspended || r.primary.hand.to != 0 || r.prop.active() || r.now.Mono < r.primary.admitAt {
		return
	}
	if r.stopping {
		r.releaseLearners()
		r.releaseSurplus()
		return
	}
	due := false
	for i := range r.primary.peers {
		due = due || r.primary.peers[i].draining || r.primary.peers[i].differs
	}
	if !due {
		r.retireSurplus()
		return
	}
	r.releaseLearners()
	if !r.allHeard() {
		return
	}
	members, names, why := []Member{r.self}, "", "about to stop"
	for i := len(r.primary.peers) - 1; i >= 0; i-- {
		switch p := &r.primary.peers[i]; {
		case p.inSync() && r.leavesFirst(p) && !r.gone(p):
			names += " " + p.ID
			if p.differs {
				why = "to relearn the log"
			}
		case p.inSync():
			members = append(members, p.Member)
		}
	}
	if names == "" {
		return
	}
	r.alarm(AlarmRetired, fmt.Sprintf("%s:%s; proposing epoch %d without", why, names, r.epoch+1))
	r.propose(purposeRetire, members)
}

const leavingText = "you are about to stop"

// releaseLearners releases learners that are about to stop, or whose state differs. No
// admission is in progress.
func (r *Replica) releaseLearners() {
	for i := len(r.primary.peers) - 1; i >= 0; i-- {
		switch p := &r.primary.peers[i]; {
		case p.inSync():
		case p.differs:
			r.release(p, "its state after the log differs")
		case p.draining:
			r.release(p, leavingText)
		}
	}
}

// leavesFirst reports whether a peer is about to stop and need not outlast this primary,
// or must relearn the log, which a leaving primary does not wait for.
func (r *Replica) leavesFirst(p *peer) bool {
	return p.differs && !r.leaving || p.draining && (!r.leaving || r.ranksBefore(r.self.Pod(), p.Pod()))
}
