package replica

// claim makes this replica the first primary of a partition that nobody has had
// yet. Pods of a shard start together; the preferred one goes first, so that
// primaries are spread, and the others only when it does not come.
func (r *Replica) claim() {
	if r.prop.active() || r.leaving {
		return
	}
	if r.now.Mono < r.claimAt {
		// Somebody else should have come by now; a watch can be silent.
		r.readConfigEvery(10 * int64(r.opt.Timing.Retry))
		return
	}
	r.propose(purposeClaim, []Member{r.self})
}
