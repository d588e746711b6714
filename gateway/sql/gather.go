package sql

import (
	"math/big"
	"slices"
	"strconv"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// Bounds of what a statement about a region keeps in the gateway: rows to be sorted, or groups.
const (
	MaxGathered      = 50_000
	MaxGatheredBytes = 16 << 20
)

// Gather makes rows in an order, or groups, of the entries of a region. It is used by one statement.
type Gather struct {
	p      *Plan
	most   int // rows that are wanted
	bytes  int
	rows   []gathered
	groups map[string]int // places in rows
	key    []byte
	next   int
}

// gathered is a row with what it is sorted by, or a group.
type gathered struct {
	row   []view.Value
	keys  []value
	slots []value
	bytes int
}

// Gathers reports whether the rows of an answer are known when all entries are.
func (p *Plan) Gathers() bool {
	return p.Region != nil && (p.Region.groups != nil || len(p.Region.order) > 0)
}

// NewGather begins without rows.
func (p *Plan) NewGather() *Gather {
	g := &Gather{p: p, most: MaxGathered}
	if n := p.Limit + p.Offset; p.Limit >= 0 && n >= 0 && n < MaxGathered {
		g.most = int(n)
	}
	if x := p.Region.groups; x != nil {
		g.most, g.groups = MaxGathered, map[string]int{}
		if len(x.by) == 0 { // there is a group, of no rows too
			g.add(gathered{slots: x.empty()})
			g.groups[""] = 0
		}
	}
	return g
}

// Bytes that are kept, about.
func (g *Gather) Bytes() int { return g.bytes }

func (g *Gather) add(x gathered) {
	g.bytes += x.bytes
	g.rows = append(g.rows, x)
}

// Add takes a row that Region.Has.
func (g *Gather) Add(row []view.Value) *Error {
	if g.groups != nil {
		return g.group(row)
	}
	x := gathered{row: row, bytes: 256 + len(row[0].Text) + len(row[1].Text)}
	for _, e := range g.p.Region.order {
		v, err := g.p.Region.b.of(row, e)
		if err != nil {
			return err
		}
		x.keys, x.bytes = append(x.keys, v), x.bytes+128+len(v.text)
	}
	g.add(x)
	if g.most < MaxGathered && (len(g.rows) >= 2*g.most+100 || g.bytes > MaxGatheredBytes) {
		g.sort()
		for _, x := range g.rows[min(g.most, len(g.rows)):] {
			g.bytes -= x.bytes
		}
		clear(g.rows[min(g.most, len(g.rows)):])
		g.rows = g.rows[:min(g.most, len(g.rows))]
	}
	return g.bounded("rows are sorted", "Narrow WHERE, or limit the rows (LIMIT).")
}

func (g *Gather) bounded(what, hint string) *Error {
	if len(g.rows) > MaxGathered || g.bytes > MaxGatheredBytes {
		return Refuse(StateTooLarge, "more than %d %s in the gateway, or %d MiB of them", MaxGathered, what, MaxGatheredBytes>>20).hint("%s", hint)
	}
	return nil
}

// group counts a row in its group.
func (g *Gather) group(row []view.Value) *Error {
	r := g.p.Region
	g.key = g.key[:0]
	by := make([]value, 0, maxRegionGroupBy)
	for _, e := range r.groups.by {
		v, err := r.b.of(row, e)
		if err != nil {
			return err
		}
		by, g.key = append(by, v), v.appendKey(g.key)
	}
	i, there := g.groups[string(g.key)]
	if !there {
		x := gathered{slots: r.groups.empty(), bytes: 512 + 2*len(g.key) + 128*len(r.groups.aggs)}
		copy(x.slots, by)
		i = len(g.rows)
		g.groups[string(g.key)] = i
		g.add(x)
	}
	for n := range r.groups.aggs {
		a := &r.groups.aggs[n]
		s := &g.rows[i].slots[aggregateSlots+n]
		before := len(s.text)
		if err := r.b.count1(a, s, row); err != nil {
			return err
		}
		g.bytes += len(s.text) - before
	}
	return g.bounded("groups are made", "Narrow WHERE, or group by what more rows share.")
}

// empty are the slots of a group without rows.
func (x *regionGroups) empty() []value {
	s := make([]value, aggregateSlots+len(x.aggs))
	for i := range x.aggs {
		s[aggregateSlots+i] = value{at: -1, typ: x.aggs[i].typ, null: true}
		if x.aggs[i].name == "count" {
			s[aggregateSlots+i] = value{at: -1, typ: Int8, num: decInt(0)}
		}
	}
	return s
}

// count1 adds a row to an aggregate.
func (b *binder) count1(a *aggregateOf, s *value, row []view.Value) *Error {
	var v value
	if a.arg != nil {
		var err *Error
		if v, err = b.of(row, a.arg); err != nil {
			return err
		}
		if v.null {
			return nil
		}
	}
	if a.name == "count" {
		s.num.m.Add(s.num.m, big.NewInt(1))
		return nil
	}
	v.typ = a.typ
	switch {
	case s.null:
		*s = v
	case a.name == "sum":
		s.num = s.num.add(v.num, 1)
	case a.name == "min" && compareValues(&v, s) < 0, a.name == "max" && compareValues(&v, s) > 0:
		*s = v
	}
	if lo, hi, whole := limitsOf(a.typ); a.name == "sum" && whole && (s.num.m.Cmp(lo) < 0 || s.num.m.Cmp(hi) > 0) {
		return Refuse(StateRange, "%s out of range", a.typ)
	}
	return nil
}

// appendKey writes what is the same for equal values.
func (v *value) appendKey(b []byte) []byte {
	if v.null {
		return append(b, 0)
	}
	var s string
	switch v.typ.class() {
	case numeric:
		d := v.num
		for ten := big.NewInt(10); d.scale > 0; {
			q, r := new(big.Int).QuoRem(d.m, ten, new(big.Int))
			if r.Sign() != 0 {
				break
			}
			d = dec{q, d.scale - 1}
		}
		s = d.String()
	case temporal:
		s = strconv.FormatInt(v.us, 10)
	case boolean:
		s = strconv.FormatBool(v.b)
	default:
		s = v.text
	}
	b = append(strconv.AppendInt(append(b, 1), int64(len(s)), 10), ':')
	return append(b, s...)
}

// Sort is called when all rows are there: of groups their order needs what was counted.
func (g *Gather) Sort() *Error {
	r := g.p.Region
	if g.groups != nil && len(r.order) > 0 {
		for i := range g.rows {
			x := &g.rows[i]
			for _, e := range r.order {
				v, err := r.b.ofGroup(x.slots, e)
				if err != nil {
					return err
				}
				x.keys = append(x.keys, v)
			}
		}
	}
	if len(r.order) > 0 {
		g.sort()
	}
	return nil
}

// ofGroup computes an expression of a group.
func (b *binder) ofGroup(slots []value, e expr) (value, *Error) {
	b.slots = slots
	v, err := b.eval(e)
	b.slots = nil
	return v, err
}

func (g *Gather) sort() {
	keys := g.p.Keys
	slices.SortStableFunc(g.rows, func(x, y gathered) int {
		for i := range keys {
			k, a, b := &keys[i], &x.keys[i], &y.keys[i]
			if a.null || b.null {
				switch {
				case a.null == b.null:
					continue
				case a.null == k.NullsFirst:
					return -1
				}
				return 1
			}
			if c := compareValues(a, b); c != 0 {
				if k.Desc {
					return -c
				}
				return c
			}
		}
		return 0
	})
}

// Next is a row of the answer, or what Plan.EncodeGroup takes; false: there is none.
func (g *Gather) Next() (row []view.Value, group Counted, ok bool) {
	if g.next == len(g.rows) {
		return nil, nil, false
	}
	x := &g.rows[g.next]
	g.next++
	row, group = x.row, x.slots
	g.bytes -= x.bytes
	*x = gathered{}
	return row, group, true
}

// Counted is a group, as Gather has it.
type Counted []value
