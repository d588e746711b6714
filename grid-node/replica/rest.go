package replica

import "math"

// A node with many partitions has most of them at rest: nothing is in flight, all other
// members were heard recently, and only their silence could change anything. Such a
// replica skips most of its ticks. The first event of any other kind ends the rest, as
// does a member that is a beacon late: from then on every tick counts, so silence is
// detected as early as otherwise.

// lateBy is how late the heartbeat of a member at rest may be, in beacons. A replica rests
// for at most a third of the lease: a member that falls silent right after a tick is seen
// to be late by the next one, long before that counts.
const lateBy = 2

// TickDue reports whether a tick at this time can have an effect. Otherwise it need not be
// passed to Step.
func (r *Replica) TickDue(now int64) bool { return now >= r.restTill }

// rest decides, at the end of a tick, when the next one is due.
func (r *Replica) rest() {
	r.restTill = 0
	if r.opt.Rest && r.atRest() {
		t := &r.opt.Timing
		r.restTill = r.now.Mono + min(int64(t.Lease)/3, int64(t.Grace)/4)
		if mutant(mutRestForEver) {
			r.restTill = math.MaxInt64
		}
	}
}

func (r *Replica) atRest() bool {
	last, _ := r.store.Last()
	base, _ := r.store.Base()
	if last != r.commit || !r.journalAtRest() || r.heir.active || r.mayFree > base || r.prop.active() || r.leaving || r.older || r.told.known != nil || r.regressed != nil || r.execs != nil && r.executionDue() || r.functionsDue() || r.lapsesWait() || r.regionsDue() || r.profileDue() {
		return false
	}
	switch r.role {
	case RolePrimary:
		return r.primaryAtRest()
	case RoleBackup:
		b := &r.backup
		return b.redirectAt == 0 && b.held == nil && b.useless == "" && !b.primaryDown && !r.spoken(r.epoch+1) && r.heardLately(b.heardAt)
	}
	return false
}

func (r *Replica) primaryAtRest() bool {
	p := &r.primary
	switch {
	case p.suspended, p.hand.to != 0, !p.reads.empty(), !p.waits.empty(), len(r.parked) > 0:
		return false
	case r.prefersOther(), !r.isWanted(r.self.Pod()):
		return false // it is about to hand over
	case len(r.cfg.InSync) != len(p.peers)+1, r.surplus() != nil:
		return false // a copy is being added or removed
	}
	for i := range p.peers {
		o := &p.peers[i]
		if !o.inSync() || !o.synced || !o.knowsEpoch || o.tellConfig || o.draining || o.differs || o.sent != o.stored || r.awaited(o) || !r.heardLately(o.heardAt) {
			return false
		}
	}
	return true
}

// heardLately reports whether a heartbeat is at most a beacon late.
func (r *Replica) heardLately(at int64) bool {
	return r.now.Mono-at <= lateBy*int64(r.opt.Timing.Beacon)
}
