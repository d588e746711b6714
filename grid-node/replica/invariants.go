package replica

import "fmt"

// checkPrimary asserts at every flush what must always hold. A broken invariant
// is a bug here, not a peer's fault: the partition stops rather than goes on
// with it.
func (r *Replica) checkPrimary() {
	last, _ := r.store.Last()
	switch {
	case r.commit > last:
		r.broken(fmt.Sprintf("committed %d, last is %d", r.commit, last))
	case r.cfg.Primary.Boot != r.self.Boot:
		r.broken("primary by role, not by configuration: " + r.cfg.String())
	case r.commit != r.store.Committed():
		r.broken(fmt.Sprintf("committed %d, the store says %d", r.commit, r.store.Committed()))
	}
	for i := range r.cfg.InSync { // I3: inSync is a subset of the ack set
		m := &r.cfg.InSync[i]
		if m.Boot == r.self.Boot {
			continue
		}
		if p := r.peer(m.Boot); p == nil || !p.acks {
			r.broken("in sync, not in the ack set: " + m.ID)
			return
		}
	}
	for i := range r.primary.peers { // I2: what is committed, everybody in sync has
		if p := &r.primary.peers[i]; p.inSync && p.synced && p.stored > last {
			r.broken(fmt.Sprintf("%s stores %d, last is %d", p.ID, p.stored, last))
		}
	}
}

func (r *Replica) broken(text string) {
	r.alarm(AlarmInvariant, text)
	r.restart("invariant broken: " + text)
}
