package replica

import "fmt"

// Promotion of a standby: an administrator decided that this site makes the entries from
// now on. It is one change of the configuration, which ends Standby, by the standby's
// primary.

// Promotion is that decision. It counts while its term is above any that this site knows.
type Promotion struct {
	Term uint64 // of the site from then on
	// Seq and Hash are the token of the other site, which has stopped: the last entry of
	// its log. Nothing is lost.
	Seq, Hash uint64
	// Forced: without a token. What this log does not have is lost, so the lineage rises.
	Forced bool
}

// considerPromotion proposes it once everything stored is committed, and, unless it is
// forced, the log ends with the other site's last entry.
func (r *Replica) considerPromotion() {
	p := r.promotion
	r.tellEarlyTerm()
	if r.role != RolePrimary || !r.cfg.Standby || p.Term <= r.term() || r.primary.suspended || r.prop.active() || r.parking() || r.stopping || r.now.Mono < r.primary.admitAt {
		return
	}
	last, hash := r.store.Last()
	if !p.Forced && (last != p.Seq || hash != p.Hash) && !mutant(mutPromoteShort) {
		if last >= p.Seq && r.toldPromotion != p.Term {
			r.toldPromotion = p.Term
			r.alarm(AlarmPromotion, fmt.Sprintf("term %d: the token names entry %d with hash %016x, this log ends with entry %d, %016x: another history; name the true token, or force it", p.Term, p.Seq, p.Hash, last, hash))
		}
		return
	}
	if r.commit < last {
		return
	}
	members := []Member{r.self}
	for _, m := range r.cfg.InSync {
		if m.Boot != r.self.Boot {
			members = append(members, m)
		}
	}
	r.alarm(AlarmPromotion, fmt.Sprintf("this site makes the entries from entry %d on, in term %d (forced: %t)", last+1, p.Term, p.Forced))
	r.propose(purposePromote, members)
}

// tellEarlyTerm reports a promotion that waits for good: its term is above the record's, and a
// link to this primary was of that term or a later one, so the site would not stop that link's
// source.
func (r *Replica) tellEarlyTerm() {
	p := r.promotion
	if r.role != RolePrimary || !r.cfg.Standby || p.Term <= r.cfg.Term || p.Term > r.link.term || r.toldPromotion == p.Term {
		return
	}
	r.toldPromotion = p.Term
	r.alarm(AlarmPromotion, fmt.Sprintf("term %d: a link of term %d was open here, and a site of that term is not stopped by term %d: name %d or a later one", p.Term, r.link.term, p.Term, r.link.term+1))
}

// promoted fills a proposal that ends Standby. Epochs of entries only rise, and those of
// the log are the source's.
func (r *Replica) promoted(next *Config) {
	last, _ := r.store.Last()
	next.Standby, next.Term = false, r.promotion.Term
	if last > 0 && !mutant(mutPromoteKeepsEpoch) {
		next.Epoch = max(next.Epoch, uint64(r.epochAt(last))+1)
	}
	next.Lineage = max(r.cfg.Lineage, r.live.Orders.Lineage)
	if r.promotion.Forced && !mutant(mutForcedKeepsLineage) {
		next.Lineage++
	}
}
