package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Equal logs are equal states. A primary announces the digest of its state periodically,
// and a replica with another state after the same entries answers with its own. Neither
// knows which of the two is wrong.

// mark is the digest of the state after an entry.
type mark struct {
	seq, hash uint64
	state     uint64
}

// marks are those of the last entries whose numbers are multiples of Limits.DigestEvery.
// Fewer are in flight to or from a replica.
type marks [16]mark

// mark keeps the digest of the state after the last entry.
func (r *Replica) mark(seq uint64) {
	_, hash := r.store.Last()
	*r.markOf(seq) = mark{seq: seq, hash: hash, state: r.live.Digest()}
}

// markOf returns the slot of an entry's mark.
func (r *Replica) markOf(seq uint64) *mark {
	return &r.marks[seq/uint64(r.opt.Limits.DigestEvery)%uint64(len(r.marks))]
}

// tellDigest sends a peer the last digest up to the entries it has stored.
func (r *Replica) tellDigest(p *peer) {
	if seq := p.stored &^ (uint64(r.opt.Limits.DigestEvery) - 1); seq > p.digested && !throwsAway() {
		p.digested = seq
		if m := r.markOf(seq); m.seq == seq {
			r.sendDigest(&p.Member, m)
		}
	}
}

func (r *Replica) sendDigest(to *Member, m *mark) {
	off := len(r.out.buf)
	r.out.buf = wire.AppendDigest(r.out.buf, r.part, &wire.Digest{PeerHead: r.head(to.Boot), Seq: m.seq, Hash: m.hash, State: m.state, Form: machine.DigestForm})
	r.out.send(to.Address, off, nil)
}

// digest compares the state of another replica.
func (r *Replica) digest(frame []byte) error {
	var m wire.Digest
	if err := wire.DecodeDigest(frame, &m); err != nil {
		return err
	}
	own := r.markOf(m.Seq)
	// Otherwise it is no longer held, of another history, which the entries show, or of a
	// program with another form of digests.
	same := own.seq == m.Seq && own.hash == m.Hash && m.Form == machine.DigestForm
	if p := r.peer(m.From); r.role == RolePrimary && m.To == r.self.Boot && m.Epoch == r.epoch && p != nil {
		if same && own.state != m.State {
			r.stateDiffers(p, fmt.Sprintf("%s made state %016x of the log up to entry %d; here it is %016x", p.ID, m.State, m.Seq, own.state))
		}
		return nil
	}
	if !r.fromPrimary(&m.PeerHead) || !same {
		return nil
	}
	if own.state != m.State && !mutant(mutDigestIgnored) {
		r.alarm(AlarmStateDiverged, fmt.Sprintf("the log up to entry %d makes state %016x here, and %016x of %s", m.Seq, own.state, m.State, r.cfg.Primary.ID))
		r.sendDigest(&r.cfg.Primary, own)
	}
	return nil
}

// differsEvery is how often a primary removes a copy because its state differs, in
// nanoseconds. A difference that persists after relearning the log cannot be repaired this
// way: it is only reported.
const differsEvery = int64(3600e9)

// stateDiffers removes a copy with another state after the same log: its process relearns
// the whole log. Until the arbiter has accepted that, the copy counts as before; its log
// is valid.
func (r *Replica) stateDiffers(p *peer, text string) {
	if r.differedAt != 0 && r.now.Mono-r.differedAt < differsEvery {
		r.alarm(AlarmStateDiverged, text+"; a copy was removed for that before, this one stays")
		return
	}
	r.differedAt = r.now.Mono
	r.alarm(AlarmStateDiverged, text+"; the copy is removed and relearns the log")
	p.differs = !mutant(mutDifferenceKept)
}

// StateDigest returns the digest of the state after the log.
func (r *Replica) StateDigest() uint64 { return r.live.Digest() }

// BaseDigest returns the digest of the state after the freed entries: that of a replica
// when it had stored the last of them.
func (r *Replica) BaseDigest() uint64 { return r.base.Digest() }

// DigestsHold reports whether both digests match a recomputation over the whole state.
func (r *Replica) DigestsHold() bool {
	return r.live.Digest() == r.live.Recount() && r.base.Digest() == r.base.Recount()
}

// Spoil is for the simulator: it changes the state of this replica so that it does not
// match its log, as after a bug or a bit flip.
func (r *Replica) Spoil() {
	last, _ := r.store.Last()
	r.live.Apply(&order.Entry{Kind: order.KindNoop, Seq: last}, le.AppendUint64(nil, r.live.Orders.Lineage))
}
