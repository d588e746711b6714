package replica

import "fmt"

// watchPrimary takes over from a primary that is gone: silent for the grace time, or its
// connection was reset and no lease of it can be valid. From here on this replica ignores
// the old epoch, whatever the outcome of the proposal: that is what makes a later answer
// of the arbiter safe.
func (r *Replica) watchPrimary() {
	b := &r.backup
	r.releaseHeld()
	if r.role != RoleBackup || r.prop.active() || b.held != nil {
		return
	}
	silent, fenced := r.vitals.fence(b.heardAt, b.leased, b.primaryDown, r.now.Mono)
	if !fenced {
		return
	}
	r.role = RoleFenced
	r.alarm(AlarmTakeOver, fmt.Sprintf("primary %s of epoch %d is silent for %d ms (connection reset: %t), proposing epoch %d", r.cfg.Primary.ID, r.epoch, silent/1e6, b.primaryDown, r.epoch+1))
	r.proposeAfter(Loss{Silent: silent, Reset: b.primaryDown}, purposeTakeOver, []Member{r.self})
}
