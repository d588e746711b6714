package sql

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// asker makes random statements of the subset, with what is wrong in some of them.
type asker struct {
	r    *rand.Rand
	args []string // of $1 …; nil where constants stand in the text
	bind bool
	of   []col  // the columns; nil: those of orders
	late string // the expression of a statement that is an error in some rows
}

type col struct {
	name, class string
	values      []string
}

var cols = []col{
	{"seq", "int", []string{"1", "7", "500", "2000000", "0", "-1", "7.5", "9223372036854775807", "9223372036854775808", "1e3"}},
	{"session", "int", []string{"0", "1", "3", "-2"}},
	{"clordid", "text", []string{"C000007", "C0001", "C001999", "", "c000007", "X"}},
	{"origclordid", "text", []string{"C000007", "C0000", "nothing"}},
	{"symbol", "text", []string{"IBM", "AAPL", "a", "Z", "z z", "A_B", "A%", "A", "ibm", ""}},
	{"side", "text", []string{"1", "2", "9", "12", ""}},
	{"account", "text", []string{"ACC1", "ACC4", "ACC", "ACC9", "B"}},
	{"ordtype", "text", []string{"1", "2", ""}},
	{"timeinforce", "text", []string{"0", "1", "00"}},
	{"msgtype", "text", []string{"D", "F", "G", "d"}},
	{"state", "text", []string{"new", "replaced", "cancelled", "New", ""}},
	{"desk", "text", []string{"desk 1", "desk", "nodesk"}},
	{"price", "num", []string{"125.25", "125.250", "0", "0.1", "-5", "99999999.99999999", "1234567890123.5", "125", "1e50", "-1e50", "0.00000000000000000000000001", "125.2500000000000000000000001", ".1"}},
	{"orderqty", "num", []string{"100", "1", "250.5", "1000000", "0.00000001", "77.1", "77.10"}},
	{"transacttime", "time", []string{"2026-11-21 09:30:00+00", "2026-11-21T09:15:00.5Z", "2026-11-21", "2026-11-21 10:40+01", "2026-11-21 09:30", "1999-12-31 23:59:59.999999+00"}},
	{"received", "time", []string{"2026-11-21 09:30:00+00", "2099-01-01"}},
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func (a *asker) columns() []col {
	if a.of != nil {
		return a.of
	}
	return cols
}

func (a *asker) column(class string) col {
	for {
		if c := pick(a.r, a.columns()); class == "" || c.class == class {
			return c
		}
	}
}

// constant is a value for a column: a literal, NULL, or a parameter.
func (a *asker) constant(c col) string {
	v := pick(a.r, c.values)
	if a.r.IntN(25) == 0 {
		return "NULL"
	}
	if a.r.IntN(60) == 0 { // what may be wrong
		v = pick(a.r, []string{"abc", "1.2.3.4", "2026-13-01", "", "12:00"}) // not 1.2.3, which PostgreSQL takes for a day of 2003
	}
	if a.bind && a.r.IntN(2) == 0 && !(c.name == "seq" && strings.ContainsAny(v, ".e")) {
		a.args = append(a.args, v)
		return fmt.Sprintf("$%d", len(a.args))
	}
	quoted := "'" + strings.ReplaceAll(v, "'", "''") + "'"
	switch {
	case c.class == "int" || c.class == "num":
		if a.r.IntN(3) > 0 && strings.Trim(v, "0123456789.-e") == "" && v != "" && strings.Count(v, ".") < 2 && !strings.Contains(v[1:], "-") {
			return v
		}
		if c.class == "num" && a.r.IntN(4) == 0 {
			return quoted + "::numeric"
		}
	case c.class == "time" && a.r.IntN(3) == 0:
		return "timestamptz " + quoted
	case a.r.IntN(8) == 0:
		return quoted + pick(a.r, []string{"::text", "::varchar"})
	}
	return quoted
}

func (a *asker) condition(depth int) string {
	if depth > 0 && a.r.IntN(2) == 0 {
		switch a.r.IntN(4) {
		case 0:
			return "NOT (" + a.condition(depth-1) + ")"
		case 1:
			return "(" + a.condition(depth-1) + ") IS " + pick(a.r, []string{"TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN", "NULL"})
		}
		return "(" + a.condition(depth-1) + pick(a.r, []string{" AND ", " OR ", " and ", " OR "}) + a.condition(depth-1) + ")"
	}
	return a.leaf()
}

func (a *asker) leaf() string {
	c := a.column("")
	not := pick(a.r, []string{"", "", "NOT "})
	switch n := a.r.IntN(20); {
	case n < 8:
		op := pick(a.r, []string{"=", "<>", "<", ">", "<=", ">=", "!="})
		if a.r.IntN(5) == 0 {
			return a.constant(c) + " " + op + " " + c.name
		}
		return c.name + " " + op + " " + a.constant(c)
	case n < 11:
		var list []string
		for range 1 + a.r.IntN(5) {
			list = append(list, a.constant(c))
		}
		return c.name + " " + not + "IN (" + strings.Join(list, ", ") + ")"
	case n < 13:
		return c.name + " " + not + "BETWEEN " + a.constant(c) + " AND " + a.constant(c)
	case n < 15:
		return c.name + " IS " + not + "NULL"
	case n < 17:
		c = a.column("text")
		p := strings.NewReplacer("%", `\%`, "_", `\_`).Replace(pick(a.r, c.values))
		return c.name + " " + not + "LIKE '" + p + pick(a.r, []string{"%", "%%", ""}) + "'"
	case n < 18:
		c = a.column("text")
		return c.name + pick(a.r, []string{" = ANY ", " <> ALL "}) + pick(a.r, []string{`('{IBM,"a",D,1,NULL}')`, `('{}')`, `(ARRAY['IBM', 'new', '2'])`, `('{ACC1, ACC2}'::text[])`})
	case n < 19:
		return pick(a.r, []string{"true", "false", "NULL", "1 = 1", "1 > 2", "'a' = 'b'", "NULL IS NULL", "2 BETWEEN 1 AND 3", "'x' IN ('x', NULL)"})
	}
	// What does not go together.
	c, d := a.column(""), a.column("")
	return c.name + " = " + a.constant(d)
}

func (a *asker) where() string {
	if a.r.IntN(8) == 0 {
		return ""
	}
	return " WHERE " + a.condition(3)
}

var directions = []string{"", "", " ASC", " DESC", " DESC NULLS LAST", " NULLS FIRST", " ASC NULLS LAST"}

// statement is random, with a total order where rows are limited.
func (a *asker) statement() string {
	a.args = nil
	switch a.r.IntN(4) {
	case 0:
		return a.groups()
	case 1:
		if a.r.IntN(3) == 0 {
			return a.distinct()
		}
	}
	var list []string
	if a.r.IntN(6) == 0 {
		list = []string{"*"}
	} else {
		for range 1 + a.r.IntN(4) {
			c := a.column("")
			switch n := a.r.IntN(20); {
			case n == 0 && c.class != "time":
				list = append(list, c.name+"::text")
			case n == 1:
				list = append(list, c.name+" AS "+pick(a.r, []string{"x", `"X"`, "price"}))
			case n == 2:
				list = append(list, pick(a.r, []string{"1", "'a'", "NULL", "2.50", "true"}))
			case n == 3:
				list = append(list, "orders."+c.name)
			default:
				list = append(list, c.name)
			}
		}
	}
	s := "SELECT " + strings.Join(list, ", ") + " FROM " + pick(a.r, []string{"orders", "public.orders", "orders", `"orders"`}) + a.where()
	var keys []string
	for range a.r.IntN(3) {
		if c := a.column(""); c.name != "received" && c.name != "seq" {
			keys = append(keys, "orders."+c.name+pick(a.r, directions))
		}
	}
	if len(keys) > 0 || a.r.IntN(2) == 0 {
		s += " ORDER BY " + strings.Join(append(keys, "orders.clordid"), ", ")
		if a.r.IntN(2) == 0 {
			s += fmt.Sprintf(" LIMIT %d", a.r.IntN(40))
			if a.r.IntN(3) == 0 {
				s += fmt.Sprintf(" OFFSET %d", a.r.IntN(60))
			}
		}
	}
	return s
}

var groupable = []string{"symbol", "side", "account", "ordtype", "timeinforce", "msgtype", "state", "price", "orderqty", "session", "transacttime", "desk"}

func (a *asker) groups() string {
	var by, list []string
	for range a.r.IntN(3) {
		g := pick(a.r, groupable)
		if !strings.Contains(strings.Join(by, ",")+",", g+",") {
			by = append(by, g)
		}
	}
	list = append(list, by...)
	for range 1 + a.r.IntN(3) {
		list = append(list, pick(a.r, []string{"count(*)", "count(*) AS n", "sum(price)", "sum(orderqty)", "min(price)", "max(orderqty)", "min(transacttime)", "max(seq)", "count(clordid)", "max(price)", "min(received)", "count(1)"}))
	}
	s := "SELECT " + strings.Join(list, ", ") + " FROM orders" + a.where()
	if len(by) > 0 {
		s += " GROUP BY " + strings.Join(by, ", ")
		order := append([]string(nil), by...)
		for i := range order {
			order[i] += pick(a.r, directions)
		}
		if a.r.IntN(3) == 0 {
			order = append([]string{"count(*) DESC"}, order...)
		}
		s += " ORDER BY " + strings.Join(order, ", ")
		if a.r.IntN(3) == 0 {
			s += fmt.Sprintf(" LIMIT %d", a.r.IntN(10))
		}
	}
	return s
}

func (a *asker) distinct() string {
	g, h := pick(a.r, groupable), pick(a.r, groupable)
	if g == h {
		return "SELECT DISTINCT " + g + " FROM orders" + a.where() + " ORDER BY 1" + pick(a.r, directions)
	}
	return "SELECT DISTINCT " + g + ", " + h + " FROM orders" + a.where() + " ORDER BY " + h + ", " + g + pick(a.r, directions)
}
