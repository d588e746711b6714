package replica

// Other members may learn of a primary's proposal before it does: the arbiter's answer
// takes time, and a watch is another path. If they acted on it, the primary would wait in
// the old epoch for acknowledgements that are no longer given there until it learns: a
// removed member discards itself, one that stays ignores the old epoch. So they hold the
// record, and continue in the old epoch as if their watch were slow, until the primary has
// notified them, or sends in the new epoch, or is silent.
//
// A hand-over is held only for a limited time: it is the one change by which a primary
// that no longer reaches the arbiter must lose its role.

// isOwnChange reports whether c is the next configuration, of the same primary.
func (r *Replica) isOwnChange(c *Config) bool {
	return r.epoch != 0 && c.Epoch == r.epoch+1 && c.Primary.Boot == r.cfg.Primary.Boot && c.Lineage == r.cfg.Lineage
}

// allHeard reports whether every member has acknowledged in this epoch. One that has not
// does not hold the change after it: for that one it is not the next.
func (r *Replica) allHeard() bool {
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.inSync() && !p.knowsEpoch && !mutant(mutChangeUnheard) {
			return false
		}
	}
	return true
}

// hold keeps the next configuration until the primary announces it. It returns false where
// no primary would.
func (r *Replica) hold(c *Config) bool {
	b := &r.backup
	if r.role == RoleLearner && !b.accepted {
		return false
	}
	if b.held == nil {
		b.held, b.heldAt = c, r.now.Mono
		r.releaseHeld()
	}
	return true
}

// releaseHeld adopts a configuration that the primary did not announce: it died, or it is
// unreachable, or its announcement was lost; or, with a hand-over, it does not reach the
// arbiter.
func (r *Replica) releaseHeld() {
	b, t := &r.backup, &r.opt.Timing
	if b.held == nil {
		return
	}
	own := r.isOwnChange(b.held)
	silent := r.now.Mono-b.heardAt > int64(t.Lease)
	late := !own && r.now.Mono-b.heldAt > answerPatience*int64(t.Retry)
	if !b.primaryDown && !silent && !late && !r.spoken(b.held.Epoch) && (r.role != RoleLearner || b.accepted) {
		return
	}
	former, was, spoken := r.cfg.Primary.Boot, r.backup, r.spoken(b.held.Epoch)
	r.untold(b.held)
	r.adopt(b.held)
	switch p := r.peer(former); {
	case p != nil && was.primaryDown && r.role == RolePrimary:
		p.reset()
		r.dropSilent()
	case own && r.role == RoleBackup && !spoken: // it stayed silent
		r.backup.heardAt, r.backup.primaryDown, r.backup.downAt = was.heardAt, was.primaryDown, was.downAt
	}
}

// spoken reports whether a member sends in this epoch, or a later one. Only repeated
// frames count: a single old one may have been wrong.
func (r *Replica) spoken(epoch uint64) bool {
	return r.backup.ahead >= epoch && r.now.Mono-r.backup.aheadAt <= int64(r.opt.Timing.Lease)
}

// spokeOf notes that another process sent in a later epoch, and has this replica follow.
// Only a member's frame releases a held configuration; any other causes a read of the
// arbiter.
func (r *Replica) spokeOf(epoch, from uint64) {
	every := int64(r.opt.Timing.Retry)
	if r.cfg.Has(from) {
		r.backup.ahead, r.backup.aheadAt, r.backup.aheadFrom = epoch, r.now.Mono, from
		r.releaseHeld()
		every = int64(r.opt.Timing.Beacon) // the partition may wait for this replica
	}
	if epoch > r.epoch {
		r.readConfigEvery(every)
	}
}
