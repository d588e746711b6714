package replica

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// The record may name the pods that should hold a copy. The existing mechanisms get the
// partition there: a learner of a named pod joins, and when it is in sync a copy on
// another pod is removed. So the copies in sync are never fewer than wanted (Replicas),
// and at most one more. A primary on a pod that is not named is removed last: it hands
// over once the others are all there. docs/replication.md has the steps.

// observePods adopts the pods that the spec names.
func (r *Replica) observePods(c *Config) {
	r.specVersion, r.pods = c.Version, c.Pods
	if len(r.pods) > 0 {
		r.opt.MaxInSync = max(r.opt.Replicas, len(r.pods))
	}
}

// placed reports whether the record names the pods.
func (r *Replica) placed() bool { return len(r.pods) > 0 }

// isWanted reports whether a copy on this pod is wanted.
func (r *Replica) isWanted(pod string) bool { return !r.placed() || slices.Contains(r.pods, pod) }

// ranksBefore reports whether pod a is preferred over b to hold a copy, and to be the
// primary: one that the record names before one that it does not, then by name.
func (r *Replica) ranksBefore(a, b string) bool {
	if wanted := r.isWanted(a); wanted != r.isWanted(b) && !mutant(mutRankIgnored) {
		return wanted
	}
	return a < b
}

// specKnown reports whether the known spec is that of the version of the record on which a
// proposal would be based: if the spec has changed since, the arbiter rejects the
// proposal. If it is unknown the record is read.
func (r *Replica) specKnown() bool {
	if !r.named || r.specVersion == r.cfg.Version || mutant(mutStalePods) {
		return true
	}
	r.readConfig()
	return false
}

// mayAdd reports whether this learner may be added to the configuration.
func (r *Replica) mayAdd(p *peer) bool {
	members := len(r.cfg.InSync)
	if !r.placed() {
		return members < wire.MaxCopies
	}
	most := min(max(len(r.pods), r.opt.Replicas+1), wire.MaxMembers)
	return r.isWanted(p.Pod()) && members < most
}

// yields reports whether this primary is on a pod that the record does not name, and all
// wanted copies are in sync and healthy on named pods.
func (r *Replica) yields() bool {
	if r.isWanted(r.self.Pod()) {
		return false
	}
	there := 0
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; r.isWanted(p.Pod()) && r.mayTakeHandOver(p) && !p.draining {
			there++
		}
	}
	return there >= min(r.opt.Replicas, len(r.pods))
}

// prefersOther reports whether the record prefers another pod as the primary's.
func (r *Replica) prefersOther() bool {
	return r.preferredPod != "" && r.preferredPod != r.self.Pod() && r.isWanted(r.preferredPod)
}

// unwanted returns the copy to remove, nil if there is none: the last of the pods that the
// record does not name.
func (r *Replica) unwanted(last *peer) *peer {
	if r.isWanted(last.Pod()) && !mutant(mutRankIgnored) || !r.specKnown() {
		return nil
	}
	return last
}

// enough reports whether a member may be removed without a copy missing.
func (r *Replica) enough() bool {
	members := len(r.cfg.InSync)
	if mutant(mutOldCopyFirst) {
		members++
	}
	if mutant(mutLearnerCounted) {
		for i := range r.primary.peers {
			if p := &r.primary.peers[i]; p.learner() && p.acks() {
				members++
			}
		}
	}
	return members > r.opt.Replicas
}

// attemptAgain repeats a proposal on the known version of the record, unless it was made
// because of a spec that has changed: then it is withdrawn.
func (r *Replica) attemptAgain() {
	switch {
	case !r.named || !r.bySpec() || mutant(mutStalePods):
		r.attempt()
	case !r.specKnown():
	case !r.lapsed():
		r.attempt()
	default:
		r.withdraw()
	}
}

// bySpec reports whether the proposal is made because of the pods that the record names.
func (r *Replica) bySpec() bool {
	switch p := &r.prop; p.purpose {
	case purposeClaim:
		return true
	case purposeHandOver:
		return !r.leaving
	case purposeRetire:
		return slices.ContainsFunc(r.primary.peers, func(o peer) bool { return o.inSync() && !o.draining && !o.differs && !p.next.Has(o.Boot) })
	}
	return false
}

// lapsed reports whether the spec no longer requires a proposal that was made because of
// it.
func (r *Replica) lapsed() bool {
	p := &r.prop
	switch p.purpose {
	case purposeClaim:
		return !r.isWanted(r.self.Pod())
	case purposeHandOver:
		to := p.next.Primary.Pod()
		return !r.isWanted(to) || r.isWanted(r.self.Pod()) && to != r.preferredPod
	}
	return len(p.next.InSync) < r.opt.Replicas || slices.ContainsFunc(r.primary.peers, func(o peer) bool {
		return o.inSync() && !o.draining && !o.differs && !p.next.Has(o.Boot) && r.isWanted(o.Pod())
	})
}

// withdraw ends a proposal that is no longer needed. One that may still happen is not
// forgotten: the present members are proposed instead, and one of the two happens.
func (r *Replica) withdraw() {
	p := &r.prop
	switch {
	case !p.unknown || mutant(mutWithdrawnForgotten):
		r.prop = proposal{}
		if r.primary.hand.to != 0 {
			r.endHandOver()
		}
	case p.purpose == purposeClaim: // there are no orders: it has happened, or never will, and the named pods claim
	default:
		members := []Member{r.self}
		for _, m := range r.cfg.InSync {
			if m.Boot != r.self.Boot {
				members = append(members, m)
			}
		}
		r.alarm(AlarmRetired, fmt.Sprintf("the record no longer requires the %s to epoch %d, which may still happen; proposing that epoch with the present members", p.purpose, p.next.Epoch))
		r.propose(purposeRetire, members)
		r.prop.unknown = r.prop.active() // the previous one may happen, whatever the outcome of this one
	}
}

// refuseCopy returns why a pod may not hold a copy now, "" if it may.
func (r *Replica) refuseCopy(pod string) string {
	switch {
	case !r.isWanted(pod):
		return fmt.Sprintf("the record names other pods for its copies: %s", strings.Join(r.pods, " "))
	case !r.hasRoom(pod):
		return fmt.Sprintf("the partition has %d of %d members", 1+len(r.primary.peers), r.opt.MaxInSync)
	}
	return ""
}
