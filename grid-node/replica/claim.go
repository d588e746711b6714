package replica

// claim makes this replica the first primary of a partition that nobody has had
// yet. Pods of a shard start together; the preferred one goes first, so that
// primaries are spread, and the others only when it does not come. A record that was made
// again looks the same without its status, while processes that hold every order may live.
func (r *Replica) claim() {
	if r.prop.active() || r.leaving {
		return
	}
	if r.copied && !mutant(mutClaimsCopies) {
		if !r.toldCopy {
			r.toldCopy = true
			r.alarm(AlarmRegressed, "the record was made again without its status: who holds orders does not stand in it, so it is not claimed until a person says which change is the true one")
		}
		r.readConfigEvery(10 * int64(r.opt.Timing.Retry))
		return
	}
	if !r.isWanted(r.self.Pod()) && !mutant(mutUnwantedClaims) {
		r.readConfigEvery(10 * int64(r.opt.Timing.Retry)) // until the record names this pod, or has been claimed
		return
	}
	if r.now.Mono < r.claimAt {
		// Somebody else should have come by now; a watch can be silent.
		r.readConfigEvery(10 * int64(r.opt.Timing.Retry))
		return
	}
	if !r.specKnown() {
		return
	}
	r.propose(purposeClaim, []Member{r.self})
}
