package replica

import "github.com/ordergrid/ordergrid/grid-node/wire"

func (r *Replica) frameFlags() uint8 {
	if r.opt.LeaseClock != nil {
		return wire.FlagLeased
	}
	return 0
}

// sendBeacon says that this primary lives. With a read waiting it goes with the
// data, since the answer is wanted soon; else on a way of its own.
func (r *Replica) sendBeacon(p *peer, round uint64, wanted bool) {
	m := wire.Beacon{PeerHead: r.head(p.Boot), CommitSeq: r.commit, Round: round, SentNs: r.now.Mono, Flags: r.frameFlags()}
	if wanted {
		m.Flags |= wire.FlagWantAck
	}
	off := len(r.out.buf)
	r.out.buf = wire.AppendBeacon(r.out.buf, r.part, &m)
	r.out.send(p.Address, off, nil, !wanted)
}

// beacon notes the primary's sign of life and answers it.
func (r *Replica) beacon(frame []byte) error {
	var m wire.Beacon
	if err := wire.DecodeBeacon(frame, &m); err != nil {
		return err
	}
	if !r.fromPrimary(&m.PeerHead) {
		return nil
	}
	r.heard(m.Round, m.SentNs, m.Flags)
	r.follow(m.CommitSeq)
	if m.Flags&wire.FlagWantAck != 0 {
		r.backup.ackDue = true // with all others of this wake-up
		return nil
	}
	r.sendAck(wire.TypeBeaconAck, true)
	return nil
}
