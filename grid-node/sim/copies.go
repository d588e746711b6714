package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Half of the worlds with FIX sessions have drop copies (docs/adr/0089): the last party gets
// copies of the reports of others, of which its gateway says with each Logon; now and then it is
// opened as a session that gets none. I55: each ExecutionReport of a source has exactly one copy in
// the target's numbers, in the order of the log, with the source's name and what the report is made
// of; nothing else has one; and every copy of the partition has the same sources.

// copiesRand is nil for the worlds without drop copies.
func copiesRand(seed uint64) *rand.Rand {
	if rng := rand.New(rand.NewPCG(seed, 0x64726f70636f7079)); rng.IntN(2) == 0 {
		return rng
	}
	return nil
}

// isTarget reports whether the session of a party gets copies.
func (p *fixParty) isTarget() bool { return p.w.profile.copies != nil && p.id == fixParties-1 }

// unknownSource is a session that does not exist.
const unknownSource = 77

// chooseSources gives a door the sources that its gateway is configured with; none now and then.
func (d *fixDoor) chooseSources() {
	rng := d.w().profile.copies
	if !d.party.isTarget() || rng.IntN(8) == 0 {
		return
	}
	d.copies = true
	add := func(id uint64) {
		d.sources = order.AppendSource(d.sources, [2]uint64{0xf1f1, id}, fmt.Sprintf("GRID\x01P%d", id))
	}
	for id := range uint64(fixParties - 1) {
		if rng.IntN(3) > 0 {
			add(id + 1)
		}
	}
	if len(d.sources) == 0 || rng.IntN(3) == 0 {
		add(unknownSource)
	}
}

// nameSources tells the grid of them.
func (d *fixDoor) nameSources() {
	if !d.naming || d.named != 0 {
		return
	}
	d.named = d.g.request()
	d.sendStep(d.named, wire.FixStepRecord{Op: wire.FixStepCopies, Body: d.sources})
}

// fixCopied is a copy by the committed log.
type fixCopied struct {
	entry   keptEntry
	source  uint32
	name    string
	payload []byte        // of an order, or the record of a refusal
	report  *fixExecution // else
}

// fixCopying are the drop copies of the committed log, made from the rules of ADR 89 and not from
// the code of the machine.
type fixCopying struct {
	sources map[uint32][]byte       // by slot of the target
	copies  map[fixNumber]fixCopied // by number of the target
	of      map[fixEntry]fixGave    // the copies that an entry gave a target
}

// fixGave is how many copies an entry gave a target, in which generation of that: it may be over
// when they are sent.
type fixGave struct {
	n          int
	generation uint32
}

// name applies an entry of kind drop-copy.
func (m *fixModel) name(seq uint64, payload []byte) string {
	c := order.DropCopyOf(payload)
	s := m.of(c.Slot)
	switch {
	case c.Op != order.DropCopySources:
		return fmt.Sprintf("I55: a copy of FIX session %d is in the log", c.Slot)
	case s == nil || s.Generation != c.Generation || s.Attempt != c.Attempt:
		return fmt.Sprintf("I55: sources of FIX session %d in generation %d and attempt %d; the session is %+v", c.Slot, c.Generation, c.Attempt, s)
	}
	if m.drops.sources[c.Slot] = bytes.Clone(c.Sources); len(c.Sources) == 0 {
		delete(m.drops.sources, c.Slot)
	}
	m.first[fixEntry{seq, c.Slot}] = s.Out
	return ""
}

// nameIn returns the name of a source in encoded sources, "" if it is none of them.
func nameIn(sources []byte, id [2]uint64) string {
	for len(sources) > 0 {
		n := int(sources[16])
		if binary.LittleEndian.Uint64(sources) == id[0] && binary.LittleEndian.Uint64(sources[8:]) == id[1] {
			return string(sources[17:][:n])
		}
		sources = sources[(17+n+7)/8*8:]
	}
	return ""
}

// copy gives the targets of a source the copies of a report, behind all numbers of its entry.
func (m *fixModel) copy(source uint32, c fixCopied) {
	d := &m.drops
	targets := []uint32{}
	for slot := range d.sources {
		targets = append(targets, slot)
	}
	slices.Sort(targets)
	for _, slot := range targets {
		s := m.of(slot)
		c.source, c.name = source, nameIn(d.sources[slot], m.of(source).ID)
		if c.name == "" || s.Form < machine.FixCopiesForm {
			continue
		}
		n := fixNumber{slot, s.Generation, s.Out}
		d.copies[n], m.reports[n] = c, c.entry.e.Seq
		at := fixEntry{c.entry.e.Seq, slot}
		d.of[at] = fixGave{d.of[at].n + 1, s.Generation}
		s.Out++
	}
}

// copyOf makes the copies of an entry that executed nothing.
func (m *fixModel) copyOf(e *order.Entry, payload []byte) {
	entry := keptEntry{e: *e, payload: payload}
	switch e.Kind {
	case order.KindOrder:
		if e.Flags&order.FlagFix != 0 {
			m.copy(e.Session, fixCopied{entry: entry, payload: payload})
		}
	case order.KindFix:
		for rest := payload; len(rest) > 0; {
			var r order.FixRecord
			rest = order.NextFix(rest, &r)
			if r.Op == order.FixRefusal && len(r.Body) > 18 && r.Body[0] == 1 && r.Body[1] == 0 && bytes.Contains(r.Body[18:], []byte("\x0135=D\x01")) {
				m.copy(r.Slot, fixCopied{entry: entry, payload: r.Body})
			}
		}
	}
}

// copyExecuted makes the copies of reports of executions.
func (m *fixModel) copyExecuted(e *order.Entry, payload []byte, list []fixExecution, slots []uint32) {
	for i := range list {
		x := &list[i]
		if x.record.Kind == match.CancelRejected || e.Kind == order.KindFix && x.message != nil {
			continue
		}
		m.copy(slots[i], fixCopied{entry: keptEntry{e: *e, payload: payload}, report: x})
	}
}

// checkCopy: a copy is that of the report which the committed log has under its number.
func (w *world) checkCopy(p *process, m *fixModel, slot, generation uint32, number uint64, entry []byte) {
	var e order.Entry
	entry, err := order.DecodeEntry(entry, &e)
	if err != nil {
		w.violation("I55", "%s sends a copy that is no entry: %v", p.name, err)
		return
	}
	c := order.DropCopyOf(order.Payload(entry))
	want, is := m.drops.copies[fixNumber{slot, generation, number}]
	seq := order.Seq(entry)
	w.stats.FixCopies++
	switch {
	case !is || want.entry.e.Seq != seq || c.Slot != slot || string(c.Name) != want.name:
		w.violation("I55", "%s sends number %d of FIX session %d as a copy of entry %d of %q; the committed log has entry %d of %q (%t)", p.name, number, slot, seq, c.Name, want.entry.e.Seq, want.name, is)
	case want.report != nil:
		record := order.FixRecord{Slot: want.source, In: 1, Op: order.FixRefusal, Outs: 1, Body: c.Body}
		payload := order.AppendFixRecord(nil, &record)
		e := order.Entry{Kind: order.KindFix, Seq: seq, Size: uint32(order.HeaderSize + len(payload))}
		made := append(make([]byte, order.HeaderSize), payload...)
		e.Put(made)
		w.checkFixExecution(p, m, want.source, want.report.number, made)
	case (c.Op == order.DropCopyOrder) != (want.entry.e.Kind == order.KindOrder) || !bytes.Equal(c.Body, want.payload):
		w.violation("I55", "%s sends number %d of FIX session %d, a copy of entry %d, as op %d of %q; the committed log has %q", p.name, number, slot, seq, c.Op, c.Body, want.payload)
	}
}

// checkCopies: all copies of an entry for a target arrive at once.
func (w *world) checkCopies(p *process, m *fixModel, a *wire.FixReports) {
	n, at, gave := 0, fixEntry{}, fixGave{}
	for rest := a.Entries; len(rest) > 0; n++ {
		number, entry, after := wire.NextResent(rest)
		rest, at = after, fixEntry{order.Seq(entry), a.Slot}
		gave = m.drops.of[at]
		w.checkCopy(p, m, a.Slot, gave.generation, number, entry)
	}
	if n != gave.n {
		w.violation("I55", "%s sends %d copies of entry %d to FIX session %d; the committed log has %d", p.name, n, at.seq, a.Slot, gave.n)
	}
}

// checkSources: every copy of the partition has the sources of the model.
func (w *world) checkSources(p *process, m *fixModel) {
	for slot := range m.sessions {
		if got, want := p.r.FixSources(uint32(slot)), m.drops.sources[uint32(slot)]; !bytes.Equal(got, want) {
			w.violation("I55", "%s has sources %q of FIX session %d; the committed log has %q", p.name, got, slot, want)
		}
	}
}

// checkCopiesGot: a target was sent every copy that has one of its numbers, and no other.
func (w *world) checkCopiesGot() {
	p := w.fix.parties[fixParties-1]
	if !p.isTarget() || w.api.rec.Lineage > 1 || w.stopped || p.loses() {
		return
	}
	m, slot, s := p.session()
	if s == nil {
		return
	}
	for n := uint64(1); n < p.want; n++ {
		_, is := m.drops.copies[fixNumber{slot, s.Generation, n}]
		body, got := p.got[n]
		if is && !got && !w.profile.retention.FreeDownstream {
			w.violation("I55", "party %d expects number %d, and was not sent the copy that is number %d", p.id, p.want, n)
		}
		if got && !is && p.copied[n] {
			w.violation("I55", "party %d was sent a copy as number %d, %s; the committed log has none", p.id, n, body)
		}
	}
}

// missesCopies reports whether a target was not sent all numbers yet.
func (p *fixParty) missesCopies() bool {
	_, _, s := p.session()
	return p.isTarget() && s != nil && p.w.api.rec.Lineage == 1 && p.want < s.Out
}
