package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// A plan is how the rows of a question are found: by one index, whose rows are then tested,
// or by a scan.
type plan struct {
	where  node
	rows   []uint64 // of the index, rising; nil with scan
	scan   bool
	reason string
}

// indexShare is the share of rows, one in so many, up to which an index is used: a row by
// index costs about as much as that many in a scan.
const indexShare = 16

// maxCandidates bounds the rows that are taken from an index.
const maxCandidates = 1 << 20

// maxUnsorted is how many parts without a sorted run a plan scans for a range: plans are not
// made in steps.
const maxUnsorted = 2

// candidate is a term of the filter that an index can answer.
type candidate struct {
	e     *Expr
	d     *view.Def
	count int64
	rows  func(add func(row uint64) bool) (complete bool)
}

func makePlan(s *view.Snapshot, q *Query) *plan {
	p := &plan{where: anyNode(true), scan: true, reason: "there is no filter"}
	if q.Where == nil {
		return p
	}
	p.where = compile(s.View(), q.Where)
	total := int64(s.At() - s.Base())
	limit := min(max(total/indexShare, 1), maxCandidates)
	var best *candidate
	for _, c := range candidates(s, q.Where, p.where) {
		if best == nil || c.count < best.count {
			best = &c
		}
	}
	switch {
	case best == nil:
		p.reason = "no index has a term that every row must meet"
		return p
	case best.count > limit && !best.d.Unique():
		p.reason = fmt.Sprintf("%s has about %d rows by index, more than %d", best.d.Name, best.count, limit)
		return p
	}
	rows := make([]uint64, 0, min(best.count, maxCandidates)+1)
	if !best.rows(func(row uint64) bool {
		rows = append(rows, row)
		return len(rows) <= maxCandidates
	}) {
		p.reason = "rows were dropped while the index was read"
		return p
	}
	if len(rows) > maxCandidates {
		p.reason = fmt.Sprintf("%s has more than %d rows by index", best.d.Name, maxCandidates)
		return p
	}
	slices.Sort(rows)
	p.rows, p.scan = slices.Compact(rows), false
	p.reason = fmt.Sprintf("%s of %s has about %d rows", best.e.Op, best.d.Name, best.count)
	return p
}

// candidates returns the terms that every row must meet and an index has.
func candidates(s *view.Snapshot, e *Expr, where node) (all []candidate) {
	if e.Op == And {
		for i := range e.Args {
			all = append(all, candidates(s, &e.Args[i], where)...)
		}
		return all
	}
	d := s.View().Field(e.Field)
	switch {
	case d == nil:
	case (e.Op == Eq || e.Op == In) && d.Indexed():
		all = append(all, equal(s, d, e))
	case (e.Op == Eq || e.Op == Range) && d.Ordered():
		if c, ok := ordered(s, d, e, where); ok {
			all = append(all, c)
		}
	}
	return all
}

// equal is the candidate of texts with postings or a hash index.
func equal(s *view.Snapshot, d *view.Def, e *Expr) candidate {
	c := candidate{e: e, d: d}
	if d.Unique() {
		c.count = int64(len(e.Values))
		c.rows = func(add func(uint64) bool) bool {
			for _, v := range e.Values {
				s.Named(d, v.Text, add)
			}
			return true
		}
		return c
	}
	var codes []uint32
	for _, v := range e.Values {
		if code := d.CodeOf(v.Text); code != 0 {
			codes = append(codes, code)
			c.count += int64(s.Count(d, code))
		}
	}
	c.rows = func(add func(uint64) bool) bool {
		for _, code := range codes {
			if !s.Posted(d, code, add) {
				return false
			}
		}
		return true
	}
	return c
}

// ordered is the candidate of a range in sorted runs. Parts without one are scanned for it.
func ordered(s *view.Snapshot, d *view.Def, e *Expr, where node) (candidate, bool) {
	r := *e
	if e.Op == Eq {
		r.Values = []view.Value{e.Values[0], e.Values[0]}
	}
	n := oneRange(d, r.Values[0], r.Values[1], r.Above, r.Below)
	var lo, hi int64
	switch n := n.(type) {
	case *fixedNode:
		lo, hi = n.lo, n.hi
	case *timeNode:
		lo, hi = n.lo, n.hi
	default:
		return candidate{}, false
	}
	c := candidate{e: e, d: d}
	type found struct {
		p      view.Part
		places []uint16
		run    bool
	}
	var parts []found
	unsorted := 0
	for i := range s.Parts() {
		p := s.Part(i)
		if some, _ := where.part(&p); !some {
			continue
		}
		places, ok := runOf(&p, d, lo, hi)
		parts = append(parts, found{p, places, ok})
		c.count += int64(len(places))
		if !ok {
			c.count += int64(p.To-p.From) / (4 * indexShare)
			if unsorted++; unsorted > maxUnsorted {
				return c, false
			}
		}
	}
	c.rows = func(add func(uint64) bool) bool {
		for i := range parts {
			p := &parts[i].p
			if !parts[i].run {
				if !scanPart(s, p, n, add) {
					return true
				}
				continue
			}
			for _, x := range parts[i].places {
				if int(x) >= p.From && !add(p.First+uint64(x)) {
					return true
				}
			}
		}
		return true
	}
	return c, true
}

// runOf returns the places of a range by a sorted run. Where decimals are not in the column
// the part has to be scanned.
func runOf(p *view.Part, d *view.Def, lo, hi int64) ([]uint16, bool) {
	if _, _, far, ok := p.Zone(d); !ok || far {
		return nil, false
	}
	if lo > hi {
		return nil, true
	}
	return p.Ordered(d, lo, hi)
}

// scanPart calls add with the rows of a part that a filter lets through.
func scanPart(s *view.Snapshot, p *view.Part, n node, add func(uint64) bool) bool {
	for from := p.From &^ (morselRows - 1); from < p.To; from += morselRows {
		rows := morsel(s, p, from, n)
		for i := range rows.each {
			if !add(p.First + uint64(from+i)) {
				return false
			}
		}
	}
	return true
}

// Explain tells how a question is answered.
func (x *Exec) Explain() string {
	var b strings.Builder
	v := x.s.View()
	fmt.Fprintf(&b, "rows %d to %d\n", x.s.Base()+1, x.s.At())
	if x.plan.scan {
		fmt.Fprintf(&b, "scan of %d rows in %d parts: %s\n", x.s.At()-x.s.Base(), x.s.Parts(), x.plan.reason)
	} else {
		fmt.Fprintf(&b, "index, %d rows: %s\n", len(x.plan.rows), x.plan.reason)
	}
	if x.q.Where != nil {
		fmt.Fprintf(&b, "filter on columns: %s\n", describe(v, x.q.Where))
	}
	switch {
	case x.groups != nil:
		fmt.Fprintf(&b, "groups: at most %d\n", x.limits.Groups)
	case len(x.q.OrderBy) > 0:
		fmt.Fprintf(&b, "sort: the first %d rows\n", x.limit)
	default:
		fmt.Fprintf(&b, "in the order of the log, until %d rows\n", x.limit)
	}
	return b.String()
}

// describe is a filter as text, cut where it is long.
func describe(v *view.View, e *Expr) string {
	const most = 200
	switch e.Op {
	case And, Or:
		var parts []string
		n := 0
		for i := range e.Args {
			parts = append(parts, describe(v, &e.Args[i]))
			if n += len(parts[i]); n > most {
				parts = append(parts, "…")
				break
			}
		}
		return "(" + strings.Join(parts, " "+e.Op.String()+" ") + ")"
	case Not:
		return "not " + describe(v, &e.Args[0])
	}
	text := v.Field(e.Field).Name + " " + e.Op.String()
	for i, x := range e.Values {
		if i == 5 {
			return text + " …"
		}
		text += " " + x.String()
	}
	return text
}
