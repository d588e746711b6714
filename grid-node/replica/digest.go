package replica

// StateDigest is the digest of the state that the log led to.
func (r *Replica) StateDigest() uint64 { return r.live.Digest() }

// BaseDigest is the digest of the state that the freed entries led to: what a replica had
// when it had stored the last of them.
func (r *Replica) BaseDigest() uint64 { return r.base.Digest() }

// DigestsHold reports whether both digests are of what is there. It walks over all of it.
func (r *Replica) DigestsHold() bool {
	return r.live.Digest() == r.live.Recount() && r.base.Digest() == r.base.Recount()
}
