package replica

import "github.com/ordergrid/ordergrid/grid-node/wire"

// The exchange between the replica and its Vitals. The replica publishes at the end of
// every wake-up and takes over at every tick.

// publish sets the peers that the vitals send heartbeats to, or answer.
func (r *Replica) publish() {
	v := r.vitals
	v.mu.Lock()
	defer v.mu.Unlock()
	v.steppedAt = r.now.Mono
	v.commit, v.flags, v.leaving = r.commit, r.frameFlags(), r.ackFlags()|r.followedFlag()
	switch {
	case r.role == RolePrimary:
		v.lead(r.epoch, r.primary.peers)
	case r.role == RoleBackup, r.role == RoleLearner && r.backup.accepted, r.role == RoleFenced && mutant(mutFencedAnswers):
		v.follow(r.epoch, &r.cfg.Primary)
	default:
		v.mode = vitalQuiet
		v.epoch = r.epoch
	}
}

// lead sends heartbeats to peers. A lease is earned anew in every epoch.
func (v *Vitals) lead(epoch uint64, peers []peer) {
	if v.mode != vitalLeads {
		v.mode = vitalLeads
		v.peers = v.peers[:0]
	}
	if v.epoch != epoch {
		v.epoch = epoch
		for i := range v.peers {
			if !mutant(mutVitalsLeaseKept) {
				v.peers[i].echoNs = 0
			}
		}
	}
	if v.leadsSame(peers) {
		return
	}
	var next [maxPeers]vitalPeer
	for i := range peers {
		next[i] = vitalPeer{boot: peers[i].Boot, address: peers[i].Address}
		if known := v.peer(peers[i].Boot); known != nil {
			next[i] = *known
		}
	}
	v.peers = append(v.peers[:0], next[:len(peers)]...)
}

func (v *Vitals) leadsSame(peers []peer) bool {
	if len(peers) != len(v.peers) {
		return false
	}
	for i := range peers {
		if peers[i].Boot != v.peers[i].boot {
			return false
		}
	}
	return true
}

// follow answers the primary. That it answers leased reads is remembered as long as it
// leads: it may be in an earlier epoch than this replica, with its lease, when the answer
// to its own proposal was lost.
func (v *Vitals) follow(epoch uint64, primary *Member) {
	if v.mode == vitalFollows && v.epoch == epoch {
		return
	}
	if v.primary.Boot != primary.Boot {
		v.primary, v.leased, v.heardAt = *primary, false, 0
	}
	v.mode, v.epoch = vitalFollows, epoch
	v.told, v.heardFlags = 0, 0
}

// takeVitals adopts what the vitals received.
func (r *Replica) takeVitals() {
	v := r.vitals
	v.mu.Lock()
	v.steppedAt = r.now.Mono
	told, newer, newerFrom := uint64(0), v.newer, v.newerFrom
	same := v.epoch == r.epoch
	switch {
	case r.role == RolePrimary && v.mode == vitalLeads:
		for i := range r.primary.peers {
			p := &r.primary.peers[i]
			if known := v.peer(p.Boot); known != nil {
				p.heardAt = max(p.heardAt, known.heardAt)
				p.followed = known.flags&wire.FlagFollowed != 0
				p.draining = p.draining || known.flags&wire.FlagDraining != 0
				if full := known.flags&wire.FlagFull != 0; full || known.heardAt > p.fullAt {
					p.full = full
				}
				if same {
					p.echoNs = max(p.echoNs, known.echoNs)
				}
			}
		}
	case v.mode == vitalFollows && (same || mutant(mutToldKept)):
		b := &r.backup
		b.heardAt, b.leased = max(b.heardAt, v.heardAt), b.leased || v.leased
		if b.primaryDown && v.heardAt-b.downAt > int64(r.opt.Timing.Lease)/2 {
			b.primaryDown = false // received long after: only a connection broke
		}
		told = v.told
	}
	r.count.Vitals = v.count
	v.newer = 0
	v.mu.Unlock()
	r.follow(told)
	if newer > r.epoch && r.role != RoleFenced {
		r.spokeOf(newer, newerFrom)
	}
}
