package replica

import "github.com/ordergrid/ordergrid/grid-node/wire"

// A copy that does not know a kind of entry stops at it. So the first entry of a feature is made
// when every replica has said that it knows it. A primary asks by a flag of its Beacon, which
// replicas of releases before ignore, and only when something needs an answer.

// allKnow reports whether every replica of the partition knows these features. It asks those
// that have not said so; the caller refuses the request (Overloaded, to be retried) or waits.
// What was agreed on stays so while this replica is primary: who joins later has to know what
// the log has. A replica that is silent is left out, but for FIX 5.0 SP2: a copy that does not
// know that goes on with such orders if it comes back before it is dropped.
func (r *Replica) allKnow(f wire.FeatureSet) bool {
	if r.primary.agreed&f == f || mutant(mutFeaturesUnasked) {
		return true
	}
	if r.opt.Known&f != f {
		return false
	}
	know := true
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.features&f != f && (f&wire.FeatureFix50 != 0 || !r.gone(p)) {
			know = false
			r.askFeatures(p)
		}
	}
	if know {
		r.primary.agreed |= f
	}
	return know
}

// allHere reports whether as many copies as are wanted are in sync, and each has said that it knows
// these features. What is begun then is not begun in the middle of an update, where a copy of a
// release before is away that could not come back.
func (r *Replica) allHere(f wire.FeatureSet) bool {
	if len(r.cfg.InSync) < r.opt.Replicas || !r.allKnow(f) {
		return false
	}
	here := true
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.inSync() && p.features&f != f && !mutant(mutFeaturesUnasked) {
			here = false
			r.askFeatures(p)
		}
	}
	return here
}

// askFeatures asks a peer with the next flush, unless it has said so, or was asked just now.
func (r *Replica) askFeatures(p *peer) {
	if !p.featuresSaid && (p.featuresAskedAt == 0 || r.now.Mono-p.featuresAskedAt >= int64(r.opt.Timing.Resend)) {
		p.featuresDue, p.featuresAskedAt = true, r.now.Mono
	}
}

// sayFeatures answers the primary.
func (r *Replica) sayFeatures() {
	off := len(r.out.buf)
	r.out.buf = wire.AppendFeatures(r.out.buf, r.part, &wire.FeaturesAre{PeerHead: r.head(r.cfg.Primary.Boot), Known: r.opt.Known, Computes: r.computes})
	r.out.send(r.cfg.Primary.Address, off, nil)
}

// features notes what a peer knows.
func (r *Replica) features(frame []byte) error {
	var m wire.FeaturesAre
	if err := wire.DecodeFeatures(frame, &m); err != nil {
		return err
	}
	p := r.peer(m.From)
	if r.role != RolePrimary || m.To != r.self.Boot || m.Epoch != r.epoch || p == nil {
		r.count.StaleFrames++
		return nil
	}
	p.features, p.computes, p.featuresSaid = m.Known, m.Computes, true
	return nil
}
