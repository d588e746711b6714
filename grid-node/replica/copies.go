package replica

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// The number of copies can change while orders flow. The record says how many are
// wanted (Replicas) and how many may be taken in (MaxInSync, more than Replicas while
// one is being added). With as many copies as that, they are to be on the pods with
// the smallest names: those of a StatefulSet that goes down keeps. A learner of such
// a pod is taken in all the same, and then the member with the largest name is let
// go: by the primary, with all others in sync and answering, while it acknowledges,
// so that nothing waits and no moment has fewer copies than are wanted.

//
// A record that names the pods decides by them instead: see pods.go.

// hasRoom says whether a learner of this pod may be taken in. Every pod that the record
// names has a place: others go for it.
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

// surplus is the member to let go of, nil if there is none or it is too early. One
// that is the primary hands over first; the record says to whom.
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
			return nil // what stays has to be well
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

// retireSurplus lets a member go, and learners that have lost their place.
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

// releaseSurplus lets learners go for whom there is no place any more. No admission
// is under way.
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

// release lets a learner go that nobody counts on.
func (r *Replica) release(p *peer, text string) {
	r.primary.released[r.primary.nReleased%len(r.primary.released)] = p.Boot
	r.primary.nReleased++
	r.joinReplyTo(&p.Member, wire.JoinReleased, 0, text)
	r.dropPeer(p.Boot)
}

// letGo says whether this replica left the configuration because there were enough
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
