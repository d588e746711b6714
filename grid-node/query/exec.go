package query

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// Exec answers one question on a snapshot, in steps. It is for one goroutine, as the
// snapshot is.
type Exec struct {
	s      *view.Snapshot
	q      *Query
	limits Limits
	limit  int // rows of the answer
	plan   *plan
	rows   *rowSink // of a question of rows
	groups *groupSink
	part   int // the next to scan
	from   int // place in it
	next   int // of plan.rows
	done   bool
	err    error
	answer Result
}

// sink takes the rows that the filter lets through. full reports that no more are wanted.
type sink interface {
	take(p *place, rows *bitmap) error
	full() bool
}

// Open fixes the rows of a question that it is asked of, and plans it. The snapshot must be
// released when the Exec is no longer used.
func Open(v *view.View, q *Query, l Limits) (*Exec, *view.Snapshot, error) {
	if err := q.Check(v, l); err != nil {
		return nil, nil, err
	}
	s, err := v.Snapshot(q.Position())
	if err != nil {
		return nil, nil, err
	}
	x, err := newExec(s, q, l.with())
	if err != nil {
		s.Release()
		return nil, nil, err
	}
	return x, s, nil
}

// OpenAt is Open on a snapshot that the caller has taken, at the position that Position returns, and releases.
func OpenAt(s *view.Snapshot, q *Query, l Limits) (*Exec, error) {
	if err := q.Check(s.View(), l); err != nil {
		return nil, err
	}
	return newExec(s, q, l.with())
}

func newExec(s *view.Snapshot, q *Query, l Limits) (*Exec, error) {
	if err := begin(s, q); err != nil {
		return nil, err
	}
	return execOf(s, q, l, makePlan(s, q)), nil
}

// begin lets the snapshot begin where the question does.
func begin(s *view.Snapshot, q *Query) error {
	if q.After != nil {
		if err := q.After.resume(s, q); err != nil {
			return err
		}
		s.Begin(q.After.Base) // this copy may have rows that that of the first page had dropped
	}
	if q.From != 0 {
		if s.Base() > q.From {
			return &view.TooOldError{Base: s.Base(), Wanted: q.From + 1}
		}
		s.Begin(q.From)
	}
	return nil
}

func execOf(s *view.Snapshot, q *Query, l Limits, p *plan) *Exec {
	x := &Exec{s: s, q: q, limits: l, limit: int(q.Limit), plan: p}
	if x.limit == 0 {
		x.limit = l.Rows
	}
	x.answer = Result{At: s.At(), Base: s.Base()}
	if q.After != nil {
		x.answer.Base = q.After.Base
	}
	if q.grouped() {
		x.groups = newGroups(x)
	} else {
		x.rows = newRows(x)
	}
	if q.After != nil && x.rows != nil && len(q.OrderBy) == 0 {
		x.skipTo(q.After.Seq + 1)
	}
	return x
}

// skipTo begins with a row: the page before ended there.
func (x *Exec) skipTo(row uint64) {
	if !x.plan.scan {
		for x.next < len(x.plan.rows) && x.plan.rows[x.next] < row {
			x.next++
		}
		return
	}
	for x.part < x.s.Parts() {
		p := x.s.Part(x.part)
		if row < p.First+uint64(p.To) {
			x.from = max(int(row-min(row, p.First))&^(morselRows-1), 0)
			return
		}
		x.part++
	}
}

// Way is how a question finds its rows.
type Way uint8

// Ways.
const (
	ByIndex Way = iota // rows by an index
	ByScan             // rows by a scan
	Groups             // groups, by either
	Ways
)

func (w Way) String() string {
	return [...]string{ByIndex: "index", ByScan: "scan", Groups: "groups"}[w]
}

// Way returns how the question finds its rows.
func (x *Exec) Way() Way {
	switch {
	case x.groups != nil:
		return Groups
	case x.plan.scan:
		return ByScan
	}
	return ByIndex
}

func (x *Exec) sink() sink {
	if x.groups != nil {
		return x.groups
	}
	return x.rows
}

// Step looks at some thousand rows, at least as many as given unless it is done. After an
// error the question has no answer.
func (x *Exec) Step(rows int) (done bool, err error) {
	for !x.done && x.err == nil && rows > 0 {
		n := x.step()
		rows -= n
		if x.answer.Scanned += int64(n); x.answer.Scanned > x.limits.Scan {
			x.err = &BoundError{What: "rows looked at", Limit: x.limits.Scan, Do: "ask with a narrower filter, or one that an index has"}
		}
	}
	if x.done && x.err == nil && x.answer.Columns == nil {
		x.err = x.finish()
	}
	return x.done, x.err
}

// step filters one morsel, or the rows of the index in one.
func (x *Exec) step() int {
	if x.sink().full() {
		x.done = true
		return 0
	}
	if !x.plan.scan {
		return x.stepIndex()
	}
	if x.part >= x.s.Parts() {
		x.done = true
		return 0
	}
	p := x.s.Part(x.part)
	if some, _ := x.plan.where.part(&p); !some || x.from >= p.To {
		x.part, x.from = x.part+1, 0
		return 1
	}
	x.from = max(x.from, p.From&^(morselRows-1))
	b := morsel(x.s, &p, x.from, x.plan.where)
	x.take(newPlace(x.s, &p, x.from), b)
	if x.from += morselRows; x.from >= p.To {
		x.part, x.from = x.part+1, 0
	}
	return morselRows
}

func (x *Exec) stepIndex() int {
	if x.next >= len(x.plan.rows) {
		x.done = true
		return 0
	}
	row := x.plan.rows[x.next]
	if x.rows != nil {
		x.next++
		return x.testRow(row)
	}
	p := x.s.Part(int(row>>16 - (x.s.Base()+1)>>16))
	from := int(row-p.First) &^ (morselRows - 1)
	var b bitmap
	n := 0
	for ; x.next < len(x.plan.rows); x.next++ {
		i := x.plan.rows[x.next] - p.First
		if i >= uint64(from+morselRows) {
			break
		}
		n++
		if x.s.Has(p.First+i) && x.plan.where.test(x.s, &p, int(i)) {
			b[(int(i)-from)/64] |= 1 << (i % 64)
		}
	}
	x.take(newPlace(x.s, &p, from), &b)
	return n
}

// testRow is stepIndex of one row, for questions of rows: those of an index are far apart.
func (x *Exec) testRow(row uint64) int {
	p := x.s.PartOf(row)
	if x.s.Has(row) && x.plan.where.test(x.s, &p, int(row-p.First)) {
		x.answer.Matched++
		x.err = x.rows.takeRow(row)
	}
	return 1
}

func (x *Exec) take(p *place, b *bitmap) {
	for _, w := range b {
		x.answer.Matched += int64(bits.OnesCount64(w))
	}
	x.err = x.sink().take(p, b)
}

// morsel filters the rows of a part from a place on.
func morsel(s *view.Snapshot, part *view.Part, from int, n node) *bitmap {
	var b bitmap
	for w := range b {
		b[w] = ^uint64(0)
	}
	b.bound(part.From-from, part.To-from)
	p := newPlace(s, part, from)
	n.keep(p, &b)
	isOrder(p, &b)
	return &b
}

// bound clears the bits below lo and from hi on.
func (b *bitmap) bound(lo, hi int) {
	for w := range b {
		if l := lo - w*64; l >= 64 {
			b[w] = 0
		} else if l > 0 {
			b[w] &= ^uint64(0) << l
		}
		if h := hi - w*64; h <= 0 {
			b[w] = 0
		} else if h < 64 {
			b[w] &= 1<<h - 1
		}
	}
}

// each yields the places of the bits that are set.
func (b *bitmap) each(yield func(int) bool) {
	for w, word := range b {
		for ; word != 0; word &= word - 1 {
			if !yield(w*64 + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}

func (x *Exec) finish() error {
	if x.groups != nil {
		return x.groups.finish()
	}
	return x.rows.finish()
}

// Result is the answer once Step is done.
func (x *Exec) Result() *Result { return &x.answer }

// stepRows is how many rows Run looks at between two looks at its context.
const stepRows = 1 << 16

// Run answers a question on the calling goroutine, until ctx is done.
func Run(ctx context.Context, v *view.View, q *Query, l Limits) (*Result, error) {
	x, s, err := Open(v, q, l)
	if err != nil {
		return nil, err
	}
	defer s.Release()
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("query: stopped after %d rows: %w", x.answer.Scanned, err)
		}
		if done, err := x.Step(stepRows); done || err != nil {
			return x.Result(), err
		}
	}
}
