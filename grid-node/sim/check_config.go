package sim

import (
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// checkI1Process: at most one process is ever the primary of an epoch, and the
// epochs a process goes through only rise.
func (w *world) checkI1Process(p *process, st *replica.Status) {
	if st.Config == nil {
		return
	}
	epoch := st.Config.Epoch
	if before := p.status.Config; before != nil && epoch < before.Epoch && !w.mayGoBack(p) {
		w.violation("I1", "%s goes back from epoch %d to %d", p.name, before.Epoch, epoch)
		return
	}
	if st.Role != replica.RolePrimary {
		return
	}
	w.beginTimeline(p, st)
	committers, began := &w.check.committers[w.life(st.Config)], &w.check.began[w.life(st.Config)]
	for uint64(len(*committers)) <= epoch {
		*committers, *began = append(*committers, 0), append(*began, 0)
	}
	switch c := &(*committers)[epoch]; {
	case *c == 0:
		*c, (*began)[epoch] = p.self.Boot, w.now
	case *c != p.self.Boot:
		w.violation("I1", "%s is the primary of epoch %d, and so was %s", p.name, epoch, w.name(*c))
	}
	if !w.stood(st.Config) {
		w.violation("I1", "%s is the primary of %s, which the API server never held", p.name, st.Config)
	}
}

// mayGoBack: a configuration known only from the primary is reverted when the arbiter
// shows that it was false, or has lost its state.
func (w *world) mayGoBack(p *process) bool {
	return p.status.Unconfirmed && p.status.Role != replica.RolePrimary && (!w.stood(p.status.Config) || w.api.rewound || w.api.regressed)
}

// stood reports whether the API server ever held this configuration.
func (w *world) stood(c *replica.Config) bool {
	for i := len(w.api.history) - 1; i >= 0; i-- {
		if h := &w.api.history[i]; h.Epoch == c.Epoch && h.ChangeID == c.ChangeID {
			return true
		}
	}
	return false
}

// recordChanged checks a change of the record that the API server has accepted.
func (w *world) recordChanged(before *replica.Config, by *process, why string) {
	now := &w.api.rec
	for uint64(len(w.check.proposers)) <= now.Epoch {
		w.check.proposers = append(w.check.proposers, 0)
	}
	w.check.proposers[now.Epoch] = by.self.Boot
	w.stats.Changes++
	w.faultOnChange()
	w.checkI12Record(before, now)
	w.checkI19(before, now, by, why)
	if before.Epoch > 0 && now.Primary.Boot != before.Primary.Boot {
		w.stats.Failovers++
		if by.self.Boot == before.Primary.Boot {
			w.stats.HandOvers++
		}
	}
	if now.Lineage != before.Lineage {
		w.newLineage(before, by)
		return
	}
	w.checkI10(now, by)
}

// checkI10: only replicas with the full log are electable. A member of inSync may be the
// next primary, so when it enters it holds everything committed. (From then on I2 checks
// it.)
func (w *world) checkI10(c *replica.Config, by *process) {
	t := w.timeline(c.Lineage)
	last := uint64(len(t.hashes))
	if last == 0 {
		return
	}
	for i := range c.InSync {
		m := w.incarnation(c.InSync[i].Boot)
		if !m.log.holds(last, t.hashes[last-1]) {
			w.violation("I10", "%s puts %s in sync, which holds %d entries; %d are committed", by.name, m.name, len(m.log.hashes), last)
			return
		}
	}
}

// checkI2: the committed prefix is in the log of every in-sync member: of those the
// primary knows, and of those the record names (a change may have happened that it does
// not know).
func (w *world) checkI2(p *process, st *replica.Status) {
	w.checkHolders(p, st, st.Config, "I2")
}

// checkI3: inSync is a subset of the ack set. Seen from outside: nothing is committed that
// a member of the record, however it got there, does not store.
func (w *world) checkI3(p *process, st *replica.Status) {
	if w.api.rec.Lineage == st.Config.Lineage && w.api.rec.Epoch >= st.Config.Epoch {
		w.checkHolders(p, st, &w.api.rec, "I3")
	}
}

func (w *world) checkHolders(p *process, st *replica.Status, c *replica.Config, invariant string) {
	seq := st.CommitSeq
	for i := range c.InSync {
		m := w.incarnation(c.InSync[i].Boot)
		if !m.log.holds(seq, p.log.hashes[seq-1]) {
			w.violation(invariant, "%s commits entry %d in epoch %d; %s, in sync in epoch %d, holds %d entries without it",
				p.name, seq, st.Config.Epoch, m.name, c.Epoch, len(m.log.hashes))
			return
		}
	}
}

// newLineage checks a record that begins another history. It is only valid when an
// administrator has accepted the loss, or has named the true history.
func (w *world) newLineage(before *replica.Config, by *process) {
	if before.Epoch == 0 {
		w.checkClaimed(&w.api.rec, by)
		return
	}
	w.stats.Losses++
	forced := before.Standby && !w.api.rec.Standby && before.Promotion.Forced
	if before.AcceptLossEpoch != before.Epoch && before.ReassertChangeID == "" && !forced {
		w.violation("I5", "%s begins lineage %d, without an accepted loss", by.name, w.api.rec.Lineage)
	}
}

// beginTimeline: the committed log of a new lineage begins with its first primary's log.
func (w *world) beginTimeline(p *process, st *replica.Status) {
	t := w.timeline(st.Config.Lineage)
	if t.begun || st.Config.Lineage < 2 {
		return
	}
	t.begun, t.begunAt, t.base = true, w.now, len(p.log.hashes)
	t.inherit(w.cameFrom(p, st.Config.Lineage), p.status.FreedSeq)
	w.revive(p, st.Config.Lineage)
	for seq := p.status.FreedSeq + 1; seq <= p.status.CommitSeq && !w.stopped; seq++ {
		t.hashes = append(t.hashes, p.log.hashes[seq-1])
		t.epochs = append(t.epochs, p.log.epochs[seq-1])
		w.checkI7(p, t, p.st.Get(seq))
	}
	w.logf("lineage %d begins with the %d entries of %s; %d were committed", st.Config.Lineage, t.base, p.name, len(w.timeline(st.Config.Lineage-1).hashes))
}

// revive looks at the entries that a new lineage begins with and the last one did not
// commit. An order in them may have been rejected by a primary whose memory is lost: that
// answer is lost with it, as acknowledgements are.
func (w *world) revive(p *process, lineage uint64) {
	last := w.shown(lineage - 1)
	for seq := p.status.FreedSeq + 1; seq <= uint64(len(p.log.hashes)); seq++ {
		if seq <= uint64(len(last.hashes)) && last.hashes[seq-1] == p.log.hashes[seq-1] {
			continue
		}
		var e order.Entry
		entry := p.st.Get(seq)
		if _, err := order.DecodeEntry(entry, &e); err != nil || !e.Kind.IsOrder() || e.Flags&order.FlagFix != 0 {
			continue // checkI7 has the error
		}
		if id := string(order.ClOrdID(entry)); w.check.refused[id] > 0 {
			delete(w.check.refused, id)
			w.history.revived[id] = lineage
		}
	}
}

// checkI12Record: in a planned roll, or change of the number of copies, no change of the record leaves more than one
// member out, and a new primary comes with all that were in sync before it.
func (w *world) checkI12Record(before, now *replica.Config) {
	fewest := len(w.placed()) - 1
	switch w.phase {
	case phaseRoll, phaseResize:
	case phaseMove: // nothing else is in progress
		fewest = w.profile.replicas
	default:
		return
	}
	if len(now.InSync) < fewest {
		w.violation("I12", "in a planned change the record becomes %s", w.configText(now))
	}
	if now.Primary.Boot != before.Primary.Boot && len(now.InSync) != len(before.InSync) {
		w.violation("I12", "in a planned change the primary is lost, not handed over: %s", w.configText(now))
	}
}

// checkMayEnd: a draining process reports that it may exit only when nothing is lost with
// it. (Half of I12: a planned stop never costs the last copy.)
func (w *world) checkMayEnd(p *process) {
	behind := p.status.Config != nil && w.api.rec.Epoch < p.status.Config.Epoch // the record was rewound
	if !w.profile.mayLose && w.profile.journal == nil && !behind && w.needed(p) {
		w.violation("I12", "%s reports that it may exit, and the record is, or may become, one without another live member: %s", p.name, w.configText(&w.api.rec))
	}
}

// checkDiscard: a process discards its log only when no configuration needs it.
func (w *world) checkDiscard(p *process, why string) {
	if w.isMember(p) && w.api.rec.Epoch >= p.status.Config.Epoch && !w.forgedOut(p, why) {
		w.violation("I10", "%s is in sync (%s) and discards its log: %s", p.name, w.configText(&w.api.rec), why)
	}
	if a := &w.api; a.climbing() && a.lost.Has(p.self.Boot) && replica.Removed(why) {
		w.violation("I10", "%s was in sync before the record was rolled back (%s), and discards its log while that is restored (%s): %s", p.name, w.configText(&a.lost), w.configText(&a.rec), why)
	}
}

// forgedOut reports whether a learner that does not know of its admission got a forged
// notification that it lost its place, and saw in the record that it is not in sync: the
// admission was in flight. That costs the same as its crash.
func (w *world) forgedOut(p *process, why string) bool {
	return w.profile.forges != nil && !p.status.Config.Has(p.self.Boot) && p.status.Config.Epoch < w.api.rec.Epoch && strings.HasSuffix(why, "forged")
}

// checkAlarm: some alarms mean that something impossible has happened.
func (w *world) checkAlarm(p *process, kind replica.AlarmKind, text string) {
	switch kind {
	case replica.AlarmHandOverCut:
		w.check.handOverCut = true
	case replica.AlarmDiverged:
		if !w.check.handOverCut && w.profile.forges == nil { // its log may end in uncommitted entries that its successor lacks
			w.violation("alarm", "%s: %s: %s", p.name, kind, text)
		}
	case replica.AlarmStateDiverged, replica.AlarmExecutionDiverged:
		w.check.noticed++
		if !w.check.spoiled && w.profile.forges == nil {
			w.violation("alarm", "%s: %s: %s", p.name, kind, text)
		}
	case replica.AlarmInvariant, replica.AlarmBadFrame, replica.AlarmBadConfig, replica.AlarmCapacity:
		w.violation("alarm", "%s: %s: %s", p.name, kind, text)
	case replica.AlarmUntrue:
		if w.profile.forges == nil && !w.api.rewound && !w.api.regressed {
			w.violation("alarm", "%s doubts the announcement of an honest primary: %s", p.name, text)
		}
	case replica.AlarmRegressed:
		if !w.api.rewound && !w.api.regressed && w.restored == nil { // a read of the record before may be under way
			w.violation("alarm", "%s reports that the record was rolled back, which never happened: %s", p.name, text)
		}
	}
}
