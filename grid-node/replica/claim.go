package replica

// claim makes this replica the first primary of an unclaimed partition. Pods of a shard
// start together; the preferred one goes first, so that primaries are spread, and the
// others only when it does not claim. A record recreated without its status looks the
// same, while processes that hold every order may be alive.
func (r *Replica) claim() {
	if r.prop.active() || r.leaving {
		return
	}
	if r.copied && !mutant(mutClaimsCopies) {
		if !r.toldCopy {
			r.toldCopy = true
			r.alarm(AlarmRegressed, "the record was recreated without its status, which names the holders of orders: it is not claimed until an administrator names the true change")
		}
		r.readConfigEvery(10 * int64(r.opt.Timing.Retry))
		return
	}
	if !r.isWanted(r.self.Pod()) && !mutant(mutUnwantedClaims) {
		r.readConfigEvery(10 * int64(r.opt.Timing.Retry)) // until the record names this pod, or has been claimed
		return
	}
	if !r.mayClaim() {
		r.readConfigEvery(10 * int64(r.opt.Timing.Retry)) // another pod may have loaded it first
		return
	}
	if r.now.Mono < r.claimAt {
		// Another pod should have claimed by now; a watch can be silent.
		r.readConfigEvery(10 * int64(r.opt.Timing.Retry))
		return
	}
	if !r.specKnown() {
		return
	}
	r.propose(purposeClaim, []Member{r.self})
}
