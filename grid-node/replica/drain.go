package replica

import "fmt"

// There are two ways to stop. EventDrain is graceful: a primary serves until it has handed
// over, a backup until it was retired. EventStop does not wait: admission ends, accepted
// requests are answered. Either ends with ActionDrained. When a whole shard is drained,
// the pod that ranks first stays until a new process has caught up: the data outlives the
// deletion of every pod.

// drain begins a graceful stop.
func (r *Replica) drain() {
	r.leaving = true
	r.considerHandOver()
	r.backup.ackDue = r.role == RoleBackup // notify the primary
}

// stop ends admission.
func (r *Replica) stop() {
	r.leaving, r.stopping = true, true
	r.unpark()
}

// flushDrain reports once that the process may exit.
func (r *Replica) flushDrain() {
	if !r.leaving || r.drained || !r.mayEnd() {
		return
	}
	r.drained = true
	r.out.add(Action{Kind: ActionDrained})
}

// mayEnd reports whether the process can exit without losing data or pending requests.
func (r *Replica) mayEnd() bool {
	switch r.role {
	case RolePrimary:
		if !r.stopping {
			r.lookForTarget()
		}
		last, _ := r.store.Last()
		return r.stopping && last == r.commit && r.primary.reads.empty() && r.primary.waits.empty()
	case RoleFenced:
		return r.stopping || r.heir.active && !r.prop.active() || mutant(mutBackupLeaves) // the journal of an heir stays
	case RoleBackup: // must be retired; it may be the only complete copy
		return r.stopping || mutant(mutBackupLeaves)
	case RoleLearner:
		return r.stopping || !r.backup.counted // an admission may have succeeded: wait to be released, or admitted
	}
	return !r.prop.active() // no data at stake, except that a claim may yet succeed
}

// lookForTarget reports once that there is no target for a hand-over yet. In a grid with
// one copy there never is.
func (r *Replica) lookForTarget() {
	if r.opt.MaxInSync == 1 && len(r.cfg.InSync) == 1 && r.isWanted(r.self.Pod()) {
		r.stop()
		return
	}
	h := &r.primary.hand
	if len(r.cfg.InSync) == 1 && !h.toldNobody && !r.prop.active() {
		h.toldNobody = true
		r.alarm(AlarmNoTarget, fmt.Sprintf("%s should stop and holds the only copy; it keeps serving until another member is in sync", r.self.ID))
	}
}
