package replica

import "github.com/ordergrid/ordergrid/grid-node/wire"

func (r *Replica) frameFlags() uint8 {
	if r.opt.LeaseClock != nil {
		return wire.FlagLeased
	}
	return 0
}

// ackFlags returns the flags about the sender in every acknowledgement.
func (r *Replica) ackFlags() uint8 {
	var flags uint8
	if r.leaving {
		flags |= wire.FlagDraining
	}
	if r.store.Short() || r.journalFull() {
		flags |= wire.FlagFull
	}
	return flags
}

// ask requests an answer to this round from the peer, with the data. Heartbeats are
// separate, see Vitals.
func (r *Replica) ask(p *peer, round uint64) {
	p.askedAt, p.commitSaid = r.now.Mono, r.commit
	m := wire.Beacon{PeerHead: r.head(p.Boot), CommitSeq: r.commit, Round: round, SentNs: r.now.Mono, Flags: r.frameFlags()}
	if p.arbiter.askDue {
		p.arbiter.askDue = false
		m.Flags |= wire.FlagWantArbiter
	}
	if p.featuresDue {
		p.featuresDue = false
		m.Flags |= wire.FlagWantFeatures
	}
	off := len(r.out.buf)
	r.out.buf = wire.AppendBeacon(r.out.buf, r.part, &m)
	r.out.send(p.Address, off, nil)
}

// awaited reports whether a request waits for the peer to echo a round.
func (r *Replica) awaited(p *peer) bool {
	return p.acks() && (p.round < max(r.primary.awake, r.primary.reads.newest()) || r.functions.waits)
}

// beacon is answered together with all other acknowledgements of this wake-up.
func (r *Replica) beacon(frame []byte) error {
	var m wire.Beacon
	if err := wire.DecodeBeacon(frame, &m); err != nil {
		return err
	}
	if !r.fromPrimary(&m.PeerHead) {
		return nil
	}
	if m.Flags&wire.FlagCommit != 0 {
		r.follow(m.CommitSeq)
		return nil
	}
	r.heard(m.Round, m.SentNs, m.Flags)
	r.follow(m.CommitSeq)
	r.backup.ackDue = true
	if m.Flags&wire.FlagWantFeatures != 0 {
		r.sayFeatures()
	}
	if m.Flags&wire.FlagWantArbiter != 0 {
		r.backup.arbiterAsked = true
		r.arbiterAnswers()
	}
	return nil
}
