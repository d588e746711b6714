package replica

import "fmt"

// Decisions of an administrator: that the loss of data is accepted, and which of two
// histories of the arbiter is the true one. The decision comes with the record and is
// executed here.

// suspectDataLoss reports once per epoch that this learner waits for a process that cannot
// return: every in-sync member was a former process of its own pod.
func (r *Replica) suspectDataLoss() {
	if r.lossTold == r.epoch {
		return
	}
	for i := range r.cfg.InSync {
		if r.cfg.InSync[i].Pod() != r.self.Pod() {
			return
		}
	}
	r.lossTold = r.epoch
	r.alarm(AlarmLossSuspected, fmt.Sprintf("the only in-sync member was %s, a former process of this pod; no replica is promoted without its log", r.cfg.Primary.ID))
}

// acceptDataLoss begins a new lineage with this learner's log, if an administrator
// accepted the loss of the present epoch and its primary is silent. A learner that holds a
// part of the log goes first. From here on it ignores the old epoch.
func (r *Replica) acceptDataLoss() bool {
	if r.acceptLoss != r.epoch || r.leaving || r.prop.active() {
		return false
	}
	wait := int64(r.opt.Timing.Grace)
	if last, _ := r.store.Last(); last == 0 {
		wait *= 4
	}
	if r.now.Mono-r.backup.heardAt < wait {
		return false
	}
	r.role = RoleFenced
	last, _ := r.store.Last()
	r.alarm(AlarmLossAccepted, fmt.Sprintf("the loss of epoch %d is accepted; beginning lineage %d with %d entries", r.epoch, r.cfg.Lineage+1, last))
	r.propose(purposeAcceptLoss, []Member{r.self})
	return true
}

// reassertConfig overwrites a rolled-back record with the configuration known here, if an
// administrator named its change id as the true one. The primary does it, or a backup that
// has left its epoch to take over. The record's epoch rises by one at a time, so this
// continues until it is above every epoch seen before.
func (r *Replica) reassertConfig() {
	was, p := r.regressed, &r.prop
	if was == nil || r.reassert == "" || r.reassert != r.cfg.ChangeID || r.role != RolePrimary && r.role != RoleFenced || r.primary.hand.accepted != nil {
		return
	}
	members := r.cfg.InSync
	switch p.purpose {
	case 0:
	case purposeTakeOver: // cannot be accepted any more; the climb ends with its proposal
		members = p.next.InSync
	case purposeShrink: // nor can this, and a silent member may just not know this epoch: it learns of the climb
		if mutant(mutClimbShrinks) {
			members = p.next.InSync
		}
	case purposeReassert:
		if p.waiting {
			return
		}
		members = p.members
	case purposeAdmit, purposeRetire, purposeHandOver, purposePromote, purposeDemote: // the same, and they can be proposed again
		if r.primary.hand.to != 0 {
			r.endHandOver()
		}
	default:
		return
	}
	next := &Config{Epoch: was.Epoch + 1, Lineage: was.Lineage, Primary: r.self, InSync: members, Standby: r.cfg.Standby, Term: r.cfg.Term}
	switch {
	case was.Epoch == 0:
		next.Epoch, next.Lineage = firstClaim(was.Restore)
		next.InSync = []Member{r.self}
	case !was.Has(r.self.Boot) || was.Lineage < r.cfg.Lineage:
		next.Lineage++
	}
	r.changes++
	next.ChangeID = r.changeID()
	r.prop = proposal{purpose: purposeReassert, next: next, members: members}
	r.attempt()
}

// reasserted handles one step of the climb.
func (r *Replica) reasserted(now *Config) {
	if now.Epoch <= r.epoch || now.Lineage < r.cfg.Lineage {
		r.regressed = now
		r.reassertConfig()
		return
	}
	r.alarm(AlarmReasserted, fmt.Sprintf("the record is at epoch %d again; it had been rolled back", now.Epoch))
	if !mutant(mutSpecOutlives) {
		r.specVersion = "" // a restored store counts versions again: the spec of this one is unknown
	}
	r.observe(now, true)
	for i := range r.primary.peers { // a member that could not follow while the record was wrong answers now, or is dropped
		r.primary.peers[i].heardAt = r.now.Mono
	}
}
