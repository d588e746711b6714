package queries

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Op is what a question does.
type Op string

// Questions, by the words under which the peers in Java know them.
const (
	Get   Op = "get"   // an order by its ClOrdID, another one each time
	Equal Op = "equal" // orders of an account, which is indexed
	Count Op = "count" // how many have a quantity, which is not indexed
	Range Op = "range" // orders of a price and a time from and to
	Group Op = "group" // count and sum of quantity by symbol
	// Patched and PatchedSells count orders after the patch: those that look patched, and those of them that sell.
	Patched, PatchedSells Op = "patched", "patched-sells"
	// Left counts all orders.
	Left Op = "left"
)

// columns are those that an answer has of an order.
var columns = []string{"ClOrdID", "Account", "Symbol", "Side", "Price", "OrderQty", "OrdType", "TimeInForce", "TransactTime"}

// Question is one that is asked of every system.
type Question struct {
	Op Op
	// Want is the answer to it when it is asked for the i-th time.
	Want func(i int) Answer
	// keys, of Get, are the ClOrdIDs that are asked for in turn.
	keys []string
	bounds
}

// bounds of Range, each from the first to before the second.
type bounds struct{ cents, ms [2]int64 }

// rangeTicks and rangeOrders are how many prices and times are asked for: of a million orders a hundred have both.
const (
	rangeTicks  = 100
	rangeOrders = 10_000
)

func (o *Orders) bounds() bounds {
	from := o.N / 2
	to := min(o.N, from+min(rangeOrders, o.N))
	end := begins.UnixMilli() + int64(to)*dayMs/int64(o.N)
	return bounds{cents: [2]int64{leastCents + ticks/2, leastCents + ticks/2 + rangeTicks}, ms: [2]int64{o.ms(from), end}}
}

func (b *bounds) has(x *Order) bool {
	return x.Cents >= b.cents[0] && x.Cents < b.cents[1] && x.Ms >= b.ms[0] && x.Ms < b.ms[1]
}

// getKeys are how many orders are asked for by ClOrdID in turn.
const getKeys = 1_000

// Questions of all orders, with their answers, in the order of the table.
func (o *Orders) Questions() []Question {
	b := o.bounds()
	var equal, inRange, group Answer
	hot := int64(0)
	var count, sum [symbols]int64
	for i := range o.N {
		x := o.Of(i)
		if x.Account == hotAccount {
			equal.addOrder(&x)
		}
		if x.Qty == hotQty {
			hot++
		}
		if b.has(&x) {
			inRange.addOrder(&x)
		}
		s, _ := strconv.Atoi(x.Symbol[1:]) // digits
		count[s], sum[s] = count[s]+1, sum[s]+x.Qty
	}
	for s := range count {
		if count[s] > 0 {
			group.add(fmt.Sprintf("S%04d", s), strconv.FormatInt(count[s], 10), strconv.FormatInt(sum[s], 10))
		}
	}
	always := func(a Answer) func(int) Answer { return func(int) Answer { return a } }
	keys, wants := make([]string, min(getKeys, o.N)), make([]Answer, min(getKeys, o.N))
	for i := range keys {
		x := o.Of(int(mixed(uint64(i)) % uint64(o.N)))
		keys[i] = x.ID
		wants[i].addOrder(&x)
	}
	return []Question{
		{Op: Get, Want: func(i int) Answer { return wants[i%len(wants)] }, keys: keys},
		{Op: Equal, Want: always(equal)},
		{Op: Count, Want: always(counted(hot))},
		{Op: Range, Want: always(inRange), bounds: b},
		{Op: Group, Want: always(group)},
	}
}

// AfterPatch are asked when the orders that sell were patched.
func (o *Orders) AfterPatch() []Question {
	n := counted(int64(o.sells()))
	want := func(int) Answer { return n }
	return []Question{{Op: Patched, Want: want}, {Op: PatchedSells, Want: want}}
}

// AfterDrop is asked when all orders were dropped.
func AfterDrop() Question { return Question{Op: Left, Want: func(int) Answer { return counted(0) }} }

// sells is how many orders do.
func (o *Orders) sells() int { return o.N/5*2 + min(2, o.N%5) }

// key is the ClOrdID that Get asks for the i-th time.
func (q *Question) key(i int) string { return q.keys[i%len(q.keys)] }

// SQL is the question as a statement that the grid and PostgreSQL take. That of Get has the key as a parameter.
func (q *Question) SQL() string {
	orders := "select " + strings.Join(columns, ", ") + " from orders where "
	stamp := func(ms int64) string { return time.UnixMilli(ms).UTC().Format("'2006-01-02 15:04:05.000'") }
	switch q.Op {
	case Get:
		return orders + "ClOrdID = $1"
	case Equal:
		return orders + "Account = '" + hotAccount + "'"
	case Count:
		return fmt.Sprintf("select count(*) from orders where OrderQty = %d", hotQty)
	case Range:
		return orders + fmt.Sprintf("Price >= %d.%02d and Price < %d.%02d and TransactTime >= %s and TransactTime < %s",
			q.cents[0]/100, q.cents[0]%100, q.cents[1]/100, q.cents[1]%100, stamp(q.ms[0]), stamp(q.ms[1]))
	case Group:
		return "select Symbol, count(*), sum(OrderQty) from orders group by Symbol"
	case Patched:
		return "select count(*) from orders where TimeInForce = '" + patchedTIF + "'"
	case PatchedSells:
		return "select count(*) from orders where TimeInForce = '" + patchedTIF + "' and Side = '2'"
	default:
		return "select count(*) from orders"
	}
}

// cells adds an answer's row, as SQL writes its columns, to what is known of it.
func (q *Question) cells(a *Answer, row []string) error {
	switch q.Op {
	case Get, Equal, Range:
		return a.addCells(row)
	}
	a.add(row...)
	return nil
}
