package replica

import "github.com/ordergrid/ordergrid/grid-node/wire"

// A backup learns what is committed from the next Prepare, or from the next heartbeat. That is
// soon enough for a copy, and too late for clients that follow the log there: with 200 orders/s
// in a partition, 5 ms in the mean. So a backup that is followed says so in its heartbeats, and
// its primary tells it of a commit at once, unless a Prepare is about to: with a Beacon that is
// not answered. A partition that is followed at no backup sends none.

const (
	// commitEvery is how far apart such Beacons to a backup are in the mean, and commitBurst how many may come
	// sooner. With more orders than that the next Prepare comes as soon.
	commitEvery = 1_000_000 // ns
	commitBurst = 16
)

// SetFollowed sets whether clients follow the log here. It takes effect with the next heartbeat.
func (r *Replica) SetFollowed(yes bool) { r.followed = yes }

// followedFlag is what a heartbeat is answered with besides ackFlags.
func (r *Replica) followedFlag() uint8 {
	if r.followed {
		return wire.FlagFollowed
	}
	return 0
}

// sayCommit tells a member what is committed.
func (r *Replica) sayCommit(p *peer) {
	if r.now.Mono < p.commitDue-commitBurst*commitEvery {
		return // the next Prepare says it, or the next tick
	}
	p.commitDue = max(p.commitDue, r.now.Mono) + commitEvery
	p.commitSaid = r.commit
	m := wire.Beacon{PeerHead: r.head(p.Boot), CommitSeq: r.commit, Round: r.primary.round, SentNs: r.now.Mono, Flags: r.frameFlags() | wire.FlagCommit}
	if mutant(mutCommitSaidEarly) {
		m.CommitSeq, _ = r.store.Last()
	}
	off := len(r.out.buf)
	r.out.buf = wire.AppendBeacon(r.out.buf, r.part, &m)
	r.out.send(p.Address, off, nil)
}
