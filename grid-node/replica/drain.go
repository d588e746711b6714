package replica

import "fmt"

// There are two ways to stop. EventDrain leaves in good order: a primary serves
// on until it has handed over, a backup until it was retired. EventStop waits for
// nobody: admission ends, what was accepted is answered. Either ends with
// ActionDrained. Of a shard that is told to leave as a whole, the pod that
// ranks first stays until a new process has caught up: the data outlives the
// deletion of every pod.

// drain begins to leave.
func (r *Replica) drain() {
	r.leaving = true
	r.considerHandOver()
	r.backup.ackDue = r.role == RoleBackup // tells the primary
}

// stop ends admission.
func (r *Replica) stop() {
	r.leaving, r.stopping = true, true
	r.unpark()
}

// flushDrain reports once that the process may end.
func (r *Replica) flushDrain() {
	if !r.leaving || r.drained || !r.mayEnd() {
		return
	}
	r.drained = true
	r.out.add(Action{Kind: ActionDrained})
}

// mayEnd says whether nothing is lost and nobody waits when the process ends.
func (r *Replica) mayEnd() bool {
	switch r.role {
	case RolePrimary:
		if !r.stopping {
			r.lookForTarget()
		}
		last, _ := r.store.Last()
		return r.stopping && last == r.commit && r.primary.reads.empty() && r.primary.waits.empty()
	case RoleBackup, RoleFenced: // to be retired; it may be the only one that holds everything
		return r.stopping || mutant(mutBackupLeaves)
	case RoleLearner:
		return r.stopping || !r.backup.counted // an admission may have succeeded: wait to be let go, or taken in
	}
	return !r.prop.active() // holds nothing that anybody counts on; a claim may yet succeed
}

// lookForTarget says once that nobody can take the partition yet. In a grid with
// one copy nobody ever can.
func (r *Replica) lookForTarget() {
	if r.opt.MaxInSync == 1 && len(r.cfg.InSync) == 1 && r.isWanted(r.self.Pod()) {
		r.stop()
		return
	}
	h := &r.primary.hand
	if len(r.cfg.InSync) == 1 && !h.toldNobody && !r.prop.active() {
		h.toldNobody = true
		r.alarm(AlarmNoTarget, fmt.Sprintf("%s is to stop and holds the only copy; it serves on until another member is in sync", r.self.ID))
	}
}
