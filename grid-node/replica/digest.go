package replica

// StateDigest is the digest of the state that is a function of the log.
func (r *Replica) StateDigest() uint64 { return r.live.Digest() }
