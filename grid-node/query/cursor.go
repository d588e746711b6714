package query

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// Cursor is the end of a page. It has values and positions of the log only, so it goes on
// at any copy of the partition, also after a take-over.
type Cursor struct {
	At    uint64       // of the first page: all have the same rows
	Base  uint64       // of the first page
	Asked uint64       // which question it is of
	Seq   uint64       // rows: the last one of the page
	Keys  []view.Value // rows: what they are sorted by; groups: that, and their fields
}

// Asked is a hash of the question without its page.
func (q *Query) Asked() uint64 {
	p := *q
	p.At, p.From, p.After, p.Limit = 0, 0, nil, 0
	return xxhash.Sum64(p.Append(nil))
}

func (q *Query) checkCursor() error {
	c := q.After
	if c == nil {
		return nil
	}
	keys := len(q.OrderBy)
	if q.grouped() {
		keys += len(q.GroupBy)
	}
	switch {
	case c.Asked != q.Asked():
		return &Error{Where: "cursor", Value: "of another question", Allowed: "the question that it was returned for; page and limit may differ"}
	case c.At == 0 || q.At != 0 && q.At != c.At:
		return &Error{Where: "cursor", Value: fmt.Sprintf("at entry %d of a question at %d", c.At, q.At), Allowed: "the same entry"}
	case len(c.Keys) != keys:
		return &Error{Where: "cursor", Value: fmt.Sprintf("%d keys", len(c.Keys)), Allowed: fmt.Sprint(keys)}
	}
	return nil
}

// Position is the entry that a question is about, 0 for the last one.
func (q *Query) Position() uint64 {
	if q.After != nil {
		return q.After.At
	}
	return q.At
}

// resume checks that the rows of the pages to come are still there.
func (c *Cursor) resume(s *view.Snapshot, q *Query) error {
	if s.Base() <= c.Base || !q.grouped() && len(q.OrderBy) == 0 && s.Base() <= c.Seq {
		return nil
	}
	return &view.TooOldError{Base: s.Base(), Wanted: c.Base + 1}
}
