package replica

import "fmt"

// gone reports whether a peer must be dropped: its connection was reset, it was silent for
// a lease, or its history differs.
func (r *Replica) gone(p *peer) bool {
	return p.fault != faultNone || r.now.Mono-p.heardAt > int64(r.opt.Timing.Lease)
}

// dropSilent drops peers that are gone. A learner is just removed. For a member of the
// configuration the primary stops acknowledging at once and continues only when the
// arbiter has accepted a configuration without it: until then the member may have taken
// over.
func (r *Replica) dropSilent() {
	lost := false
	for i := len(r.primary.peers) - 1; i >= 0; i-- {
		p := &r.primary.peers[i]
		switch {
		case !r.gone(p):
		case p.inSync():
			lost = true
		case !r.admitting(p.Boot): // a pending admission may still succeed: then it is a member
			r.dropPeer(p.Boot)
		}
	}
	if lost && !r.prop.active() && r.primary.hand.accepted == nil {
		r.shrink()
	}
}

func (r *Replica) shrink() {
	members, names, loss := []Member{r.self}, "", Loss{}
	for i := range r.primary.peers {
		switch p := &r.primary.peers[i]; {
		case !p.inSync():
		case r.gone(p):
			names += " " + p.ID
			loss.Silent, loss.Reset = max(loss.Silent, r.now.Mono-p.heardAt), loss.Reset || p.fault == faultReset
		default:
			members = append(members, p.Member)
		}
	}
	r.primary.suspended = true
	if mutant(mutShrinkKeepsAcking) {
		r.mutateShrink()
	}
	r.alarm(AlarmMemberDropped, fmt.Sprintf("no heartbeat from%s, proposing epoch %d without", names, r.epoch+1))
	r.proposeAfter(loss, purposeShrink, members)
}

// admitting reports whether a proposal that admits this learner is pending.
func (r *Replica) admitting(boot uint64) bool {
	return r.prop.active() && r.prop.next.Has(boot)
}
