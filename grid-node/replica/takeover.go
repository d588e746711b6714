package replica

import "fmt"

// watchPrimary takes over from a primary that is gone: silent for the grace
// time, or its connection was reset and no lease of it can be alive. From here
// on this replica takes nothing of the old epoch any more, whatever becomes of
// the proposal: that is what makes a later answer of the arbiter safe.
func (r *Replica) watchPrimary() {
	b, t := &r.backup, &r.opt.Timing
	silent := r.now.Mono - b.heardAt
	due := silent > int64(t.Grace)
	if b.primaryDown {
		// The lease counts from when the primary sent what was last heard
		// here, so from now it ends sooner; an eighth is for clocks that drift.
		due = due || !b.leased || silent > int64(t.Lease+t.Lease/8)
	}
	if !due || r.prop.active() {
		return
	}
	r.role = RoleFenced
	r.alarm(AlarmTakeOver, fmt.Sprintf("primary %s of epoch %d is silent for %d ms (connection reset: %t), proposing epoch %d", r.cfg.Primary.ID, r.epoch, silent/1e6, b.primaryDown, r.epoch+1))
	r.propose(purposeTakeOver, []Member{r.self})
}
