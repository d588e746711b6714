package replica

import "github.com/ordergrid/ordergrid/grid-node/wire"

const (
	// feedBatch is the default of Limits.LearnerBatch: an order of the same wake-up may
	// have to wait while it is copied and written.
	feedBatch = 64 << 10
	// feedBurst is how far a feed may catch up after missed wake-ups, ns: two ticks.
	feedBurst = 20e6
)

// feed sends a learner the next part of the log: at most one batch per flush, at most
// LearnerBytes unacknowledged, at LearnerRate. The committed prefix is immutable, so it
// serves as a snapshot without blocking writers.
func (r *Replica) feed(p *peer, round uint64) bool {
	last, _ := r.store.Last()
	l := &r.opt.Limits
	if p.stage == stageSettling || p.sent >= last || p.feedAt > r.now.Mono || r.store.Bytes(p.stored+1, p.sent) >= l.LearnerBytes {
		return false
	}
	if r.awaitsLearner(p) {
		return false
	}
	if p.sent == p.stored {
		p.progressAt = r.now.Mono
	}
	n := r.sendBatch(p, round, last, min(l.LearnerBatch, l.BatchBytes), true)
	p.feedAt = max(p.feedAt, r.now.Mono-feedBurst) + int64(n)*1e9/int64(l.LearnerRate)
	r.count.LearnerBytes += uint64(n)
	return true
}

// Feeds returns to how many learners this primary sends the log or the base state. One
// that needs no tick feeds none: see TickDue.
func (r *Replica) Feeds() (n int) {
	if r.role != RolePrimary {
		return 0
	}
	for i := range r.primary.peers {
		if r.primary.peers[i].stage < stageCounted {
			n++
		}
	}
	return n
}

// sendBatch sends the entries after p.sent, up to last and limit bytes, and returns their
// size.
func (r *Replica) sendBatch(p *peer, round, last uint64, limit int, bulk bool) int {
	entries, through := r.store.Range(p.sent+1, last, limit)
	m := wire.Prepare{PeerHead: r.head(p.Boot), CommitSeq: r.commit, Round: round, SentNs: r.now.Mono, Flags: r.frameFlags()}
	if p.learner() {
		m.Flags |= wire.FlagLearner
	}
	off := len(r.out.buf)
	r.appendPrepare(&m, through)
	wire.AddTail(r.out.buf[off:], len(entries))
	r.out.send(p.Address, off, entries)
	r.out.last().Bulk = bulk
	r.count.Prepares++
	p.sent, p.commitSaid = through, r.commit
	return len(entries)
}

// settle moves a learner that is close enough into the ack set. Before that, everything it
// was fed must be acknowledged: later entries go with the data, on another connection, and
// must not overtake the feed. Half of the bound is reserved for entries written in the
// meantime.
func (r *Replica) settle(p *peer) {
	last, _ := r.store.Last()
	if r.awaitsLearner(p) {
		return
	}
	if p.stored < r.live.Cursors.Free.To { // missing entries may be freed before they are sent
		r.become(p, stageCatchingUp)
		return
	}
	switch behind := last - p.stored; {
	case behind > uint64(r.opt.Limits.JoinBound):
		r.become(p, stageCatchingUp)
	case p.stage == stageSettling || behind <= uint64(r.opt.Limits.JoinBound+1)/2:
		if p.sent > p.stored && !mutant(mutUnsettled) {
			r.become(p, stageSettling)
		} else {
			r.become(p, stageCounted)
		}
	}
}
