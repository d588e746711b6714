package queries

import (
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// The message of an order has its fields, and is one that a grid takes.
func TestOrders(t *testing.T) {
	o := NewOrders(5_000)
	ids := map[string]bool{}
	hot, sell := 0, 0
	for i := range o.N {
		x := o.Of(i)
		if ids[x.ID] || len(x.FIX) != orderSize {
			t.Fatalf("order %d: ClOrdID %s, %d bytes", i, x.ID, len(x.FIX))
		}
		ids[x.ID] = true
		if end := len(x.FIX) - len("10=000\x01"); order.CheckSum(x.FIX[:end]) != sumOf(x.FIX[end:]) {
			t.Fatalf("order %d: %q", i, x.FIX)
		}
		var fields, message Answer
		fields.addOrder(&x)
		if err := message.addFIX(x.FIX); err != nil || fields != message {
			t.Fatalf("order %d: %v\n%+v\n%q", i, err, x, x.FIX)
		}
		if (x.Account == hotAccount) != (x.Qty == hotQty) {
			t.Errorf("order %d: account %s, quantity %d", i, x.Account, x.Qty)
		}
		if x.Account == hotAccount {
			hot++
		}
		if x.Side == "2" {
			sell++
		}
	}
	if hot != hotRows || sell != o.sells() || sell*5 != o.N*2 {
		t.Errorf("%d of %s, wanted %d; %d sell, wanted %d", hot, hotAccount, hotRows, sell, o.sells())
	}
}

// sumOf reads 10=nnn.
func sumOf(field []byte) uint8 {
	return (field[3]-'0')*100 + (field[4]-'0')*10 + field[5] - '0'
}

// Questions find about as many rows as their names say, and an order that is not as it was loaded changes the answers.
func TestQuestions(t *testing.T) {
	o := NewOrders(50_000)
	found := map[Op]int{}
	for _, q := range o.Questions() {
		found[q.Op] = q.Want(0).Rows
	}
	if found[Get] != 1 || found[Equal] != hotRows || found[Count] != 1 || found[Group] != symbols || found[Range] < hotRows/2 || found[Range] > 2*hotRows {
		t.Errorf("%v", found)
	}
	for _, n := range []int{1_000, 1_001, 1_004} {
		o := NewOrders(n)
		sell := 0
		for i := range n {
			if sells(i) {
				sell++
			}
		}
		if sell != o.sells() {
			t.Errorf("%d of %d sell, wanted %d", sell, n, o.sells())
		}
	}
}

// An order is the same row as fields, as its message and as columns of SQL; another one is not.
func TestAnswers(t *testing.T) {
	x := NewOrders(1_000).Of(17)
	at := time.UnixMilli(x.Ms).UTC()
	cells := func(price string) []string {
		return []string{x.ID, x.Account, x.Symbol, x.Side, price, "1234", x.OrdType, x.TIF, at.Format("2006-01-02 15:04:05.999999999-07")}
	}
	x.Cents, x.Qty = 12050, 1234
	var fields, columns, zeros, other Answer
	fields.addOrder(&x)
	for price, a := range map[string]*Answer{"120.5": &columns, "120.50": &zeros, "120.51": &other} {
		if err := a.addCells(cells(price)); err != nil {
			t.Fatal(err)
		}
	}
	if fields != columns || fields != zeros || fields == other {
		t.Errorf("fields %v, columns %v and %v, another price %v", fields, columns, zeros, other)
	}
	for _, bad := range [][]string{cells("a lot"), cells("120.5")[:8], append(cells("120.5")[:8], "noon")} {
		if err := new(Answer).addCells(bad); err == nil {
			t.Errorf("%q is a row", bad)
		}
	}
}

// What does not fit is refused, with what is allowed.
func TestMemory(t *testing.T) {
	all, err := Systems(t.TempDir(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	million := &Options{Orders: 1_000_000, Changes: true}
	if said, err := Memory(all, million, 16<<10); err != nil || len(said) != len(all) {
		t.Errorf("a million orders in 16 GiB: %v, %q", err, said)
	}
	for _, c := range []struct {
		systems []System
		changes bool
		fits    bool
	}{{all[:1], false, true}, {all[:1], true, false}, {all, false, false}} {
		_, err := Memory(c.systems, &Options{Orders: 10_000_000, Changes: c.changes}, 20<<10)
		if (err == nil) != c.fits {
			t.Errorf("10 million orders, %d systems, changes %t, in 20 GiB: %v", len(c.systems), c.changes, err)
		}
	}
	if _, err := Memory(all, million, 0); err != nil {
		t.Errorf("it is not known what there is: %v", err)
	}
}
