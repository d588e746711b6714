package replica

import "fmt"

// purpose of a proposal.
type purpose uint8

const (
	purposeClaim      purpose = iota + 1 // epoch 0 -> 1
	purposeTakeOver                      // a backup becomes the primary
	purposeShrink                        // the primary drops members
	purposeAdmit                         // the primary adds a learner
	purposeRetire                        // the primary removes a member that is about to stop
	purposeHandOver                      // the primary makes a backup the primary
	purposeAcceptLoss                    // a learner begins a new lineage
	purposeReassert                      // the primary raises a regressed record above all known epochs
	purposePromote                       // the primary of a standby makes the entries from here on
	purposeDemote                        // the primary makes no more entries
)

func (p purpose) String() string {
	return [...]string{"none", "claim", "take-over", "shrink", "admission", "retirement", "hand-over", "new lineage", "reassertion", "promotion", "demotion"}[p]
}

// answerPatience in Timing.Retry: the timeout of an answer of the arbiter.
const answerPatience = 20

// voluntary reports whether the proposer may forget a change that was rejected and
// certainly never happened: it gave up nothing for it.
func (p purpose) voluntary() bool {
	return p == purposeAdmit || p == purposeRetire || p == purposeHandOver || p == purposePromote || p == purposeDemote
}

// proposal is a pending change of configuration. There is at most one, and it lasts until
// the epoch moves: a compare-and-swap of unknown outcome may still happen, so its proposer
// never acts as if it had not been made. It is repeated unchanged, and the record is read,
// until one of the two shows a higher epoch.
type proposal struct {
	purpose purpose
	next    *Config
	waiting bool     // an attempt is in flight
	unknown bool     // the outcome of an attempt is unknown: it may still happen
	triedAt int64    // when it was sent
	version string   // of the record that it was to change
	members []Member // of a reassertion: the final members
	loss    Loss
}

func (p *proposal) active() bool { return p.purpose != 0 }

// propose starts a change to the members given, the primary first.
func (r *Replica) propose(why purpose, members []Member) { r.proposeAfter(Loss{}, why, members) }

func (r *Replica) proposeAfter(loss Loss, why purpose, members []Member) {
	r.changes++
	epoch, lineage := r.epoch+1, r.cfg.Lineage
	switch why {
	case purposeClaim:
		epoch, lineage = firstClaim(r.restore)
	case purposeAcceptLoss:
		lineage++
	}
	next := &Config{
		Epoch: epoch, Lineage: lineage, Primary: members[0], InSync: members, ChangeID: r.changeID(),
		Standby: r.cfg.Standby, Term: r.cfg.Term,
	}
	switch why {
	case purposeClaim:
		next.Standby = r.wantStandby
	case purposePromote:
		r.promoted(next)
	case purposeDemote:
		next.Standby, next.Term = true, max(r.cfg.Term, r.fencedBy)
	}
	if !r.checkProposal(why, next) {
		return
	}
	r.prop = proposal{purpose: why, next: next, loss: loss}
	r.attempt()
}

func (r *Replica) changeID() string {
	return fmt.Sprintf("%016x-%s-%d", r.self.Boot, r.part, r.changes)
}

// attempt sends the proposal to the arbiter, based on the version known now. The change
// itself is the same every time, its id too.
func (r *Replica) attempt() {
	next := *r.prop.next
	next.Version = r.cfg.Version
	if p := &r.prop; p.purpose == purposeReassert {
		next.Version = r.regressed.Version
	}
	r.prop.waiting, r.prop.triedAt, r.prop.version = true, r.now.Mono, next.Version
	r.out.add(Action{Kind: ActionPropose, Config: &next, Text: r.prop.purpose.String(), Loss: r.prop.loss})
}

// casResult handles the arbiter's answer to an attempt.
func (r *Replica) casResult(ev *Event) {
	p := &r.prop
	if !p.active() || ev.ChangeID != p.next.ChangeID {
		return // of an overtaken proposal; the record itself follows
	}
	p.waiting = false
	switch ev.Outcome {
	case OutcomeOK:
		done := *p.next
		if ev.Config != nil {
			done.Version = ev.Config.Version
		}
		if p.purpose == purposeReassert {
			r.reasserted(&done)
			return
		}
		if r.specVersion == p.version { // a change of the configuration leaves the spec as it was
			r.specVersion = done.Version
		}
		r.observe(&done, true)
	case OutcomeConflict:
		r.askConfig()
	case OutcomeRefused:
		r.alarm(AlarmRefused, fmt.Sprintf("%s to epoch %d refused: %s", p.purpose, p.next.Epoch, ev.Text))
		r.askConfig()
		if p.purpose == purposeAcceptLoss && r.acceptLoss != r.epoch && !mutant(mutWithdrawnProposes) {
			// Attempts based on the earlier record get a conflict, on this one a
			// rejection.
			r.restart("the acceptance of the loss was withdrawn, and the new lineage is rejected")
			return
		}
		if p.purpose.voluntary() && (!p.unknown || r.siteWithdrawn() || mutant(mutRefusedForgets)) { // it never happened and never will: other changes may be due
			r.prop = proposal{}
			r.primary.admitAt = r.now.Mono + 10*int64(r.opt.Timing.Retry)
			if r.primary.hand.to != 0 {
				r.endHandOver()
			}
		}
	default:
		if r.mutateUnknown() {
			return
		}
		p.unknown = true
		r.count.CASUnknown++
		r.askConfig()
	}
}

// tickProposal repeats an undecided proposal, and times out a missing answer.
func (r *Replica) tickProposal() {
	p := &r.prop
	if !p.active() {
		return
	}
	since := r.now.Mono - p.triedAt
	retry := int64(r.opt.Timing.Retry)
	if p.waiting && since < answerPatience*retry || since < retry {
		return
	}
	p.unknown = p.unknown || p.waiting
	r.attemptAgain()
	r.askConfig()
}

// retryNow repeats at once: the record was reread, and only its version had changed (an
// edit of its spec or metadata).
func (r *Replica) retryNow() {
	if r.prop.active() && !r.prop.waiting {
		r.attemptAgain()
	}
}

// readConfig requests the record, at most once per Retry.
func (r *Replica) readConfig() { r.readConfigEvery(int64(r.opt.Timing.Retry)) }

func (r *Replica) readConfigEvery(ns int64) {
	if r.readAt == 0 || r.now.Mono-r.readAt >= ns {
		r.askConfig()
	}
}

func (r *Replica) askConfig() {
	r.readAt = r.now.Mono
	if !r.reading { // another read in flight answers this one, too
		r.reading, r.readFrom = true, r.now.Mono
	}
	r.out.add(Action{Kind: ActionReadConfig})
}
