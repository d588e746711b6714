package replica

// The larger mutants; see mutants.go. Never reached without the build tag.

// mutateShrink continues without the silent members, whatever the arbiter answers.
func (r *Replica) mutateShrink() {
	r.primary.suspended = false
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.inSync() && r.gone(p) {
			p.stage = stageUncounted
		}
	}
}

// mutateUnknown treats a change whose outcome is unknown as failed.
func (r *Replica) mutateUnknown() bool {
	switch purpose := r.prop.purpose; {
	case mutant(mutUnknownHandOverFailed) && purpose == purposeHandOver:
		r.endHandOver()
	case mutant(mutUnknownRetireFailed) && purpose == purposeRetire:
		r.primary.admitAt = r.now.Mono + 10*int64(r.opt.Timing.Retry)
	case mutant(mutUnknownAdmissionFailed) && purpose == purposeAdmit:
		for i := range r.primary.peers {
			if p := &r.primary.peers[i]; p.stage == stageCounted {
				p.stage = stageCatchingUp
			}
		}
		r.primary.admitAt = r.now.Mono + 10*int64(r.opt.Timing.Retry)
	case mutant(mutReturnToOldEpoch) && purpose == purposeTakeOver:
		r.role = RoleBackup
		r.followPrimary()
	case mutant(mutReturnToOldEpoch) && purpose == purposeShrink:
		r.primary.suspended = false
	default:
		return false
	}
	r.prop = proposal{}
	return true
}

// mutateEchoed returns the round that any member of the ack set has answered.
func (r *Replica) mutateEchoed() uint64 {
	round := uint64(0)
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.acks() {
			round = max(round, p.round)
		}
	}
	if r.copies() == 1 {
		return ^uint64(0)
	}
	return round
}
