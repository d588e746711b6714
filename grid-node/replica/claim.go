package replica

// claim makes this replica the first primary of a partition that nobody has had
// yet. Pods of a shard start together; the preferred one goes first, so that
// primaries are spread, and the others only when it does not come.
func (r *Replica) claim() {
	if r.prop.active() || r.now.Mono < r.claimAt {
		return
	}
	r.propose(purposeClaim, []Member{r.self})
}
