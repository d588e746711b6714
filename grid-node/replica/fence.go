package replica

import "fmt"

// Fencing of a site: another site was promoted while this one was given up for lost, and
// this one is back. Its record knows nothing of that, so the link of the promoted site
// opens here with that site's term, which is higher. From then on this primary admits
// nothing, and its record becomes a standby's of that term, as by a demotion. What it holds
// beyond the place where the new history began is reported, and is in no other log.

// hearTerm takes in the term with which a link opens.
func (r *Replica) hearTerm(term uint64) {
	if r.role != RolePrimary || r.cfg.Standby || term <= max(r.cfg.Term, r.fencedBy) || mutant(mutFenceForgotten) {
		return
	}
	r.fencedBy = term
	last, _ := r.store.Last()
	r.alarm(AlarmFenced, fmt.Sprintf("another site was promoted to term %d, this one is of term %d: it takes no more orders and becomes a standby; it holds %d entries, and what the other lacks is to be reported before it is discarded", term, r.cfg.Term, last))
}

// fenced reports whether this primary has heard of a site that replaces it.
func (r *Replica) fenced() bool { return !r.cfg.Standby && r.fencedBy > r.cfg.Term }

// FencedBy returns the term of a site that replaces this one, which is about to become a
// standby; 0 for none.
func (r *Replica) FencedBy() uint64 {
	if !r.fenced() {
		return 0
	}
	return r.fencedBy
}

// demotes reports whether this site is to become a standby.
func (r *Replica) demotes() bool {
	return r.fenced() || r.demotion.Wanted && r.demotion.Term == r.cfg.Term
}
