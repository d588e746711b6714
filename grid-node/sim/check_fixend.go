package sim

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/machine"
)

// fixSession is that of a party in the committed log.
func (p *fixParty) session() (m *fixModel, slot uint32, s *machine.FixSession) {
	m = &p.w.shown(p.w.api.rec.Lineage).fix
	hi, lo := p.sid()
	slot, ok := m.slots[[2]uint64{hi, lo}]
	if !ok {
		return m, 0, nil
	}
	return m, slot, m.of(slot)
}

// checkDropped: what a gap fill replaced has no entry.
func (p *fixParty) checkDropped() {
	m, slot, s := p.session()
	if s == nil || p.w.api.rec.Lineage > 1 {
		return
	}
	for _, n := range p.dropped {
		if at, there := m.answers[fixNumber{slot, s.Generation, n}]; there {
			p.w.violation("FIX", "party %d sent a gap fill for its number %d, which has report %d", p.id, n, at)
		}
	}
}

// resolve takes orders as reported whose report was gap filled: their entries are freed, or their
// answer was lost with a lineage.
func (p *fixParty) resolve() {
	m, slot, s := p.session()
	if s == nil {
		return
	}
	kept := p.open[:0]
	for _, o := range p.open {
		at, there := m.answers[fixNumber{slot, s.Generation, o.seq}]
		switch {
		case !there || at >= p.want:
			kept = append(kept, o)
		case !p.w.profile.retention.FreeDownstream && p.w.api.rec.Lineage == 1:
			p.w.violation("FIX", "party %d expects number %d, and was not sent report %d of its number %d", p.id, p.want, at, o.seq)
			return
		}
	}
	p.open = kept
}

// fixUnsettled returns what is still missing in a FIX session, "" if nothing.
func (w *world) fixUnsettled() string {
	if w.fix == nil {
		return ""
	}
	for _, p := range w.fix.parties {
		switch {
		case !p.loggedOn || p.link == nil:
			return fmt.Sprintf("party %d is not logged on", p.id)
		case len(p.open) > 0:
			return fmt.Sprintf("party %d has no report of its number %d", p.id, p.open[0].seq)
		case p.missesCopies():
			return fmt.Sprintf("party %d was not sent all numbers of its session", p.id)
		case p.behind != 0:
			return fmt.Sprintf("party %d expects number %d, and was sent %d", p.id, p.want, p.behind)
		}
	}
	return ""
}

// checkFixEnd: every copy has the sessions of the model.
func (w *world) checkFixEnd(pods []*pod) {
	if w.fix == nil {
		return
	}
	m := &w.timeline(w.api.rec.Lineage).fix
	w.checkCopiesGot()
	for _, pod := range pods {
		w.checkSources(pod.proc, m)
		for slot := range m.sessions {
			want := m.sessions[slot]
			got, ok := pod.proc.r.FixSession(want.ID)
			if !ok || got.In != want.In || got.Out != want.Out || got.Attempt != want.Attempt || got.Generation != want.Generation || got.Day != want.Day || got.Mode != want.Mode || got.GraceMs != want.GraceMs || got.Left != want.Left || got.Lapsed != want.Lapsed {
				w.violation("FIX", "%s has FIX session %d as %+v (%t); the committed log has %+v", pod.proc.name, slot, got, ok, want)
				return
			}
		}
	}
}
