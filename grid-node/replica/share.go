package replica

// SetShare takes over those of the limits that are this replica's part of what the
// process has for all of its replicas: InFlightBytes, PendingReadBytes, LearnerBytes and
// LearnerRate, all positive. What is beyond a lower limit already goes on.
func (r *Replica) SetShare(of Limits) {
	l := &r.opt.Limits
	l.InFlightBytes, l.PendingReadBytes = of.InFlightBytes, of.PendingReadBytes
	l.LearnerBytes, l.LearnerRate = of.LearnerBytes, of.LearnerRate
}
