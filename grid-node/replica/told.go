package replica

import "fmt"

// What a peer says of a configuration is not what the arbiter says. A frame may be of a
// process that is not who it says it is, or that has lost its mind: on a peer's word
// alone nobody becomes a primary, leaves a configuration, skips an epoch or throws its
// log away. Who hears of such a change asks the arbiter. One that the arbiter has shown
// already (held) is only released by the word.
//
// There is one class of changes that need not wait, so that a member which does not
// reach the API server keeps its place in a healthy group: the next epoch, told by the
// present primary, of the same lineage, in which this replica stays a copy and another
// process, a member of the present configuration and of the last one that the arbiter
// showed, is the primary. It is followed at once and the arbiter asked in the same moment. Should it know of no such change the
// replica goes back to what it shows. That is safe, because while it followed
//   - it kept its log, and added to it only what it would have taken from the same
//     sender in the epoch before;
//   - it acknowledged nothing in the epoch of the arbiter, so nothing was committed
//     there without it, and no lease of its primary was prolonged;
//   - it was not the primary, so nothing was acknowledged to a client or read from it;
//   - what it proposed, a take-over, the arbiter has refused: the epoch does not follow.
//
// A record that went back in time confirms nothing: from then on no word is followed, and
// what was followed and not confirmed before is taken back. Otherwise this replica and
// its primary, which puts the record right, could mean two configurations by one number.
//
// Going back is like waking after a pause. Who forges such a word holds up the orders of
// the partition until the answer of the arbiter is there, once per epoch: after it this
// replica takes nobody's word in that epoch. Without an answer it is dropped for its
// silence, and comes back as every member that was dropped.

// told is a configuration that is followed on the word of its primary.
type told struct {
	known *Config // what the arbiter last showed; nil: cfg itself
	doubt bool    // the arbiter has shown another; it may have been asked before the word came
	false uint64  // the epoch in which a word was not true, 0 if there was none
}

// takesWord says whether the word of a peer is enough for now.
func (r *Replica) takesWord(c *Config, from uint64) bool {
	if mutant(mutAdoptOnWord) {
		return r.role != RolePrimary || !c.Has(r.self.Boot)
	}
	was := r.cfg
	if known := r.told.known; known != nil && !known.names(&c.Primary) && !mutant(mutToldChain) {
		return false // what was told and not confirmed names nobody
	}
	return (r.role == RoleBackup || r.role == RoleLearner && r.backup.accepted) && from == was.Primary.Boot && c.Epoch == r.epoch+1 && c.Lineage == was.Lineage &&
		c.Has(r.self.Boot) && c.Primary.Boot != r.self.Boot && was.names(&c.Primary) && r.told.false != r.epoch && r.regressed == nil && !r.older
}

// names says whether a process is in sync, as it is described.
func (c *Config) names(m *Member) bool {
	for i := range c.InSync {
		if c.InSync[i] == *m {
			return true
		}
	}
	return false
}

// followWord adopts what the primary told, and asks the arbiter.
func (r *Replica) followWord(c *Config) {
	known := r.told.known
	if known == nil {
		known = r.cfg
	}
	r.adopt(c)
	r.told = told{known: known}
	r.askConfig()
}

// observeTold compares what the arbiter shows with what the primary told. It returns
// true when there is nothing more to be done with it.
func (r *Replica) observeTold(c *Config, fresh bool) bool {
	t := &r.told
	switch {
	case c.Epoch == r.epoch && c.ChangeID == r.cfg.ChangeID:
		t.known = nil
		return false
	case c.Epoch > r.epoch, c.Epoch < t.known.Epoch, c.Epoch == t.known.Epoch && c.ChangeID != t.known.ChangeID:
		return false // later news, or a record that went back
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

// unfollow goes back from what was told to c.
func (r *Replica) unfollow(c *Config) {
	known := r.told.known
	r.alarm(AlarmUntrue, fmt.Sprintf("the arbiter knows nothing of epoch %d change %q, which primary %s told of; back to epoch %d", r.epoch, r.cfg.ChangeID, known.Primary.ID, c.Epoch))
	r.role = RoleLearner
	if known.Has(r.self.Boot) {
		r.role = RoleBackup
	}
	r.adopt(c)
	r.told.false = r.epoch
}

// A learner is told by the primary that its log is of no use, or that its place is gone.
// It gives it up when the arbiter says that it is not in sync. One that its primary has
// just proposed may get into the record after that: who forges such a word costs that
// learner, as a crash would, and the primary drops it for its silence.

// giveUp asks the arbiter whether this learner may act on such a word. Meanwhile it
// acknowledges nothing, so nobody begins to count on it.
func (r *Replica) giveUp(why string) {
	b := &r.backup
	b.useless, b.uselessDoubt, b.accepted = why, false, false
	if mutant(mutDiscardOnWord) {
		r.useless()
		return
	}
	r.askConfig()
}

// confirmUseless is for an answer of the arbiter that shows the present epoch.
func (r *Replica) confirmUseless() {
	b := &r.backup
	switch {
	case b.useless == "" || r.role != RoleLearner:
	case !b.uselessDoubt:
		b.uselessDoubt = true // it may have been asked before the word came
		r.askConfig()
	default:
		r.useless()
	}
}

// useless gives up what this learner holds. One that leaves may end.
func (r *Replica) useless() {
	b := &r.backup
	why := b.useless
	b.useless, b.accepted, b.counted = "", false, false
	if !r.leaving {
		r.restart(why)
	}
}
