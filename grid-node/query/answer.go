package query

import (
	"encoding/binary"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// AppendRow appends a row's bytes: its values, as in a question.
func AppendRow(b []byte, row []view.Value) []byte { return appendValues(b, row) }

// DecodeRows reads n rows of as many values each. They share memory: the texts one copy of b, the values one piece.
func DecodeRows(b []byte, n int) (rows [][]view.Value, err error) {
	r := reader{b: b, size: len(b), text: string(b), l: Limits{Terms: len(b)}}
	width, _ := binary.Uvarint(b)
	if n < 0 || n > len(b) || width > uint64(len(b)) || uint64(n)*width > uint64(len(b)) { // a value has a byte
		r.fail("rows", fmt.Sprintf("%d of %d values", n, width), fmt.Sprintf("at most %d values in %d bytes", len(b), len(b)))
		return nil, r.err
	}
	rows, all := make([][]view.Value, 0, n), make([]view.Value, 0, n*int(width))
	for range n {
		from := len(all)
		if w := r.uint(uint64(len(b))); w != width {
			r.fail("row", fmt.Sprintf("%d values", w), fmt.Sprintf("%d, as the first one has", width))
		}
		for range width {
			all = append(all, r.value())
		}
		if r.err != nil {
			return nil, r.err
		}
		rows = append(rows, all[from:len(all):len(all)])
	}
	if len(r.b) > 0 {
		r.fail("bytes after the rows", len(r.b), "0")
	}
	return rows, r.err
}

// AppendHead appends the part of an answer that is not rows: columns, and the next page.
func AppendHead(b []byte, a *Result) []byte {
	b = append(b, byte(bit(a.Next != nil)))
	b = binary.AppendUvarint(b, uint64(len(a.Columns)))
	for _, c := range a.Columns {
		b = append(binary.AppendUvarint(b, uint64(len(c.Name))), c.Name...)
		b = append(b, byte(c.Kind))
	}
	if a.Next != nil {
		b = a.Next.append(b)
	}
	return b
}

// maxColumns of an answer: selected fields, or groups and aggregates.
const maxColumns = 256

// DecodeHead reads what AppendHead wrote.
func DecodeHead(b []byte) (columns []Column, next *Cursor, err error) {
	r := reader{b: b, size: len(b), l: Limits{}.with()}
	more := r.byte()
	if more > 1 {
		r.fail("next", more, "0 no, 1 yes")
	}
	for range r.uint(maxColumns) {
		n := int(r.uint(maxText))
		if n >= len(r.b) {
			r.fail("column", n, fmt.Sprintf("less than the %d bytes that are left", len(r.b)))
			break
		}
		c := Column{Name: string(r.b[:n]), Kind: view.Kind(r.b[n])}
		r.b = r.b[n+1:]
		columns = append(columns, c)
	}
	if more == 1 {
		next = r.cursor()
	}
	if r.err == nil && len(r.b) > 0 {
		r.fail("bytes after the answer", len(r.b), "0")
	}
	if r.err != nil {
		return nil, nil, r.err
	}
	return columns, next, nil
}

func (c *Cursor) append(b []byte) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, c.At), c.Base)
	b = binary.AppendUvarint(le.AppendUint64(b, c.Asked), c.Seq)
	return appendValues(b, c.Keys)
}

func (r *reader) cursor() *Cursor {
	return &Cursor{At: r.uint(maxUint), Base: r.uint(maxUint), Asked: r.u64(), Seq: r.uint(maxUint), Keys: r.values()}
}
