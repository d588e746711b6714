package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// digest compares what the primary made of the log with what is here.
func (r *Replica) digest(frame []byte) error {
	var m wire.Digest
	if err := wire.DecodeDigest(frame, &m); err != nil || !r.fromPrimary(&m.PeerHead) {
		return err
	}
	seq, hash := r.store.Last()
	if own := r.live.Digest(); m.Seq == seq && m.Hash == hash && m.Form == machine.DigestForm && m.State != own {
		r.alarm(AlarmDiverged, fmt.Sprintf("the log up to entry %d makes state %016x here, and %016x of %s", seq, own, m.State, r.cfg.Primary.ID))
	}
	return nil
}

// StateDigest is the digest of the state that the log led to.
func (r *Replica) StateDigest() uint64 { return r.live.Digest() }

// BaseDigest is the digest of the state that the freed entries led to: what a replica had
// when it had stored the last of them.
func (r *Replica) BaseDigest() uint64 { return r.base.Digest() }

// DigestsHold reports whether both digests are of what is there. It walks over all of it.
func (r *Replica) DigestsHold() bool {
	return r.live.Digest() == r.live.Recount() && r.base.Digest() == r.base.Recount()
}
