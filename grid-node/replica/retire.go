package replica

import "fmt"

// retireDraining lets members go that are about to stop, or that made another state of the
// log. They acknowledge until
// the arbiter has accepted the configuration without them, so nothing waits: not
// for a reset connection, not for a lease. One that is told to stop at once lets
// nobody go: it may be the only one left then.
func (r *Replica) retireDraining() {
	if r.stopping || r.primary.suspended || r.primary.hand.to != 0 || r.prop.active() || r.now.Mono < r.primary.admitAt {
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
	members, names, why := []Member{r.self}, "", "about to stop"
	for i := len(r.primary.peers) - 1; i >= 0; i-- {
		switch p := &r.primary.peers[i]; {
		case p.inSync() && r.leavesFirst(p) && !r.gone(p):
			names += " " + p.ID
			if p.differs {
				why = "to learn the log again"
			}
		case p.inSync():
			members = append(members, p.Member)
		case p.differs: // a learner, and no admission is under way
			r.release(p, "the state that it made of the log is another")
		case p.draining: // a learner, and no admission is under way
			r.release(p, "you are about to stop")
		}
	}
	if names == "" {
		return
	}
	r.alarm(AlarmRetired, fmt.Sprintf("%s:%s; proposing epoch %d without", why, names, r.epoch+1))
	r.propose(purposeRetire, members)
}

// leavesFirst says whether a peer is about to stop and need not outlast this
// primary, or is to learn the log again, which a primary that leaves does not wait for.
func (r *Replica) leavesFirst(p *peer) bool {
	return p.differs && !r.leaving || p.draining && (!r.leaving || r.ranksBefore(r.self.Pod(), p.Pod()))
}
