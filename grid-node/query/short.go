package query

import (
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// ShortBytes bounds a question that a node answers at once.
const ShortBytes = 512

// shortTerms bounds the terms of a filter that each row of a short question is held against.
const shortTerms = 8

// ShortAt is OpenAt of a question for rows by one ClOrdID or OrigClOrdID, which are found by
// looking at no more than a number of rows: one Step of that many answers it, in some
// microseconds. It returns nil for every other question, whether OpenAt takes it or not.
func ShortAt(s *view.Snapshot, q *Query, l Limits, rows int) *Exec {
	if q.Where == nil || q.grouped() || q.After != nil || q.Position() != 0 || q.From != 0 {
		return nil
	}
	key := keyOf(s.View(), q.Where)
	if key == nil || q.Check(s.View(), l) != nil {
		return nil
	}
	p := &plan{where: compile(s.View(), q.Where)}
	d := s.View().Field(key.Field)
	if !s.NamedWithin(d, key.Values[0].Text, rows, func(row uint64) bool {
		p.rows = append(p.rows, row)
		return true
	}) {
		return nil
	}
	slices.Sort(p.rows)
	return execOf(s, q, l.with(), p)
}

// keyOf returns the term of a filter that names the rows by their key; nil if it has none, or
// more than a few terms.
func keyOf(v *view.View, e *Expr) *Expr {
	if e.Op == And {
		if len(e.Args) > shortTerms {
			return nil
		}
		var key *Expr
		for i := range e.Args {
			a := &e.Args[i]
			if len(a.Args) > 0 || len(a.Values) > shortTerms {
				return nil
			}
			if k := keyOf(v, a); k != nil {
				key = k
			}
		}
		return key
	}
	if d := v.Field(e.Field); e.Op == Eq && d != nil && d.Unique() && len(e.Values) == 1 && e.Values[0].Kind == view.Text {
		return e
	}
	return nil
}
