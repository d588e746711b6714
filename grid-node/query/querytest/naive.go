package querytest

import (
	"math/big"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// Row is an order as its message has it.
type Row struct {
	Seq    uint64
	Values map[view.Field]view.Value
	orig   string
	kind   string
	by     int // 1 + index of the row that replaced or cancelled it
}

// row reads a message by splitting it.
func (c *Case) row(e *order.Entry, msg string) Row {
	tags := split(msg)
	r := Row{Seq: e.Seq, kind: tags["35"], Values: map[view.Field]view.Value{
		view.Seq: view.IntValue(int64(e.Seq)), view.Session: view.IntValue(int64(e.Session)), view.Received: view.TimeValue(e.TimeNs),
	}}
	for f, tag := range map[view.Field]string{view.ClOrdID: "11", view.OrigClOrdID: "41", view.Symbol: "55", view.Side: "54", view.Account: "1",
		view.OrdType: "40", view.TimeInForce: "59", view.MsgType: "35", Desk: "5001"} {
		if s, ok := tags[tag]; ok {
			r.Values[f] = view.TextValue(s)
		}
	}
	for f, tag := range map[view.Field]string{view.Price: "44", view.OrderQty: "38", Limit: "9001"} {
		if n, err := view.ParseNumber(tags[tag]); err == nil {
			r.Values[f] = view.NumberValue(n)
		}
	}
	for f, tag := range map[view.Field]string{view.TransactTime: "60", Expire: "126"} {
		if s, ok := tags[tag]; ok {
			leap := strings.Contains(s, ":60")
			t, err := time.Parse("20060102-15:04:05", strings.Replace(s, ":60", ":59", 1))
			if err != nil {
				panic(err)
			}
			if leap {
				t = t.Add(time.Second)
			}
			r.Values[f] = view.TimeValue(t.UnixNano())
		}
	}
	if r.orig = tags["41"]; r.orig != "" && r.kind != "D" {
		for i := range c.Rows {
			if s := &c.Rows[i]; s.Values[view.ClOrdID].Text == r.orig && s.kind != "F" && s.by == 0 {
				s.by = len(c.Rows) + 1
			}
		}
	}
	return r
}

// split returns the first value of each tag outside data.
func split(msg string) map[string]string {
	tags := map[string]string{}
	for msg != "" {
		tag, rest, _ := strings.Cut(msg, "=")
		value, after, _ := strings.Cut(rest, "\x01")
		if _, ok := tags[tag]; !ok {
			tags[tag] = value
		}
		if msg = after; tag == "95" {
			n, _ := strconv.Atoi(value)
			msg = msg[len("96=")+n+1:]
		}
	}
	return tags
}

// value returns a field of row i at a prefix.
func (c *Case) value(i int, f view.Field, at uint64) view.Value {
	r := &c.Rows[i]
	if f != view.State {
		return r.Values[f]
	}
	switch {
	case r.kind == "F":
		return view.Value{}
	case r.by == 0 || c.Rows[r.by-1].Seq > at:
		return view.TextValue("new")
	case c.Rows[r.by-1].kind == "F":
		return view.TextValue("cancelled")
	}
	return view.TextValue("replaced")
}

// Answer is what a question is to be answered with at a prefix, without its page and limit.
func (c *Case) Answer(q *query.Query, base, at uint64) [][]view.Value {
	var rows []int
	for i := range c.Rows {
		if s := c.Rows[i].Seq; s > base && s <= at && (q.Where == nil || c.holds(i, q.Where, at)) {
			rows = append(rows, i)
		}
	}
	var out [][]view.Value
	if len(q.GroupBy)+len(q.Aggregates) > 0 {
		return c.groups(q, rows, at)
	}
	sort.SliceStable(rows, func(a, b int) bool {
		for _, o := range q.OrderBy {
			if n := compare(c.value(rows[a], o.Field, at), c.value(rows[b], o.Field, at)); n != 0 {
				return n < 0 != o.Desc
			}
		}
		return false
	})
	for _, i := range rows {
		var v []view.Value
		for _, f := range q.Select {
			v = append(v, c.value(i, f, at))
		}
		out = append(out, v)
	}
	return out
}

// rats are numbers as big.Rat, made once: tests of this package run in one goroutine.
var rats = map[view.Number]*big.Rat{}

func rat(n view.Number) *big.Rat {
	r := rats[n]
	if r == nil {
		r, _ = new(big.Rat).SetString(n.String())
		rats[n] = r
	}
	return r
}

func compare(a, b view.Value) int {
	switch {
	case a.Kind != b.Kind:
		return int(a.Kind) - int(b.Kind)
	case a.Kind == view.Decimal:
		return rat(a.Number).Cmp(rat(b.Number))
	case a.Kind == view.Text:
		return strings.Compare(a.Text, b.Text)
	case a.Int < b.Int:
		return -1
	case a.Int > b.Int:
		return 1
	}
	return 0
}

func (c *Case) holds(i int, e *query.Expr, at uint64) bool {
	switch e.Op {
	case query.And:
		for k := range e.Args {
			if !c.holds(i, &e.Args[k], at) {
				return false
			}
		}
		return true
	case query.Or:
		for k := range e.Args {
			if c.holds(i, &e.Args[k], at) {
				return true
			}
		}
		return false
	case query.Not:
		return !c.holds(i, &e.Args[0], at)
	}
	v := c.value(i, e.Field, at)
	if v.Kind == view.Null {
		return false
	}
	switch e.Op {
	case query.Prefix:
		return strings.HasPrefix(v.Text, e.Values[0].Text)
	case query.Range:
		lo, hi := e.Values[0], e.Values[1]
		if n := compare(v, lo); lo.Kind != view.Null && (n < 0 || n == 0 && e.Above) {
			return false
		}
		n := compare(v, hi)
		return hi.Kind == view.Null || n < 0 || n == 0 && !e.Below
	case query.Present:
		return true
	}
	for _, w := range e.Values {
		if compare(v, w) == 0 {
			return true
		}
	}
	return false
}

// groups are sorted by the keys asked for and then by their fields.
func (c *Case) groups(q *query.Query, rows []int, at uint64) (out [][]view.Value) {
	index := map[string]int{}
	var members [][]int
	if len(q.GroupBy) == 0 {
		members, index[""] = [][]int{rows}, 0
	} else {
		for _, i := range rows {
			key := ""
			for _, f := range q.GroupBy {
				key += c.value(i, f, at).Kind.String() + c.value(i, f, at).String() + "\x00"
			}
			if _, ok := index[key]; !ok {
				index[key] = len(members)
				members = append(members, nil)
			}
			members[index[key]] = append(members[index[key]], i)
		}
	}
	for _, m := range members {
		var v []view.Value
		for _, f := range q.GroupBy {
			v = append(v, c.value(m[0], f, at))
		}
		for _, a := range q.Aggregates {
			v = append(v, c.aggregate(a, m, at))
		}
		out = append(out, v)
	}
	n := len(q.GroupBy)
	sort.Slice(out, func(a, b int) bool {
		for _, o := range q.OrderBy {
			k := n + o.Aggregate - 1
			for f := range q.GroupBy {
				if o.Aggregate == 0 && q.GroupBy[f] == o.Field {
					k = f
					break
				}
			}
			if d := compare(out[a][k], out[b][k]); d != 0 {
				return d < 0 != o.Desc
			}
		}
		for k := range n {
			if d := compare(out[a][k], out[b][k]); d != 0 {
				return d < 0
			}
		}
		return false
	})
	return out
}

func (c *Case) aggregate(a query.Aggregate, rows []int, at uint64) view.Value {
	if a.Func == query.Count {
		return view.IntValue(int64(len(rows)))
	}
	var best view.Value
	sum := new(big.Rat)
	for _, i := range rows {
		v := c.value(i, a.Field, at)
		switch {
		case v.Kind == view.Null:
			continue
		case a.Func == query.Sum:
			sum.Add(sum, rat(v.Number))
		case best.Kind == view.Null, a.Func == query.Min && compare(v, best) < 0, a.Func == query.Max && compare(v, best) > 0:
			best = v
		}
		if a.Func == query.Sum {
			n, err := view.ParseNumber(strings.TrimSuffix(sum.FloatString(view.MaxScale), "."))
			if err != nil {
				best = view.TextValue("overflow")
			} else {
				best = view.NumberValue(n)
			}
		}
	}
	return best
}

// Ended returns the entry that replaced or cancelled order i and its MsgType; 0 if none did.
func (c *Case) Ended(i int) (by uint64, kind string) {
	if r := &c.Rows[i]; r.by != 0 {
		return c.Rows[r.by-1].Seq, c.Rows[r.by-1].kind
	}
	return 0, ""
}
