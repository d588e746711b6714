package sim

import (
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// views lets the processes of a quarter of the worlds keep views of their logs, filled after each wake-up as a node's
// loop does, and orders there be replaced and cancelled. Begun so that no seed in testdata/seeds.txt became another
// world.
func views(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, 0x76696607f6a4)); rng.IntN(4) == 0 {
		p.views = rng
		if p.viewValues = 1 << 10; rng.IntN(4) == 0 {
			p.viewValues = simSymbols - 1 // such views end before their logs do
		}
	}
}

const (
	viewFew, viewMany = 4, 64 // entries that a view applies after a wake-up
	viewWhole         = 256   // so many entries apart all rows of a view are checked
	viewRows          = 1 << 16
	viewMemory        = 64 << 20
)

// followed is the view of a process.
type followed struct {
	*view.Follower
	base    uint64 // rows up to here were dropped
	checked uint64 // rows up to here were compared
	whole   uint64 // all were, when this was the last one
	role    replica.Role
	users   int // questions that have a snapshot
}

// followView lets the process's view go on, and checks it.
func (p *process) followView() {
	w := p.w
	if w.profile.views == nil || w.stopped || !p.alive {
		return
	}
	base, _ := p.st.Base()
	if p.view == nil {
		if p.st.Committed() <= base {
			return
		}
		f, err := view.Follow(p.st, view.Options{Memory: viewMemory, Rows: viewRows, Values: w.profile.viewValues})
		if err != nil {
			panic(err) // no memory left on this machine
		}
		p.view = &followed{Follower: f, checked: base, whole: base}
	}
	if v := p.view; !v.Over() && base >= v.View.Needed() {
		w.violation("I29", "%s has freed entry %d; its view, or a question to it, reads from entry %d on", p.name, base, v.View.Needed())
		return
	}
	p.view.Drop(p.r.MayFree(), viewMany)
	if p.view.Over() && p.view.users == 0 {
		p.endView()
		p.pin = 0
		return
	}
	_, _, err := p.view.Apply(viewFew, viewMany)
	if err != nil && w.profile.viewValues >= simSymbols {
		w.violation("I29", "the view of %s ends: %v", p.name, err)
		return
	}
	p.pin = p.view.Holds()
	p.checkView()
}

// endView frees the view. No question has a snapshot of it.
func (p *process) endView() {
	if p.view != nil {
		p.view.View.Close()
		p.view = nil
	}
}

// checkView: I29. A view has what is committed, lets go of what may be freed, and its rows are what a plain reading of
// the log gives: each row once, and all of them now and then and after a take-over.
func (p *process) checkView() {
	w, v := p.w, p.view
	applied, base := v.View.Applied(), v.View.Base()
	switch t := w.shown(w.logLineage(&p.status)); {
	case applied > p.st.Committed():
		w.violation("I29", "the view of %s has entry %d; committed is %d", p.name, applied, p.st.Committed())
		return
	case base != v.base && base > t.freeable: // a learner of another history has what it had until it drops its log
		w.violation("I29", "the view of %s has dropped rows up to %d; a committed entry allows to free up to %d", p.name, base, t.freeable)
		return
	}
	v.base = base
	if from := max(v.checked, base); applied > from {
		p.checkRows(from, applied, false)
	}
	v.checked = applied
	if tookOver := p.status.Role != v.role; tookOver || applied-v.whole >= viewWhole {
		v.role, v.whole = p.status.Role, applied
		p.checkRows(base, applied, !tookOver)
	}
}

// checkRows compares the rows behind an entry with the plain reading, or their states alone: nothing else of a row changes.
// What is behind tells their states, so no earlier row is needed.
func (p *process) checkRows(from, to uint64, states bool) {
	w := p.w
	s, err := p.view.View.Snapshot(to)
	if err != nil {
		w.violation("I29", "%s: %v", p.name, err)
		return
	}
	defer s.Release()
	state := s.View().Field(view.State)
	rows := p.plainRows(from, to)
	for seq := from + 1; seq <= to; seq++ {
		r := &rows[seq-from-1]
		if s.Has(seq) != (r.kind != 0) {
			w.violation("I29", "row %d of %s: an order's is %t, want %t", seq, p.name, s.Has(seq), r.kind != 0)
			return
		}
		for i := range s.View().Fields() {
			d := &s.View().Fields()[i]
			if r.kind == 0 || states && d != state {
				continue
			}
			if got := s.Value(d, seq); !r.is(d.Field, got) {
				w.violation("I29", "row %d of %s: %s is %v; its entry has %q, replaced or cancelled by %q", seq, p.name, d.Name, got, r.tags, r.state)
				return
			}
		}
	}
}

// plainRows is what the entries from base+1 to to are, read from the log.
func (p *process) plainRows(base, to uint64) []plainRow {
	rows := make([]plainRow, 0, to-base)
	for seq := base + 1; seq <= to; seq++ {
		rows = append(rows, p.w.check.plain[p.log.hashes[seq-1]])
	}
	return settleStates(rows)
}

// keepPlain keeps what an entry is when it is stored, for comparisons after it is freed.
func (w *world) keepPlain(hash uint64, entry []byte) {
	if _, known := w.check.plain[hash]; w.profile.views != nil && !known {
		w.check.plain[hash] = plainRowOf(entry)
	}
}

// answers reports whether questions are answered, as a node's partition does.
func (p *process) answers() bool {
	return p.alive && (p.status.Role == replica.RolePrimary || p.status.Role == replica.RoleBackup)
}

// orderHash is the hash of the entry at a place of the committed log, 0 if there is none.
func (t *timeline) hashAt(seq uint64) uint64 {
	if seq == 0 || seq > uint64(len(t.hashes)) {
		return 0
	}
	return t.hashes[seq-1]
}
