package replica

// SetShare takes over those of the limits that are this replica's part of what the
// process has for all of its replicas: InFlightBytes, PendingReadBytes, LearnerBytes,
// LearnerRate and LearnerBatch, all positive. What is beyond a lower limit already goes on; a higher rate
// counts at once.
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
