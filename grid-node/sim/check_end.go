package sim

import (
	"bytes"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/internal/linear"
)

// How long a healed world may take, in true time. The slowest is a process that learns
// late of everything: watch, joins, retries of proposals.
const (
	healLimit   = 20 * second
	healTraffic = 300 * millisecond // clients continue this long after everything healed
	outageLong  = 700 * millisecond
	answerLimit = 150 * millisecond // an order in a world without faults
	rollLimit   = 60 * millisecond  // an order in a planned change: round trips between members, none to the API server, whatever that takes
	lateWord    = 500 * millisecond // more than two leases, less than the timeout of an answer
)

// checkI13: after faults heal inSync becomes full, with every order answered and every log
// complete.
func (w *world) checkI13() {
	w.runUntil(w.now+healTraffic, nil)
	for _, c := range w.clients {
		c.mode = clientFinishing
	}
	next := w.now
	w.runUntil(w.now+healLimit, func() bool {
		if w.now < next {
			return false
		}
		next = w.now + 10*millisecond
		return w.converged() == ""
	})
	if why := w.converged(); why != "" && !w.stopped {
		w.violation("I13", "%d s after all faults ended %s", healLimit/second, why)
	}
}

// converged returns what is still missing, "" if nothing.
func (w *world) converged() string {
	if why := w.redundant(); why != "" {
		return why
	}
	pods := w.placed()
	for _, p := range pods {
		if s := &p.proc.status; s.CommitSeq != s.LastSeq || s.LastSeq != pods[0].proc.status.LastSeq {
			return p.proc.name + " is behind: " + w.statusText(p.proc)
		}
	}
	for _, c := range w.clients {
		if len(c.open) > 0 {
			return "an order was never answered: " + c.open[0].key
		}
	}
	if why := w.regionsUnsettled(); why != "" {
		return why
	}
	if why := w.limitsAwaited(); why != "" {
		return why
	}
	return w.fixUnsettled()
}

// redundant returns which member is missing, or not where the record has it.
func (w *world) redundant() string {
	if w.operator != nil {
		if why := w.operator.unsettled(); why != "" {
			return why
		}
	}
	return w.redundantOn(w.placed())
}

// redundantOn is redundant for a grid whose copies belong on exactly these pods.
func (w *world) redundantOn(pods []*pod) string {
	rec := &w.api.rec
	if len(rec.InSync) != len(pods) {
		return "the record is " + w.configText(rec)
	}
	primary := w.processOf(rec.Primary.Boot)
	if primary == nil {
		return "the primary of the record is dead: " + w.configText(rec)
	}
	if pod := rec.PreferredPod; pod != "" && pod != rec.Primary.Pod() {
		return "pod " + pod + " is preferred, and the record is " + w.configText(rec)
	}
	for _, p := range pods {
		if p.proc == nil {
			return "nothing runs in pod " + p.name
		}
		switch s := &p.proc.status; {
		case !rec.Has(p.proc.self.Boot):
			return p.proc.name + " is not in sync: " + w.configText(rec)
		case s.Config == nil || s.Config.Epoch != rec.Epoch:
			return p.proc.name + " does not know " + w.configText(rec)
		case (s.Role == replica.RolePrimary) != (p.proc == primary) || s.Suspended:
			return p.proc.name + " is " + w.statusText(p.proc)
		case s.HandingOver:
			return p.proc.name + " is handing over"
		case p.proc.leaving:
			return p.proc.name + " is leaving"
		case w.profile.updates && p.proc.before50:
			return p.proc.name + " is of the release before, and is to be updated"
		}
	}
	return ""
}

// checkI11: an API outage costs a healthy set of members no availability. The API server
// becomes unavailable, the clients continue, every order and read is answered in time, and
// no configuration changes.
func (w *world) checkI11() {
	if w.stopped {
		return
	}
	w.phase = phaseOutage
	w.runUntil(w.now+callTimeout, w.quietAPI) // answers in flight show an old spec
	w.api.touch(nil)
	w.runUntil(w.now+50*millisecond, nil)
	w.settle("before the outage")
	if w.stopped {
		return
	}
	w.logf("api: AWAY, without an effect on clients")
	w.api.mode = apiAway
	for _, p := range w.pods {
		w.api.silent[p] = true
	}
	for _, c := range w.clients {
		c.mode = clientBusy
	}
	first, epoch, acked := len(w.history.ops), w.api.rec.Epoch, w.stats.Acked
	w.runUntil(w.now+outageLong, nil)
	for _, c := range w.clients {
		c.mode = clientFinishing
	}
	w.runUntil(w.now+answerLimit+50*millisecond, nil)
	for i := first; i < len(w.history.ops) && !w.stopped; i++ {
		o := &w.history.ops[i]
		returned := o.Return
		if refused, ok := w.check.awaited[o.Key]; ok && refused >= o.Call {
			returned = refused // the client pauses before it sends the order again
		}
		if o.Kind == linear.Submit && !o.dropped && !o.evicted && returned-o.Call > answerLimit {
			w.violation("I11", "with all members well and the API server away an order was not answered within %d ms: %v", answerLimit/millisecond, o.Op)
		}
	}
	for p := range w.up {
		if w.isMember(p) && p.status.Config.Epoch != epoch {
			w.violation("I11", "the configuration moved in an outage of the API server: %s is %s", p.name, w.statusText(p))
		}
	}
	if w.stats.Acked == acked && w.profile.guards == nil { // limits refuse orders for good
		w.violation("I11", "not one order was acknowledged while the API server was away")
	}
}

// quietAPI reports whether nothing of the API server is in flight to a process.
func (w *world) quietAPI() bool {
	for p := range w.up {
		if p.reading || p.watchAt > w.now {
			return false
		}
	}
	return true
}

// checkI12: a planned roll never starts below full redundancy, and has no cost. One pod
// after the other is drained, each when all members are in sync, as the operator does it.
// No order is rejected, none is slow, there is no unplanned take-over, at most one member
// is missing at any time, and in the end none is.
func (w *world) checkI12() {
	if w.stopped {
		return
	}
	w.phase = phaseRoll
	w.logf("api: healthy; a roll begins")
	w.api.heal()
	w.api.lateWord = lateWord
	for _, c := range w.clients {
		c.mode = clientBusy
	}
	first, refused := len(w.history.ops), w.stats.Refusals
	for i := len(w.pods) - 1; i >= 0 && !w.stopped; i-- {
		w.settle("before the roll of pod " + w.pods[i].name)
		if old := w.pods[i].proc; !w.stopped {
			w.logf("%s is drained", old.name)
			old.leave(false)
			w.runUntil(w.now+healLimit, func() bool { return w.pods[i].proc != nil && w.pods[i].proc != old })
		}
	}
	for _, c := range w.clients {
		c.mode = clientFinishing
	}
	w.settle("after the roll")
	w.runUntil(w.now+rollLimit+50*millisecond, func() bool { return w.converged() == "" })
	if w.stopped || len(w.placed())-1 < w.profile.minInSync {
		return // with a member missing it rejects orders, as configured
	}
	w.checkUnnoticed("in a planned roll", first, refused)
}

// checkUnnoticed: since operation first, and with so many orders rejected before, a
// planned change had no order rejected and none slow.
func (w *world) checkUnnoticed(when string, first int, refused uint64) {
	for i := first; i < len(w.history.ops) && !w.stopped; i++ {
		if o := &w.history.ops[i]; o.Kind == linear.Submit && !o.decided && w.check.awaited[o.Key] == 0 && (o.dropped || o.Return-o.Call > rollLimit) {
			w.violation("I12", "%s an order was not answered within %d ms: %v", when, rollLimit/millisecond, o.Op)
		}
	}
	if w.stats.Refusals != refused {
		w.violation("I12", "%d orders were refused %s", w.stats.Refusals-refused, when)
	}
}

// settle waits until everything that is not an open order is healthy.
func (w *world) settle(when string) { w.await(when+",", w.redundant) }

// await waits until a condition holds.
func (w *world) await(when string, lacking func() string) {
	next := w.now
	why := ""
	w.runUntil(w.now+healLimit, func() bool {
		if w.now < next {
			return false
		}
		next = w.now + 10*millisecond
		why = lacking()
		return why == ""
	})
	if why != "" && !w.stopped {
		w.violation("I13", "%s after %d s without faults %s", when, healLimit/second, why)
	}
}

// differ returns which pod does not hold exactly the committed log, "" if all do.
func (w *world) differ(pods []*pod) string {
	committed := uint64(len(w.timeline(w.api.rec.Lineage).hashes))
	for _, p := range pods {
		if last, _ := p.proc.st.Last(); last != committed {
			return fmt.Sprintf("%s holds %d entries, committed are %d", p.proc.name, last, committed)
		}
	}
	return ""
}

// checkEnd: the logs of all replicas are byte for byte the same, and every acknowledged
// order is there exactly once, at its acknowledged number.
func (w *world) checkEnd() {
	if w.stopped {
		return
	}
	pods := w.placed()
	w.runUntil(w.now+100*millisecond, nil)
	w.await("in the end,", func() string { return w.differ(pods) }) // a cursor entry may come at any time
	if w.stopped {
		return
	}
	first := pods[0].proc
	last, _ := first.st.Last()
	t := w.timeline(w.api.rec.Lineage)
	for _, p := range pods {
		base := max(first.status.FreedSeq, p.proc.status.FreedSeq)
		for seq := base + 1; seq <= last; seq++ {
			if !bytes.Equal(p.proc.st.Get(seq), first.st.Get(seq)) {
				w.violation("end", "entry %d of %s is not that of %s", seq, p.proc.name, first.name)
				return
			}
		}
	}
	for _, p := range pods {
		if !p.proc.r.DigestsHold() {
			w.violation("end", "the digests of %s are not of its state", p.proc.name)
			return
		}
	}
	if w.checkFixEnd(pods); w.stopped {
		return
	}
	for i := range w.history.ops {
		o := &w.history.ops[i]
		if o.Kind != linear.Submit || o.Return == linear.Never || o.lineage != w.api.rec.Lineage {
			continue
		}
		if o.Seq <= first.status.FreedSeq && t.orders[o.Key] == o.Seq {
			continue // downstream
		}
		if seq, ok := first.st.FindClOrdID([]byte(o.Key)); !ok || seq != o.Seq || t.orders[o.Key] != o.Seq {
			w.violation("I5", "order %s was acknowledged at %d and is at %d (there: %t)", o.Key, o.Seq, seq, ok)
			return
		}
	}
	if w.stats.Acked == 0 {
		w.violation("end", "no order was ever acknowledged: this run is inconclusive")
	}
}

// recoverLoss is for worlds in which everything may die: an administrator accepts the loss
// if no member is left. If one is, the operator withdraws an acceptance that still stands,
// as the real one does.
func (w *world) recoverLoss() {
	if !w.profile.mayLose {
		return
	}
	w.runUntil(w.now+5*second, func() bool { return w.redundant() == "" }) // stopping processes stop
	switch {
	case w.stopped:
	case w.noneLeft():
		w.checkNobodyPromoted()
		w.acceptLoss()
	default:
		w.withdrawAcceptance(w.api.rec.Epoch)
	}
}

// checkNobodyPromoted: with no member of inSync alive no process serves, however long it
// takes: acknowledged orders are lost, and only an administrator may accept that.
func (w *world) checkNobodyPromoted() {
	rec := w.api.rec
	if rec.AcceptLossEpoch == rec.Epoch {
		return // an administrator has already accepted the loss
	}
	w.faults.hit(faultAllDead)
	w.runUntil(w.now+2*second, nil)
	if w.stopped {
		return
	}
	if w.survives(&w.api.rec, nil) { // a change that a dead process had proposed may still land
		w.violation("I10", "all members of %s are dead, and the record became %s", w.configText(&rec), w.configText(&w.api.rec))
	}
	for p := range w.up {
		if p.status.Role == replica.RolePrimary || p.status.Role == replica.RoleBackup {
			w.violation("I10", "all members of %s are dead, and %s is %s", w.configText(&rec), p.name, w.statusText(p))
		}
	}
}
