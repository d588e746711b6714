package sim

import (
	"errors"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// asker asks questions, page by page, each page of whichever replica answers, while primaries change. It holds what a
// client holds between pages: where the first one was cut, and a cursor. Its questions run as a node's do: on a snapshot
// that is held while the loop goes on, in steps, and the loop names the cut at the end.
type asker struct {
	w    *world
	busy *asking // nil: nothing is asked

	query  query.Query
	filter func(r *plainRow) bool
	must   answered // an order that the answer has to see, if seq is not 0
	pages  int
	cut    cut
	base   uint64
	plain  []plainRow // the reading of the committed log in the cut
	got    map[uint64]bool
}

// cut is the prefix that an answer is about.
type cut struct{ seq, hash, lineage uint64 }

// asking is a page that is being asked for.
type asking struct {
	p     *process
	view  *followed
	snap  *view.Snapshot
	exec  *query.Exec
	ended bool
}

const (
	askStep  = 16 // rows that are looked at between two events
	askPages = 400
)

func (w *world) addAskers() {
	if w.profile.views == nil {
		return
	}
	for range 2 {
		a := &asker{w: w}
		w.askers = append(w.askers, a)
		a.schedule()
	}
}

func (a *asker) schedule() {
	w := a.w
	w.after(millisecond+w.profile.views.Int64N(25*millisecond), func() {
		if a.busy == nil && !w.stopped {
			a.ask()
		}
		a.schedule()
	})
}

// begin draws another question.
func (a *asker) begin() {
	rng := a.w.profile.views
	a.query = query.Query{Select: []view.Field{view.Seq, view.ClOrdID, view.OrigClOrdID, view.State}, Limit: uint32(1 + rng.IntN(60))}
	a.filter = func(r *plainRow) bool { return r.kind != 0 }
	eq := func(f view.Field, text string, is func(r *plainRow) bool) {
		a.query.Where = &query.Expr{Op: query.Eq, Field: f, Values: []view.Value{view.TextValue(text)}}
		a.filter = func(r *plainRow) bool { return r.kind != 0 && is(r) }
	}
	switch rng.IntN(4) {
	case 0:
		eq(view.Account, "ACC2", func(r *plainRow) bool { return r.tags["1"] == "ACC2" })
	case 1:
		eq(view.State, view.StateNew, func(r *plainRow) bool { return r.state == view.StateNew })
	case 2:
		eq(view.Symbol, "SYM1", func(r *plainRow) bool { return r.tags["55"] == "SYM1" })
	}
	switch rng.IntN(4) {
	case 0:
		a.query.OrderBy = []query.Order{{Field: view.ClOrdID, Desc: true}}
	case 1:
		a.query.OrderBy = []query.Order{{Field: view.Price}}
	}
	a.pages, a.cut, a.base, a.plain, a.got, a.must = 0, cut{}, 0, nil, map[uint64]bool{}, answered{}
	if n := len(a.w.clients); n > 0 { // a standby has none
		if c := a.w.clients[rng.IntN(n)]; len(c.last) > 0 {
			a.must = c.last[len(c.last)-1]
		}
	}
}

// mustSee is the entry that a page has to see: of the first one a receipt's, of later ones the cut.
func (a *asker) mustSee() (seq, hash uint64) {
	if a.pages > 0 {
		return a.cut.seq, a.cut.hash
	}
	return a.must.seq, a.w.timeline(a.must.lineage).hashAt(a.must.seq)
}

// ask asks a replica for the next page.
func (a *asker) ask() {
	w := a.w
	if a.pages == 0 || a.pages > askPages {
		a.begin()
	}
	p := w.pods[w.profile.views.IntN(len(w.pods))].proc
	if p == nil || !p.answers() || p.paused || p.stalled || p.view == nil {
		return
	}
	seq, hash := a.mustSee()
	if seq > p.view.View.Applied() {
		return // it is behind: another one, later
	}
	if p.view.View.Incomplete() != nil && a.pages == 0 {
		return // the node tells the client that its view is incomplete
	}
	if err := p.view.Has(seq, hash); err != nil {
		a.diverged(p, seq, hash)
		return
	}
	snap, err := p.view.View.Snapshot(a.query.Position())
	if err != nil {
		a.failed(p, err)
		return
	}
	exec, err := query.OpenAt(snap, &a.query, query.Limits{})
	if err != nil {
		snap.Release()
		a.failed(p, err)
		return
	}
	a.busy = &asking{p: p, view: p.view, snap: snap, exec: exec}
	p.view.users++
	a.later()
}

// failed handles an error of a page: rows of it were dropped, or a view has ended early.
func (a *asker) failed(p *process, err error) {
	var old *view.TooOldError
	if !errors.As(err, &old) {
		a.w.violation("I29", "%s refuses a question: %v", p.name, err)
	}
	a.pages = 0
}

// diverged: an entry that is committed in the process's lineage is not of another history.
func (a *asker) diverged(p *process, seq, hash uint64) {
	if t := a.w.shown(p.lineage()); hash != 0 && t.hashAt(seq) == hash {
		a.w.violation("I29", "%s tells an asker that entry %d, which is committed in lineage %d, is of another history", p.name, seq, p.lineage())
	}
	a.w.stats.AskedOther++
	a.pages = 0
}

// later runs a step, unless the process has ended.
func (a *asker) later() {
	w, q := a.w, a.busy
	d := w.profile.views.Int64N(300 * microsecond)
	if w.profile.views.IntN(40) == 0 {
		d = w.profile.views.Int64N(200 * millisecond) // waits for a processor
	}
	w.after(d, func() {
		if q.ended || w.stopped {
			return
		}
		if q.p.paused {
			a.later()
			return
		}
		done, err := q.exec.Step(askStep)
		switch {
		case err != nil:
			w.violation("I29", "%s answers with an error: %v", q.p.name, err)
		case !done:
			a.later()
			return
		default:
			a.page(q)
		}
		a.release()
	})
}

// release ends the use of a snapshot.
func (a *asker) release() {
	if q := a.busy; q != nil {
		q.snap.Release()
		q.view.users--
		q.ended, a.busy = true, nil
	}
}

// leaveViews ends the questions to a process.
func (w *world) leaveViews(p *process) {
	for _, a := range w.askers {
		if a.busy != nil && a.busy.p == p {
			a.release()
		}
	}
}

// page takes an answer.
func (a *asker) page(q *asking) {
	w, p, r := a.w, q.p, q.exec.Result()
	if !p.answers() {
		return // the node tells the client to ask another
	}
	at := cut{r.At, p.st.HashAt(r.At), p.lineage()}
	t := w.shown(at.lineage)
	seq, hash := a.mustSee()
	switch {
	case at.seq > 0 && (at.hash == 0 || t.hashAt(at.seq) != at.hash):
		w.violation("I29", "%s answers about entry %d with hash %016x; %d entries of lineage %d are committed, that one with %016x", p.name, at.seq, at.hash, len(t.hashes), at.lineage, t.hashAt(at.seq))
	case at.seq < seq:
		w.violation("I29", "%s answers about %d entries; entry %d is acknowledged", p.name, at.seq, seq)
	case hash != 0 && t.hashAt(seq) != hash:
		w.violation("I29", "%s answers from a log with another entry %d than the one that has to be seen", p.name, seq)
	case a.pages > 0 && at.seq != a.cut.seq:
		w.violation("I29", "%s answers page %d about entry %d; the first is about %d", p.name, a.pages+1, at.seq, a.cut.seq)
	}
	if w.stopped {
		return
	}
	if a.pages == 0 {
		a.cut, a.base, a.plain = at, r.Base, w.plain(at, r.Base)
	}
	a.pages++
	a.checkPage(p, r)
	if a.query.After = r.Next; r.Next == nil && !w.stopped {
		a.checkAnswer(p)
		a.pages = 0
	}
}

// checkPage: each row of a page is of an order in the cut, there once, and tells its state there.
func (a *asker) checkPage(p *process, r *query.Result) {
	for _, row := range r.Rows {
		seq := uint64(row[0].Int)
		switch {
		case a.got[seq]:
			a.w.violation("I29", "an answer has row %d twice, the second time by %s, page %d", seq, p.name, a.pages)
			return
		case seq <= a.base || seq > a.cut.seq:
			a.w.violation("I29", "%s answers about entries %d to %d with row %d", p.name, a.base+1, a.cut.seq, seq)
			return
		}
		a.got[seq] = true
		want := &a.plain[seq-a.base-1]
		for i, f := range a.query.Select {
			if !want.is(f, row[i]) {
				a.w.violation("I29", "%s answers about entry %d, row %d: field %d is %v; the log has %q, state %q", p.name, a.cut.seq, seq, f, row[i], want.tags, want.state)
				return
			}
		}
	}
}

// checkAnswer: all pages together have every row of the cut that the question is about, and no other.
func (a *asker) checkAnswer(p *process) {
	a.w.stats.Answers++
	n := 0
	for i := range a.plain {
		r := &a.plain[i]
		if !a.filter(r) {
			continue
		}
		if n++; !a.got[r.seq] {
			a.w.violation("I29", "an answer of %d pages about entries %d to %d, the last by %s, lacks row %d", a.pages, a.base+1, a.cut.seq, p.name, r.seq)
			return
		}
	}
	if n != len(a.got) {
		a.w.violation("I29", "an answer of %d pages has %d rows, want %d", a.pages, len(a.got), n)
	}
}

// plain is the reading of the committed log behind an entry up to a cut.
func (w *world) plain(at cut, base uint64) []plainRow {
	t := w.shown(at.lineage)
	rows := make([]plainRow, 0, at.seq-base)
	for _, hash := range t.hashes[base:at.seq] {
		rows = append(rows, w.check.plain[hash])
	}
	return settleStates(rows)
}
