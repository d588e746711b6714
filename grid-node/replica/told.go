package replica

import "fmt"

// A peer's announcement of a configuration is not the arbiter's. A frame may be from an
// impostor, or from a faulty process: on a peer's announcement alone no replica becomes a
// primary, leaves a configuration, skips an epoch or discards its log. It reads the
// arbiter instead. An announcement only releases a change that the arbiter has shown
// already (held).
//
// One class of changes need not wait, so that a member which does not reach the API server
// keeps its place in a healthy group: the next epoch, announced by the present primary, of
// the same lineage, in which this replica stays a copy and another process, a member of
// the present configuration and of the last one that the arbiter showed, is the primary.
// It is followed at once and the arbiter is read. If it does not know such a change the
// replica reverts to the arbiter's record. That is safe, because while it followed
//   - it kept its log, and added to it only what it would have accepted from the same
//     sender in the previous epoch;
//   - it acknowledged nothing in the epoch of the arbiter, so nothing was committed
//     there without it, and no lease of its primary was extended;
//   - it was not the primary, so nothing was acknowledged to a client or read from it;
//   - its own proposal, a take-over, was rejected by the arbiter: the epoch does not follow.
//
// A record that was rolled back confirms nothing: from then on no announcement is
// followed, and what was followed without confirmation is reverted. Otherwise this replica
// and its primary, which restores the record, could mean two configurations by one number.
//
// Reverting is like waking after a pause. A forged announcement delays the orders of the
// partition until the arbiter answers, once per epoch: after that this replica ignores
// announcements in that epoch. Without an answer it is dropped for its silence, and
// rejoins like every dropped member.

// told is a configuration that is followed on its primary's announcement.
type told struct {
	known *Config // what the arbiter last showed; nil: cfg itself
	doubt bool    // the arbiter has shown another, perhaps read before the announcement
	false uint64  // the epoch with a false announcement, 0 if none
}

// takesWord reports whether a peer's announcement is enough for now.
func (r *Replica) takesWord(c *Config, from uint64) bool {
	if mutant(mutAdoptOnWord) {
		return r.role != RolePrimary || !c.Has(r.self.Boot)
	}
	was := r.cfg
	if known := r.told.known; known != nil && !known.names(&c.Primary) && !mutant(mutToldChain) {
		return false // an unconfirmed announcement names no one
	}
	return (r.role == RoleBackup || r.role == RoleLearner && r.backup.accepted) && from == was.Primary.Boot && c.Epoch == r.epoch+1 && c.Lineage == was.Lineage && c.Standby == was.Standby &&
		c.Has(r.self.Boot) && c.Primary.Boot != r.self.Boot && was.names(&c.Primary) && r.told.false != r.epoch && r.regressed == nil && !r.older
}

// names reports whether a process is in sync, as described.
func (c *Config) names(m *Member) bool {
	for i := range c.InSync {
		if c.InSync[i] == *m {
			return true
		}
	}
	return false
}

// followWord adopts the primary's announcement, and reads the arbiter.
func (r *Replica) followWord(c *Config) {
	known := r.told.known
	if known == nil {
		known = r.cfg
	}
	r.adoptAs(c, false)
	r.told = told{known: known}
	r.askConfig()
}

// observeTold compares the arbiter's record with the announcement. It returns true when it
// is handled completely.
func (r *Replica) observeTold(c *Config, fresh bool) bool {
	t := &r.told
	switch {
	case c.Epoch == r.epoch && c.ChangeID == r.cfg.ChangeID:
		t.known = nil
		r.journalConfig()
		return false
	case c.Epoch > r.epoch, c.Epoch < t.known.Epoch, c.Epoch == t.known.Epoch && c.ChangeID != t.known.ChangeID:
		return false // a later change, or a record that was rolled back
	case !fresh: // a watch may lag
		return true
	case !t.doubt:
		t.doubt = true
		r.askConfig()
		return true
	}
	r.observeSpec(c)
	r.unfollow(c)
	return true
}

// unfollow reverts from the announcement to c.
func (r *Replica) unfollow(c *Config) {
	known := r.told.known
	r.alarm(AlarmUntrue, fmt.Sprintf("the arbiter does not know epoch %d change %q, which primary %s announced; back to epoch %d", r.epoch, r.cfg.ChangeID, known.Primary.ID, c.Epoch))
	r.role = RoleLearner
	if known.Has(r.self.Boot) {
		r.role = RoleBackup
	}
	r.adopt(c)
	r.told.false = r.epoch
}

// The primary notifies a learner that its log is useless, or that it has lost its place.
// The learner discards it when the arbiter shows that it is not in sync. If its primary
// has just proposed it, it may get into the record after that: a forged notification costs
// that learner, as a crash would, and the primary drops it for its silence.

// giveUp asks the arbiter whether this learner may act on such a notification. It does not
// acknowledge until then, so it is not counted.
func (r *Replica) giveUp(why string) {
	b := &r.backup
	b.useless, b.uselessDoubt, b.accepted = why, false, false
	if mutant(mutDiscardOnWord) {
		r.useless()
		return
	}
	r.askConfig()
}

// confirmUseless handles an answer of the arbiter that shows the present epoch.
func (r *Replica) confirmUseless() {
	b := &r.backup
	switch {
	case b.useless == "" || r.role != RoleLearner:
	case !b.uselessDoubt:
		b.uselessDoubt = true // it may have been read before the notification
		r.askConfig()
	default:
		r.useless()
	}
}

// useless discards this learner's log. A draining one may exit.
func (r *Replica) useless() {
	b := &r.backup
	why := b.useless
	b.useless, b.accepted, b.counted = "", false, false
	if !r.leaving {
		r.restart(why)
	}
}
