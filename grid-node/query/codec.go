package query

import (
	"encoding/binary"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// codecVersion is the first byte of an encoded question.
const codecVersion = 1

// maxText is the longest text of a value in bytes.
const maxText = 1 << 16

// Flags of a question and of a filter's operator.
const (
	hasWhere = 1 << iota
	hasAfter

	isAbove = 1 << 6
	isBelow = 1 << 7
)

// Append appends the question's bytes: numbers as uvarints, lists with their length before
// them, a filter in prefix order. A question has one encoding.
func (q *Query) Append(b []byte) []byte {
	flags := byte(0)
	if q.Where != nil {
		flags |= hasWhere
	}
	if q.After != nil {
		flags |= hasAfter
	}
	b = append(b, codecVersion, flags)
	b = binary.AppendUvarint(binary.AppendUvarint(b, q.At), q.From)
	b = binary.AppendUvarint(b, uint64(q.Limit))
	b = appendFields(appendFields(b, q.Select), q.GroupBy)
	b = binary.AppendUvarint(b, uint64(len(q.Aggregates)))
	for _, a := range q.Aggregates {
		b = binary.AppendUvarint(append(b, byte(a.Func)), uint64(a.Field))
	}
	b = binary.AppendUvarint(b, uint64(len(q.OrderBy)))
	for _, o := range q.OrderBy {
		b = append(b, byte(bit(o.Desc)))
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(o.Field)), uint64(o.Aggregate))
	}
	if q.Where != nil {
		b = q.Where.append(b)
	}
	if c := q.After; c != nil {
		b = c.append(b)
	}
	return b
}

func appendFields(b []byte, fields []view.Field) []byte {
	b = binary.AppendUvarint(b, uint64(len(fields)))
	for _, f := range fields {
		b = binary.AppendUvarint(b, uint64(f))
	}
	return b
}

func (e *Expr) append(b []byte) []byte {
	op := byte(e.Op)
	if e.Above {
		op |= isAbove
	}
	if e.Below {
		op |= isBelow
	}
	b = append(b, op)
	if e.Op <= Not {
		b = binary.AppendUvarint(b, uint64(len(e.Args)))
		for i := range e.Args {
			b = e.Args[i].append(b)
		}
		return b
	}
	return appendValues(binary.AppendUvarint(b, uint64(e.Field)), e.Values)
}

func appendValues(b []byte, values []view.Value) []byte {
	b = binary.AppendUvarint(b, uint64(len(values)))
	for _, v := range values {
		b = append(b, byte(v.Kind))
		switch v.Kind {
		case view.Text:
			b = append(binary.AppendUvarint(b, uint64(len(v.Text))), v.Text...)
		case view.Decimal:
			b = append(le.AppendUint64(le.AppendUint64(b, uint64(v.Number.Hi)), v.Number.Lo), v.Number.Scale)
		case view.Int, view.Time:
			b = binary.AppendVarint(b, v.Int)
		}
	}
	return b
}

// Decode reads a question. It checks bounds of size, but not fields and values: see Check.
func Decode(b []byte, l Limits) (*Query, error) {
	l = l.with()
	if len(b) > l.Bytes {
		return nil, &Error{Where: "question", Value: fmt.Sprintf("%d bytes", len(b)), Allowed: fmt.Sprintf("at most %d", l.Bytes)}
	}
	r := reader{b: b, l: l, size: len(b)}
	q := r.query()
	if r.err == nil && len(r.b) > 0 {
		r.fail("bytes after the question", len(r.b), "0")
	}
	if r.err != nil {
		return nil, r.err
	}
	return q, nil
}

// reader reads a question; after an error everything it reads is zero.
type reader struct {
	b     []byte
	size  int
	text  string // all bytes, which texts are parts of; "" where each is a copy
	l     Limits
	terms int
	err   error
}

func (r *reader) fail(what string, value any, allowed string) {
	if r.err == nil {
		r.err = &Error{Where: "question", Value: fmt.Sprintf("%s at byte %d: %v", what, r.size-len(r.b), value), Allowed: allowed}
	}
	r.b = nil
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail("end", "no more bytes", "a whole question")
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) uint(limit uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > limit || n > 1 && r.b[n-1] == 0 {
		r.fail("number", v, fmt.Sprintf("0 to %d in its shortest form", limit))
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 || n > 1 && r.b[n-1] == 0 {
		r.fail("number", v, "64 bits in their shortest form")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) u64() uint64 {
	if len(r.b) < 8 {
		r.fail("end", "no more bytes", "a whole question")
		return 0
	}
	v := le.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

const (
	maxUint  = 1<<64 - 1
	maxField = 1<<32 - 1
)

func (r *reader) query() *Query {
	q := &Query{}
	if v := r.byte(); v != codecVersion && r.err == nil {
		r.fail("version", v, fmt.Sprint(codecVersion))
	}
	flags := r.byte()
	if flags > hasWhere|hasAfter {
		r.fail("flags", flags, "0 to 3")
	}
	q.At, q.From = r.uint(maxUint), r.uint(maxUint)
	q.Limit = uint32(r.uint(1<<32 - 1))
	q.Select, q.GroupBy = r.fields(), r.fields()
	for range r.uint(uint64(r.l.Fields)) {
		q.Aggregates = append(q.Aggregates, Aggregate{Func: Func(r.byte()), Field: view.Field(r.uint(maxField))})
	}
	for range r.uint(uint64(r.l.Fields)) {
		desc := r.byte()
		if desc > 1 {
			r.fail("direction", desc, "0 ascending, 1 descending")
		}
		q.OrderBy = append(q.OrderBy, Order{Desc: desc == 1, Field: view.Field(r.uint(maxField)), Aggregate: int(r.uint(1 << 16))})
	}
	if flags&hasWhere != 0 {
		e := r.expr(1)
		q.Where = &e
	}
	if flags&hasAfter != 0 {
		q.After = r.cursor()
	}
	return q
}

func (r *reader) fields() (fields []view.Field) {
	for range r.uint(uint64(r.l.Fields)) {
		fields = append(fields, view.Field(r.uint(maxField)))
	}
	return fields
}

func (r *reader) expr(depth int) (e Expr) {
	op := r.byte()
	e.Op, e.Above, e.Below = Op(op&^(isAbove|isBelow)), op&isAbove != 0, op&isBelow != 0
	if r.terms++; r.terms > r.l.Terms || depth > r.l.Depth {
		r.fail("filter", fmt.Sprintf("operator %d at depth %d", r.terms, depth), fmt.Sprintf("%d operators and values, %d deep", r.l.Terms, r.l.Depth))
		return e
	}
	if e.Op == 0 || e.Op >= ops {
		r.fail("operator", uint8(e.Op), "1 to 8")
		return e
	}
	if e.Op <= Not {
		for range r.uint(uint64(r.l.Terms)) {
			if e.Args = append(e.Args, r.expr(depth+1)); r.err != nil {
				return e
			}
		}
		return e
	}
	e.Field = view.Field(r.uint(maxField))
	e.Values = r.values()
	return e
}

func (r *reader) values() (values []view.Value) {
	for range r.uint(uint64(r.l.Terms)) {
		if r.terms++; r.terms > r.l.Terms {
			r.fail("values", r.terms, fmt.Sprintf("%d operators and values", r.l.Terms))
		}
		if r.err != nil {
			return nil
		}
		values = append(values, r.value())
	}
	return values
}

func (r *reader) value() (v view.Value) {
	v.Kind = view.Kind(r.byte())
	switch v.Kind {
	case view.Null:
	case view.Text:
		n := int(r.uint(maxText))
		if n > len(r.b) {
			r.fail("text", n, fmt.Sprintf("at most the %d bytes that are left", len(r.b)))
			return v
		}
		if at := r.size - len(r.b); r.text != "" && n > 0 {
			v.Text = r.text[at : at+n]
		} else {
			v.Text = string(r.b[:n])
		}
		r.b = r.b[n:]
	case view.Decimal:
		v.Number = view.Number{Hi: int64(r.u64()), Lo: r.u64(), Scale: r.byte()}
		if r.err == nil && !v.Number.Canonical() {
			r.fail("decimal", v.Number.Scale, "no zeros at the end, at most 19 digits behind the point")
		}
	case view.Int, view.Time:
		v.Int = r.int()
	default:
		r.fail("kind", uint8(v.Kind), "0 null, 1 integer, 2 decimal, 3 time, 4 text")
	}
	return v
}
