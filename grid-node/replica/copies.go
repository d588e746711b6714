package replica

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// The number of copies can change while orders flow. The record has the desired number
// (Replicas) and the maximum (MaxInSync, more than Replicas while one is being added). At
// the maximum, copies belong on the pods with the smallest names, which a StatefulSet
// keeps when it scales down. A learner of such a pod is admitted anyway, and then the
// member with the largest name is removed: by the primary, with all others in sync and
// answering, while it acknowledges, so that nothing waits and there are never fewer copies
// than wanted.

//
// If the record names the pods, they decide instead: see pods.go.

// hasRoom reports whether a learner of this pod may be admitted. Every pod that the record
// names has a place: others are removed for it.
func (r *Replica) hasRoom(pod string) bool {
	if 1+len(r.primary.peers) < r.opt.MaxInSync || r.placed() {
		return true
	}
	if len(r.cfg.InSync) >= wire.MaxCopies {
		return false
	}
	largest := r.self.Pod()
	for i := range r.primary.peers {
		largest = max(largest, r.primary.peers[i].Pod())
	}
	return r.ranksBefore(pod, largest)
}

// surplus returns the member to remove, nil if there is none or it is too early. A primary
// that is one hands over first; the record names the target.
func (r *Replica) surplus() *peer {
	if r.placed() && !r.enough() || !r.placed() && len(r.cfg.InSync) <= r.opt.MaxInSync && !mutant(mutSurplusMiscounted) {
		return nil
	}
	var last *peer
	for i := range r.primary.peers {
		p := &r.primary.peers[i]
		switch {
		case !p.inSync():
		case p.draining || !r.mayTakeHandOver(p):
			return nil // the remaining ones must be healthy
		case last == nil || r.ranksBefore(last.Pod(), p.Pod()):
			last = p
		}
	}
	switch {
	case r.leaving || last == nil:
		return nil
	case r.placed():
		return r.unwanted(last)
	case r.ranksBefore(last.Pod(), r.self.Pod()), !r.specKnown():
		return nil
	}
	return last
}

// retireSurplus removes a surplus member, and learners without a place.
func (r *Replica) retireSurplus() {
	r.releaseSurplus()
	p := r.surplus()
	if p == nil {
		return
	}
	members := []Member{r.self}
	for i := range r.primary.peers {
		if o := &r.primary.peers[i]; o.inSync() && o.Boot != p.Boot {
			members = append(members, o.Member)
		}
	}
	why := fmt.Sprintf("%d are wanted, %d are there", r.opt.MaxInSync, len(r.cfg.InSync))
	if r.placed() {
		why = fmt.Sprintf("%d are wanted, on %s; %d are there", r.opt.Replicas, strings.Join(r.pods, " "), len(r.cfg.InSync))
	}
	r.alarm(AlarmRetired, fmt.Sprintf("copies: %s; proposing epoch %d without %s", why, r.epoch+1, p.ID))
	r.propose(purposeRetire, members)
}

// releaseSurplus releases learners that no longer have a place. No admission is in
// progress.
func (r *Replica) releaseSurplus() {
	if r.placed() {
		for i := len(r.primary.peers) - 1; i >= 0; i-- {
			if p := &r.primary.peers[i]; p.learner() && !r.isWanted(p.Pod()) {
				r.release(p, r.refuseCopy(p.Pod()))
			}
		}
		return
	}
	members := len(r.cfg.InSync)
	if members < r.opt.MaxInSync {
		return
	}
	largest := r.self.Pod()
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.inSync() {
			largest = max(largest, p.Pod())
		}
	}
	for i := len(r.primary.peers) - 1; i >= 0; i-- {
		if p := &r.primary.peers[i]; p.learner() && r.ranksBefore(largest, p.Pod()) {
			r.release(p, fmt.Sprintf("the partition has %d of %d members", members, r.opt.MaxInSync))
		}
	}
}

// release releases a learner that no configuration contains.
func (r *Replica) release(p *peer, text string) {
	r.primary.released[r.primary.nReleased%len(r.primary.released)] = p.Boot
	r.primary.nReleased++
	r.joinReplyTo(&p.Member, wire.JoinReleased, 0, text)
	r.dropPeer(p.Boot)
}

// letGo reports whether this replica left the configuration because there were enough
// copies without it.
func (r *Replica) letGo() bool {
	if r.placed() {
		return len(r.cfg.InSync) >= r.opt.Replicas && !r.isWanted(r.self.Pod())
	}
	if len(r.cfg.InSync) < r.opt.MaxInSync {
		return false
	}
	for i := range r.cfg.InSync {
		if r.ranksBefore(r.self.Pod(), r.cfg.InSync[i].Pod()) {
			return false
		}
	}
	return true
}
