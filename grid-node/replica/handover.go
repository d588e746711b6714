package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A hand-over is a change of primary that nobody notices: the primary takes no
// new order, lets what it accepted commit, proposes the target, and sends its
// clients there once the target speaks. Orders that arrive meanwhile are parked:
// never refused, and few, since it takes a round trip and one compare-and-swap.
// The arbiter must have answered just before, so that its absence delays nobody.
// Should it go away in between, the primary admits orders again although its
// proposal may yet be accepted: they need the target's acknowledgement in this
// epoch, which the target stops to give when it takes over.
type handOver struct {
	to         uint64 // boot id of the target, 0 while none is under way
	since      int64  // when parking began
	reopened   bool   // it took too long: nothing is parked any more
	notBefore  int64  // after a refusal
	toldNobody bool   // that nobody can take over was said
}

func (r *Replica) handingOver() bool { return r.role == RolePrimary && r.primary.hand.to != 0 }

// parked is a request that came during a hand-over. Its client still has the
// order, so who asked is all there is to remember.
type parked struct {
	conn uint64
	id   uint64
	slot uint32
	typ  wire.Type
}

// considerHandOver begins a hand-over if this primary is to stop, or another pod
// is preferred and has been in sync for long enough.
func (r *Replica) considerHandOver() {
	h := &r.primary.hand
	if r.role != RolePrimary || r.primary.suspended || r.stopping || h.to != 0 || r.prop.active() || r.now.Mono < h.notBefore {
		return
	}
	p := r.handOverTarget()
	if p == nil || !r.arbiterAnswers() {
		return
	}
	h.to, h.since = p.Boot, r.now.Mono
	r.alarm(AlarmHandOver, fmt.Sprintf("handing over to %s, proposing epoch %d", p.ID, r.epoch+1))
}

// arbiterAnswers says whether the arbiter has shown the record just now. While it
// is away a hand-over would only stop the orders: once the proposal is out they
// wait until it is decided.
func (r *Replica) arbiterAnswers() bool {
	if r.freshAt != 0 && r.now.Mono-r.freshAt <= int64(r.opt.Timing.Retry) {
		return true
	}
	r.readConfig()
	return false
}

// parking says whether new orders wait for the end of a hand-over.
func (r *Replica) parking() bool {
	return r.primary.hand.to != 0 && !r.primary.hand.reopened && !r.stopping && !mutant(mutHandOverUndrained)
}

// limitParking ends the wait of those who are parked when the members or the
// arbiter take too long.
func (r *Replica) limitParking() {
	h := &r.primary.hand
	if h.to == 0 || h.reopened || r.now.Mono-h.since <= int64(r.opt.Timing.Lease) {
		return
	}
	if !r.prop.active() {
		r.endHandOver()
		return
	}
	h.reopened = true
	r.unpark()
}

// handOverTarget is who should have the partition instead of this primary.
func (r *Replica) handOverTarget() *peer {
	wanted := r.preferredPod != "" && r.preferredPod != r.self.Pod()
	if !r.leaving && !wanted {
		return nil
	}
	var target *peer
	for i := range r.primary.peers {
		p := &r.primary.peers[i]
		switch {
		case !r.mayTakeHandOver(p):
		case p.draining && !r.leaving, p.draining && p.Pod() > r.self.Pod(): // of two that leave the smaller name stays
		case wanted && p.Pod() == r.preferredPod && (r.leaving || r.steady(p)):
			return p
		case r.leaving && target == nil:
			target = p
		}
	}
	return target
}

// steady says whether the partition has all its copies (I12) and the peer has been
// one of them for long enough.
func (r *Replica) steady(p *peer) bool {
	return len(r.cfg.InSync) >= r.opt.Replicas && r.now.Mono-p.inSyncAt >= int64(r.opt.Timing.HandOverDelay)
}

// mayTakeHandOver says whether a peer is in sync and alive.
func (r *Replica) mayTakeHandOver(p *peer) bool {
	return p.inSync && p.synced && p.knowsEpoch && !p.down && !p.diverged && !r.gone(p)
}

// progressHandOver proposes the target once everything accepted is committed:
// then the target has it all, and no client is left waiting here. A target that
// is not fit any more ends the hand-over, unless it was proposed: only the
// arbiter can tell then.
func (r *Replica) progressHandOver() {
	h := &r.primary.hand
	if h.to == 0 || r.prop.active() {
		return
	}
	p := r.peer(h.to)
	if p == nil || !r.mayTakeHandOver(p) || r.primary.suspended {
		r.endHandOver()
		return
	}
	if last, _ := r.store.Last(); last != r.commit && !mutant(mutHandOverUndrained) {
		return
	}
	members := []Member{p.Member}
	for _, m := range r.cfg.InSync {
		if m.Boot != p.Boot {
			members = append(members, m)
		}
	}
	r.propose(purposeHandOver, members)
}

// endHandOver goes on as before. The parked requests are sent here again.
func (r *Replica) endHandOver() {
	r.primary.hand = handOver{notBefore: r.now.Mono + 10*int64(r.opt.Timing.Retry), toldNobody: r.primary.hand.toldNobody}
	r.unpark()
}

// handedOver is for a former primary whose own proposal was accepted: it tells
// the target, which need not wait for its watch, and lets its clients wait for
// the moment until the target speaks: sent there sooner, they would be sent back.
func (r *Replica) handedOver() {
	if p := r.peer(r.cfg.Primary.Boot); p != nil {
		r.sendConfig(p)
		r.backup.primaryDown, r.backup.downAt = p.down, r.now.Mono // it died meanwhile
	}
	if last, _ := r.store.Last(); last != r.commit { // admitted after the proposal: the target may not have it
		r.failPending()
		return
	}
	r.backup.redirectAt = r.now.Mono + 2*int64(r.opt.Timing.Beacon)
}

// redirect sends those who waited for the end of a hand-over to the new primary.
func (r *Replica) redirect() {
	r.backup.redirectAt = 0
	r.failPending()
}

// park keeps a request until the hand-over is over. It returns false when too
// many are parked.
func (r *Replica) park(conn, id uint64, slot uint32, typ wire.Type) bool {
	if len(r.parked) >= r.opt.Limits.InFlight {
		return false
	}
	r.parked = append(r.parked, parked{conn: conn, id: id, slot: slot, typ: typ})
	return true
}

// unpark answers the parked requests: whoever is the primary now is to be asked.
func (r *Replica) unpark() {
	for _, p := range r.parked {
		switch {
		case r.role != RolePrimary:
			r.notPrimary(p.conn, p.typ, p.id, p.slot)
		case r.stopping:
			r.reject(p.conn, p.typ, p.id, p.slot, wire.CodeDraining, 0, 0, "the node is stopping; retry")
		default: // it came to nothing, and this is still the place to ask
			r.sendTo(&r.self, p.conn, p.typ, p.id, p.slot)
		}
	}
	r.parked = r.parked[:0]
}
