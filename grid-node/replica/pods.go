package replica

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// The record may name the pods that are to hold a copy. The partition gets there by what
// is there anyway: a learner of a pod that is named joins, and when it is in sync a copy
// on a pod that is not is let go. So the copies in sync are never fewer than are wanted
// (Replicas), and one more at most. A primary on a pod that is not named is the last to
// go: it hands over once the others are all there. docs/replication.md has the steps.

// observePods takes over which pods the spec names.
func (r *Replica) observePods(c *Config) {
	r.specVersion, r.pods = c.Version, c.Pods
	if len(r.pods) > 0 {
		r.opt.MaxInSync = max(r.opt.Replicas, len(r.pods))
	}
}

// placed says whether the record names the pods.
func (r *Replica) placed() bool { return len(r.pods) > 0 }

// isWanted says whether a copy on this pod is wanted.
func (r *Replica) isWanted(pod string) bool { return !r.placed() || slices.Contains(r.pods, pod) }

// ranksBefore says which of two pods is rather to hold a copy, and to be the primary: one
// that the record names before one that it does not, and then by name.
func (r *Replica) ranksBefore(a, b string) bool {
	if wanted := r.isWanted(a); wanted != r.isWanted(b) && !mutant(mutRankIgnored) {
		return wanted
	}
	return a < b
}

// specKnown says whether what the spec asks for is that of the version of the record that
// a proposal would be made on: if the spec has changed since, the arbiter refuses the
// proposal. If it is not known the record is read.
func (r *Replica) specKnown() bool {
	if !r.named || r.specVersion == r.cfg.Version || mutant(mutStalePods) {
		return true
	}
	r.readConfig()
	return false
}

// mayAdd says whether the configuration may get this learner as one more member.
func (r *Replica) mayAdd(p *peer) bool {
	members := len(r.cfg.InSync)
	if !r.placed() {
		return members < wire.MaxCopies
	}
	most := min(max(len(r.pods), r.opt.Replicas+1), wire.MaxMembers)
	return r.isWanted(p.Pod()) && members < most
}

// yields says whether this primary is on a pod that the record does not name, and all the
// copies that are wanted are in sync, and well, on pods that it does.
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

// prefersOther says whether the record prefers another pod as the primary's.
func (r *Replica) prefersOther() bool {
	return r.preferredPod != "" && r.preferredPod != r.self.Pod() && r.isWanted(r.preferredPod)
}

// unwanted is the copy to let go of, nil if there is none: of the pods that the record
// does not name the last.
func (r *Replica) unwanted(last *peer) *peer {
	if r.isWanted(last.Pod()) && !mutant(mutRankIgnored) || !r.specKnown() {
		return nil
	}
	return last
}

// enough says whether a member may be let go of without a copy missing.
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

// attemptAgain repeats a proposal on the version of the record that is known now, unless
// it was for the sake of a spec that has changed: then it is withdrawn.
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

// bySpec says whether the proposal is made because of which pods the record names.
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

// lapsed says whether the spec does not ask any more for what is proposed because of it.
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

// withdraw ends a proposal that is not due any more. One that may still happen is not
// forgotten: the members as they are are proposed instead, and one of the two happens.
func (r *Replica) withdraw() {
	p := &r.prop
	switch {
	case !p.unknown || mutant(mutWithdrawnForgotten):
		r.prop = proposal{}
		if r.primary.hand.to != 0 {
			r.endHandOver()
		}
	case p.purpose == purposeClaim: // nobody holds an order: it has happened, or never will, and those that are named claim
	default:
		members := []Member{r.self}
		for _, m := range r.cfg.InSync {
			if m.Boot != r.self.Boot {
				members = append(members, m)
			}
		}
		r.alarm(AlarmRetired, fmt.Sprintf("the record does not ask any more for the %s to epoch %d, which may still happen; proposing that epoch with the members as they are", p.purpose, p.next.Epoch))
		r.propose(purposeRetire, members)
		r.prop.unknown = r.prop.active() // the one before it may happen, whatever becomes of this one
	}
}

// refuseCopy says why a pod is to hold no copy now, "" if it may.
func (r *Replica) refuseCopy(pod string) string {
	switch {
	case !r.isWanted(pod):
		return fmt.Sprintf("the record names other pods for its copies: %s", strings.Join(r.pods, " "))
	case !r.hasRoom(pod):
		return fmt.Sprintf("the partition has %d of %d members", 1+len(r.primary.peers), r.opt.MaxInSync)
	}
	return ""
}
