package replica

import "fmt"

// Demotion of a site: it stops making entries, so that the other one can be promoted
// without a loss. It is one change of the configuration, which begins Standby, by the
// primary, once everything that it accepted is committed. From its proposal on nothing is
// added to the log, so its end is the token of the other site's promotion.

// Demotion is the decision of an administrator that a site is to stop. It counts while the
// site is the one that makes entries, in this term.
type Demotion struct {
	Wanted bool
	Term   uint64
}

// closing reports whether this primary takes nothing new because it is being demoted. A
// demotion of unknown outcome may have happened, whatever the record asks for by now.
func (r *Replica) closing() bool {
	return !r.cfg.Standby && (r.demotes() || r.prop.purpose == purposeDemote) && !mutant(mutDemoteAdmits)
}

// siteWithdrawn reports whether the promotion or demotion that is proposed is not asked for
// any more. Then a rejection is conclusive: attempts based on the record before get a
// conflict, those on the present one a rejection.
func (r *Replica) siteWithdrawn() bool {
	switch r.prop.purpose {
	case purposePromote:
		return r.promotion.Term != r.prop.next.Term
	case purposeDemote:
		return !r.demotes()
	}
	return false
}

// considerDemotion proposes it once everything stored is committed.
func (r *Replica) considerDemotion() {
	if r.role != RolePrimary || r.cfg.Standby || !r.demotes() || r.primary.suspended || r.prop.active() || r.handingOver() || r.stopping || r.now.Mono < r.primary.admitAt {
		return
	}
	if last, _ := r.store.Last(); r.commit < last && !mutant(mutDemoteUndrained) {
		return
	}
	members := []Member{r.self}
	for _, m := range r.cfg.InSync {
		if m.Boot != r.self.Boot {
			members = append(members, m)
		}
	}
	last, hash := r.store.Last()
	r.alarm(AlarmDemotion, fmt.Sprintf("this site makes no more entries; its log ends with entry %d, hash %016x", last, hash))
	r.propose(purposeDemote, members)
}
