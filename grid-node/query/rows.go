package query

import (
	"container/heap"
	"encoding/binary"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// valueBytes is what a value takes in memory beside its text.
const valueBytes = 56

func sizeOf(values []view.Value) (n int64) {
	for _, v := range values {
		n += valueBytes + int64(len(v.Text))
	}
	return n
}

// encodedSize is how long AppendRow is at most.
func encodedSize(values []view.Value) (n int64) {
	n = binary.MaxVarintLen16
	for _, v := range values {
		switch v.Kind {
		case view.Text:
			n += 1 + binary.MaxVarintLen32 + int64(len(v.Text))
		case view.Decimal:
			n += 18
		default:
			n += 1 + binary.MaxVarintLen64
		}
	}
	return n
}

// rowSink keeps the rows of a page.
type rowSink struct {
	x     *Exec
	defs  []*view.Def // selected
	keys  []*view.Def // sorted by
	rows  rowHeap     // in the order of the log without keys, else the last one first
	spare []view.Value
	used  int64
	more  bool
}

// keyedRow is a row with what it is sorted by.
type keyedRow struct {
	row  uint64
	keys []view.Value
}

func newRows(x *Exec) *rowSink {
	k := &rowSink{x: x}
	v := x.s.View()
	for _, f := range x.q.Select {
		d := v.Field(f)
		k.defs = append(k.defs, d)
	}
	for _, o := range x.q.OrderBy {
		k.keys = append(k.keys, v.Field(o.Field))
	}
	k.rows.order = x.q.OrderBy
	return k
}

func (k *rowSink) full() bool { return k.more && len(k.keys) == 0 }

func (k *rowSink) take(p *place, rows *bitmap) error {
	for i := range rows.each {
		if err := k.takeRow(p.part.First + uint64(p.from+i)); err != nil || k.full() {
			return err
		}
	}
	return nil
}

func (k *rowSink) takeRow(row uint64) error {
	after := k.x.q.After
	switch {
	case len(k.keys) > 0:
		return k.sort(row)
	case after != nil && row <= after.Seq:
	case len(k.rows.rows) == k.x.limit:
		k.more = true
	default:
		k.rows.rows = append(k.rows.rows, keyedRow{row: row})
	}
	return nil
}

// sort keeps a row if it is among the first of the page.
func (k *rowSink) sort(row uint64) error {
	r := keyedRow{row: row, keys: k.spare[:0]}
	p := k.x.s.PartOf(row)
	for _, d := range k.keys {
		r.keys = append(r.keys, k.x.s.ValueAt(&p, d, uint32(row-p.First)))
	}
	k.spare = r.keys
	if a := k.x.q.After; a != nil && !k.rows.before(keyedRow{row: a.Seq, keys: a.Keys}, r) {
		return nil
	}
	if len(k.rows.rows) == k.x.limit {
		k.more = true
		if !k.rows.before(r, k.rows.rows[0]) {
			return nil
		}
		k.used += sizeOf(r.keys) - sizeOf(k.rows.rows[0].keys)
		k.spare, k.rows.rows[0] = k.rows.rows[0].keys, r
		heap.Fix(&k.rows, 0)
	} else {
		k.used += sizeOf(r.keys)
		k.spare = nil
		heap.Push(&k.rows, r)
	}
	return k.bound(k.used)
}

func (k *rowSink) bound(used int64) error {
	if l := k.x.limits.Memory; used > l {
		return &BoundError{What: "bytes of rows", Limit: l, Do: "ask with a smaller limit, or for fewer fields"}
	}
	return nil
}

func (k *rowSink) finish() error {
	x, rows := k.x, k.rows.rows
	x.answer.Columns = make([]Column, 0, len(k.defs))
	for _, d := range k.defs {
		x.answer.Columns = append(x.answer.Columns, Column{d.Name, d.Kind})
	}
	if len(k.keys) > 0 {
		slices.SortFunc(rows, func(a, b keyedRow) int {
			if k.rows.before(a, b) {
				return -1
			}
			return 1
		})
	}
	values := make([]view.Value, 0, len(rows)*len(k.defs))
	page := int64(0)
	for i, r := range rows {
		from := len(values)
		p := x.s.PartOf(r.row)
		for _, d := range k.defs {
			values = append(values, x.s.ValueAt(&p, d, uint32(r.row-p.First)))
		}
		out := values[from:len(values):len(values)]
		if page += encodedSize(out); page > x.limits.Page && i > 0 {
			k.more, rows = true, rows[:i]
			break
		}
		x.answer.Rows = append(x.answer.Rows, out)
		k.used += sizeOf(out)
		if err := k.bound(k.used); err != nil {
			return err
		}
	}
	if k.more {
		last := rows[len(rows)-1]
		x.answer.Next = &Cursor{At: x.s.At(), Base: x.answer.Base, Asked: x.q.Asked(), Seq: last.row, Keys: last.keys}
	}
	return nil
}

// rowHeap has the row that comes last at its top.
type rowHeap struct {
	order []Order
	rows  []keyedRow
}

// before reports whether a comes before b.
func (h *rowHeap) before(a, b keyedRow) bool {
	if c := CompareKeys(h.order, a.keys, b.keys); c != 0 {
		return c < 0
	}
	return a.row < b.row
}

// CompareKeys compares the values that rows are sorted by: there may be more behind them.
func CompareKeys(order []Order, a, b []view.Value) int {
	for i, o := range order {
		if c := a[i].Compare(&b[i]); c != 0 {
			if o.Desc {
				return -c
			}
			return c
		}
	}
	return 0
}

func (h *rowHeap) Len() int           { return len(h.rows) }
func (h *rowHeap) Less(i, j int) bool { return h.before(h.rows[j], h.rows[i]) }
func (h *rowHeap) Swap(i, j int)      { h.rows[i], h.rows[j] = h.rows[j], h.rows[i] }
func (h *rowHeap) Push(r any)         { h.rows = append(h.rows, r.(keyedRow)) }
func (h *rowHeap) Pop() any           { panic("query: rows are replaced, never taken out") }
