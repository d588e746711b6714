package replica

import "fmt"

// The invariants of docs/replication.md as far as one replica can check them. A broken one
// is a bug here, not a peer's fault: the partition stops. The cheap ones are always
// asserted, those that walk the log with the build tag invariants (logCheck); those about
// more than one replica are checked by the simulator.

// checkFlush asserts at every flush the invariants between two wake-ups.
func (r *Replica) checkFlush() {
	last, _ := r.store.Last()
	switch {
	case r.commit > last: // I2
		r.broken(fmt.Sprintf("committed %d, last is %d", r.commit, last))
	case r.commit != r.store.Committed(): // I8: subscribers read the store's prefix
		r.broken(fmt.Sprintf("committed %d, the store has %d", r.commit, r.store.Committed()))
	case !r.freedRight():
		r.broken(fmt.Sprintf("the log may be freed up to %d, committed is %d", r.mayFree, r.commit))
	case r.role == RolePrimary:
		r.checkPrimary(last)
	case r.role == RoleBackup && (r.cfg.Primary.Boot == r.self.Boot || !r.cfg.Has(r.self.Boot)): // I10
		r.broken("backup by role, not by configuration: " + r.cfg.String())
	}
	r.logged.check(r)
}

// freedRight: only committed entries are freed.
func (r *Replica) freedRight() bool {
	base, _ := r.store.Base()
	return base <= r.commit && r.mayFree <= r.commit
}

func (r *Replica) checkPrimary(last uint64) {
	if r.cfg.Primary.Boot != r.self.Boot { // I1
		r.broken("primary by role, not by configuration: " + r.cfg.String())
		return
	}
	for i := range r.cfg.InSync { // I3: inSync is a subset of the ack set
		m := &r.cfg.InSync[i]
		if m.Boot == r.self.Boot {
			continue
		}
		if p := r.peer(m.Boot); p == nil || !p.acks() {
			r.broken("in sync, not in the ack set: " + m.ID)
			return
		}
	}
	for i := range r.primary.peers {
		p := &r.primary.peers[i]
		switch {
		case p.synced && p.stored > last:
			r.broken(fmt.Sprintf("%s stores %d, last is %d", p.ID, p.stored, last))
		case p.inSync() && p.synced && p.knowsEpoch && p.stored < r.commit: // I2
			r.broken(fmt.Sprintf("%s is in sync and stores %d, committed is %d", p.ID, p.stored, r.commit))
		}
	}
}

// checkProposal asserts that a change may be proposed: the conditions that the arbiter
// cannot check.
func (r *Replica) checkProposal(why purpose, next *Config) bool {
	text := ""
	switch why {
	case purposeTakeOver: // I10, and nothing of the old epoch is accepted any more
		if r.role != RoleFenced || !r.cfg.Has(r.self.Boot) {
			text = "a take-over by a replica that is not in sync, or not fenced"
		}
	case purposeShrink: // I4
		if r.role != RolePrimary || !r.primary.suspended {
			text = "a member is to be dropped while orders are acknowledged"
		}
	case purposeAdmit: // I3, I10
		if p := r.peer(next.InSync[len(next.InSync)-1].Boot); p == nil || !p.acks() || p.stored < r.mustHave() {
			text = "a learner that is not in the ack set, or lacks committed entries"
		}
	case purposeRetire: // I12
		for i := range r.primary.peers {
			if p := &r.primary.peers[i]; p.inSync() && !p.draining && !p.differs && !next.Has(p.Boot) && len(next.InSync) < r.opt.Replicas {
				text = "removal of a member that does not leave, and a copy would be missing"
			}
		}
	case purposeHandOver:
		if p := r.peer(next.Primary.Boot); p == nil || !p.inSync() || len(next.InSync) != len(r.cfg.InSync) {
			text = "a hand-over to a replica that is not in sync, or that drops a member"
		}
	case purposePromote:
		if last, _ := r.store.Last(); r.role != RolePrimary || !r.cfg.Standby || r.commit < last {
			text = "a promotion of what is no standby, or has entries that are not committed"
		}
	case purposeDemote:
		if last, _ := r.store.Last(); r.role != RolePrimary || r.cfg.Standby || r.commit < last && !mutant(mutDemoteUndrained) {
			text = "a demotion of a standby, or with entries that are not committed"
		}
	case purposeAcceptLoss: // I5
		if r.acceptLoss != r.epoch {
			text = "a new lineage without an accepted loss"
		}
	}
	if text != "" {
		r.broken("proposing " + next.String() + ": " + text)
	}
	return text == ""
}

func (r *Replica) broken(text string) {
	r.alarm(AlarmInvariant, text)
	r.restart("invariant broken: " + text)
}
