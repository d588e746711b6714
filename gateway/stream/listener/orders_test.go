package listener

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/shown"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestOrdersThatCannotBeShown: why there is nothing to show is said, once, also to those who come later from a later position.
// A symbol that is not traded takes no place of a book; one that cannot be shown now keeps it.
func TestOrdersThatCannotBeShown(t *testing.T) {
	for err, want := range map[error]string{
		fmt.Errorf("read: %w", &client.OldNodeError{Frame: wire.TypeReadOrders}):           oldNodes,
		fmt.Errorf("read: %w", &client.RejectError{Code: wire.CodeUnknownInstrument}):      unknown,
		fmt.Errorf("read: %w", &client.RejectError{Code: wire.CodeCapacity, Text: "many"}): tooMany,
		fmt.Errorf("read: %w", &client.RejectError{Code: wire.CodeOverloaded}):             "",
		nil: "",
	} {
		if got := noneOf(err); got != want {
			t.Errorf("%v: state %q, want %q", err, got, want)
		}
	}
	g := &generation{}
	p := &partition{g: g}
	g.parts = []*partition{p}
	b := newOrderBooks(p)
	p.orderBooks = b
	const topic = "book.IBM.L3"
	k := &book{symbol: "IBM", group: topic, orders: &orders{symbol: "IBM", prefix: "p0/"}}
	b.all["IBM"] = k
	g.countBook(k.orders, true)
	h, err := fanout.New(fanout.Config{Lineage: 3, Partitions: 1, Encodings: []fanout.Encoding{plain{}}, RingBytes: 4096, RingSlots: 16, Latest: Books, Series: ordersToken,
		Opened: func(string) (fanout.Source, int, error) { return k.orders, 0, nil }, Closed: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	subscribe := func(resume *fanout.Token) *reads {
		t.Helper()
		pattern, _ := topics.ParsePattern(topic)
		r := &reads{}
		if _, err := h.Open(r, 0).Subscribe(fanout.Subscription{Pattern: pattern, Resume: resume}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	wants := func(r *reads, kept int, states ...string) {
		t.Helper()
		h.Tick(0)
		if len(r.got) != len(states) || g.orderBooks != kept {
			t.Fatalf("sent are %q, %d books are kept, want the states %q and %d", r.got, g.orderBooks, states, kept)
		}
		for i, state := range states {
			if want := `{"symbol":"IBM","first":true,"state":"` + state + `","bids":[],"asks":[],"last":true}`; !strings.HasSuffix(r.got[i], want) {
				t.Errorf("sent is %s, want %s", r.got[i], want)
			}
		}
	}
	r := subscribe(nil)
	wants(r, 1)
	b.nothing(h, k, 5, oldNodes)
	wants(r, 1, oldNodes)
	b.nothing(h, k, 6, oldNodes)
	wants(r, 1, oldNodes)
	b.nothing(h, k, 7, unknown)
	wants(r, 0, oldNodes, unknown)

	h.Examined(0, fanout.Position{Seq: 20})
	b.touch(h, &batch{touchedAll: 20})
	token := h.Token()
	back := subscribe(&token)
	wants(back, 0)
	b.queue, k.queued = nil, false
	b.nothing(h, k, 19, unknown) // the answer may be of before the entry
	if len(b.queue) != 1 {
		t.Error("a symbol is not asked for again, although its instrument may have come")
	}
	b.nothing(h, k, 20, unknown)
	wants(back, 0, unknown)
	wants(r, 0, oldNodes, unknown)

	// The book comes.
	m := wire.OrdersShown{Seq: 21, Through: wire.OrdersAt{Seq: 21, Index: shown.All}, NOrders: 1, NBids: 1, Flags: wire.OrdersAnew | wire.OrdersComplete, To: wire.OrdersPlace{Side: wire.OrdersEnd},
		Rows: wire.AppendShownOrder(nil, &wire.ShownOrder{ID: 9, Prio: 1, Price: 5, Qty: 3})}
	if _, err := k.orders.book.Apply(&m, nil); err != nil {
		t.Fatal(err)
	}
	k.orders.none = ""
	g.countBook(k.orders, true)
	h.Restarted(topic, fanout.Position{Seq: 21}, false)
	h.Tick(0)
	if last := r.got[len(r.got)-1]; !strings.HasSuffix(last, `{"symbol":"IBM","first":true,"bids":[["p0/9","5","3"]],"asks":[],"last":true}`) || g.orderBooks != 1 {
		t.Errorf("sent is %s, %d books are kept", last, g.orderBooks)
	}
}
