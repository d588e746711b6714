package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A hand-over is a planned change of primary without an outage. The primary proposes the
// target and keeps serving: every order needs the target's acknowledgement in this epoch,
// which the target stops giving when it takes over. Once the primary knows that the
// arbiter has accepted, it takes no new order, commits those it accepted, notifies the
// target, and redirects its clients when the target answers. Orders that arrive in between
// are parked: never rejected, and few, since that takes two round trips between members
// and no request to the arbiter.
//
// The others may see the new record before that. They hold it until the primary has
// notified them, so that its log is a prefix of theirs; with a time limit (releaseHeld).
type handOver struct {
	to         uint64  // boot id of the target, 0 while none is in progress
	accepted   *Config // as accepted by the arbiter: orders are parked, and it is adopted once all is committed
	since      int64   // when it was known
	notBefore  int64   // after a rejection
	toldNobody bool    // the lack of a target was reported
}

func (r *Replica) handingOver() bool { return r.role == RolePrimary && r.primary.hand.to != 0 }

// parked is a request that arrived during a hand-over. Its client still has the order, so
// only the requester is kept.
type parked struct {
	conn uint64
	id   uint64
	slot uint32
	typ  wire.Type
}

// considerHandOver proposes another primary if this one should stop, or another pod is
// preferred and has been in sync for long enough.
func (r *Replica) considerHandOver() {
	h := &r.primary.hand
	if r.role != RolePrimary || r.primary.suspended || r.stopping || h.to != 0 || r.prop.active() || r.now.Mono < h.notBefore {
		return
	}
	p := r.handOverTarget()
	if p == nil {
		r.tellCutOff()
	}
	if p == nil || !r.allMayTakeHandOver() && !mutant(mutHandOverUnheard) {
		return
	}
	if !r.reachesArbiter(p) || !r.arbiterAnswers() || !r.leaving && !r.specKnown() {
		return
	}
	h.to = p.Boot
	r.alarm(AlarmHandOver, fmt.Sprintf("handing over to %s, proposing epoch %d", p.ID, r.epoch+1))
	members := []Member{p.Member}
	for _, m := range r.cfg.InSync {
		if m.Boot != p.Boot {
			members = append(members, m)
		}
	}
	r.propose(purposeHandOver, members)
}

// arbiterAnswers reports whether the arbiter has answered recently. While it is
// unavailable a hand-over would only end the leased reads and block other proposals.
func (r *Replica) arbiterAnswers() bool {
	if r.freshAt != 0 && r.now.Mono-r.freshAt <= int64(r.opt.Timing.Retry) {
		return true
	}
	r.readConfig()
	return false
}

// parking reports whether new orders wait for the end of a hand-over.
func (r *Replica) parking() bool { return r.primary.hand.accepted != nil && !r.stopping }

// postpone reports whether the next configuration must not be adopted yet. In a hand-over
// the primary first commits what it accepted; the others wait for its announcement, of any
// change that it made.
func (r *Replica) postpone(c *Config) bool {
	if r.isOwnChange(c) {
		return (r.role == RoleBackup || r.role == RoleLearner) && !r.spoken(c.Epoch) && !mutant(mutWatchBelieved) && r.hold(c)
	}
	if !r.isHandOver(c) || mutant(mutHandOverUndrained) {
		return false
	}
	switch r.role {
	case RolePrimary:
		if h := &r.primary.hand; h.accepted == nil {
			h.to, h.accepted, h.since = c.Primary.Boot, c, r.now.Mono
			r.prop = proposal{}
		}
		return true
	case RoleBackup, RoleLearner:
		return r.hold(c)
	}
	return false
}

// allMayTakeHandOver reports whether all members answer in this epoch: one that has not
// seen it could skip it, and would not hold the change after it.
func (r *Replica) allMayTakeHandOver() bool {
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.inSync() && !r.mayTakeHandOver(p) {
			return false
		}
	}
	return true
}

// finishHandOver makes this primary a backup once everything it accepted is committed:
// then the target has all of it, and no client is left waiting here. If that takes too
// long it does so anyway.
func (r *Replica) finishHandOver() {
	h := &r.primary.hand
	if h.accepted == nil {
		return
	}
	if last, _ := r.store.Last(); last == r.commit || r.now.Mono-h.since > int64(r.opt.Timing.Lease) || r.memberGone() {
		r.adopt(h.accepted)
	}
}

// isHandOver reports whether c is the next configuration, and a hand-over.
func (r *Replica) isHandOver(c *Config) bool {
	return r.epoch != 0 && c.Epoch == r.epoch+1 && c.Primary.Boot != r.cfg.Primary.Boot && c.Has(r.cfg.Primary.Boot)
}

// untold raises an alarm when this replica becomes the primary by a hand-over that the
// former one did not finish.
func (r *Replica) untold(c *Config) {
	if !r.isHandOver(c) || c.Primary.Boot != r.self.Boot || r.spoken(c.Epoch) && r.backup.aheadFrom == r.cfg.Primary.Boot {
		return
	}
	if !mutant(mutHandOverUndrained) {
		r.alarm(AlarmHandOverCut, "handed the partition by a silent primary; other members may hold uncommitted entries that are missing here: "+c.String())
	}
}

// handOverCut reports whether this replica may hold entries that the new primary lacks,
// none of them acknowledged. It may have to discard itself for that.
func (r *Replica) handOverCut() bool {
	last, _ := r.store.Last()
	return last != r.commit
}

// memberGone reports whether a member will not acknowledge any more.
func (r *Replica) memberGone() bool {
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.inSync() && r.gone(p) {
			return true
		}
	}
	return false
}

// handOverTarget returns the best successor of this primary. A pod that stays is preferred
// over one that leaves, one that should hold a copy over another, the preferred pod over
// others, then the smallest name: the third copy of a roll has the largest, and is removed
// again.
func (r *Replica) handOverTarget() *peer {
	yields := r.yields()
	if !r.leaving && !yields && !r.prefersOther() {
		return nil
	}
	var target *peer
	for i := range r.primary.peers {
		p := &r.primary.peers[i]
		switch {
		case !r.mayTakeHandOver(p):
		case r.seemsCutOff(p):
		case p.draining && !r.leaving, p.draining && r.ranksBefore(r.self.Pod(), p.Pod()): // of two that leave the first one stays
		case !r.leaving && !(yields && r.isWanted(p.Pod())) && (p.Pod() != r.preferredPod || !r.prefersOther() || !r.steady(p)):
		case target == nil || r.before(p, target):
			target = p
		}
	}
	return target
}

// before reports whether a is a better target of a hand-over than b.
func (r *Replica) before(a, b *peer) bool {
	switch {
	case a.draining != b.draining:
		return b.draining
	case r.isWanted(a.Pod()) != r.isWanted(b.Pod()):
		return r.isWanted(a.Pod())
	case a.Pod() == r.preferredPod || b.Pod() == r.preferredPod:
		return a.Pod() == r.preferredPod
	}
	return r.ranksBefore(a.Pod(), b.Pod())
}

// steady reports whether the partition has all its copies (I12) and the peer has been one
// of them for long enough.
func (r *Replica) steady(p *peer) bool {
	return len(r.cfg.InSync) >= r.opt.Replicas && r.now.Mono-p.inSyncAt >= int64(r.opt.Timing.HandOverDelay)
}

// mayTakeHandOver reports whether a peer is in sync and alive.
func (r *Replica) mayTakeHandOver(p *peer) bool {
	return p.inSync() && p.synced && p.knowsEpoch && !r.gone(p)
}

// endHandOver continues as before: the proposal was rejected.
func (r *Replica) endHandOver() {
	r.primary.hand = handOver{notBefore: r.now.Mono + 10*int64(r.opt.Timing.Retry), toldNobody: r.primary.hand.toldNobody}
}

// handedOver runs on a former primary whose own proposal was accepted: it notifies the
// target and the waiting members, and keeps its clients waiting until the target answers:
// redirected sooner, they would be sent back.
func (r *Replica) handedOver() {
	for i := range r.primary.peers {
		r.sendConfig(&r.primary.peers[i])
	}
	if p := r.peer(r.cfg.Primary.Boot); p != nil {
		r.backup.primaryDown, r.backup.downAt = p.fault == faultReset, r.now.Mono // it died in the meantime
	}
	if r.handOverCut() {
		r.failPending()
		return
	}
	r.backup.redirectAt = r.now.Mono + 2*int64(r.opt.Timing.Beacon)
}

// redirect sends the clients waiting for the end of a hand-over to the new primary.
func (r *Replica) redirect() {
	r.backup.redirectAt = 0
	r.failPending()
}

// park keeps a request until the hand-over is over. It returns false when too many are
// parked.
func (r *Replica) park(conn, id uint64, slot uint32, typ wire.Type) bool {
	if len(r.parked) >= r.opt.Limits.InFlight {
		return false
	}
	r.parked = append(r.parked, parked{conn: conn, id: id, slot: slot, typ: typ})
	return true
}

// unpark answers the parked requests with a redirect to the present primary.
func (r *Replica) unpark() {
	if mutant(mutParkedForgotten) {
		r.parked = r.parked[:0]
	}
	for _, p := range r.parked {
		switch {
		case r.role != RolePrimary:
			r.notPrimary(p.conn, p.typ, p.id, p.slot)
		case r.stopping:
			r.reject(p.conn, p.typ, p.id, p.slot, wire.CodeDraining, 0, 0, "the node is stopping; retry")
		default: // this is still the primary
			r.sendTo(&r.self, p.conn, p.typ, p.id, p.slot)
		}
	}
	r.parked = r.parked[:0]
}
