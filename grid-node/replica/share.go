package replica

// SetShare sets this replica's part of the limits that all replicas of the process share:
// InFlightBytes, PendingReadBytes, LearnerBytes, LearnerRate and LearnerBatch, all
// positive. Requests already beyond a lowered limit continue; a raised rate applies at
// once.
func (r *Replica) SetShare(of Limits) {
	l := &r.opt.Limits
	if of.LearnerRate > l.LearnerRate {
		for i := range r.primary.peers {
			p := &r.primary.peers[i]
			p.feedAt = min(p.feedAt, r.now.Mono)
		}
	}
	l.InFlightBytes, l.PendingReadBytes = of.InFlightBytes, of.PendingReadBytes
	l.LearnerBytes, l.LearnerRate, l.LearnerBatch = of.LearnerBytes, of.LearnerRate, of.LearnerBatch
}
