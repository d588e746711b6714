package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	ogclient "github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/shown"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// exchangeGrid is a grid of real processes that matches, with some orders in the book of IBM, and two trades.
func exchangeGrid(t *testing.T) (endpoint string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "instruments.yaml")
	if err := os.WriteFile(file, []byte("- {symbol: IBM, tick: \"0.05\", lot: \"1\", low: \"0\", high: \"1000\"}\n- {symbol: OIL, tick: \"1\", lot: \"1\", low: \"0\", high: \"9\", state: call}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := testgrid.Start(t, testgrid.Options{Args: []string{"--partitions=2", "--", "--execution=match", "--instruments=" + file}})
	c, err := ogclient.Dial(t.Context(), ogclient.Config{Endpoints: g.Endpoints, Grid: "dev", BySymbol: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it only submitted
	for i, o := range []struct {
		symbol    string
		side, qty int
		price     string
	}{{"IBM", 1, 100, "125.20"}, {"IBM", 1, 7, "125"}, {"IBM", 2, 40, "125.30"}, {"IBM", 2, 30, "125.20"}, {"OIL", 1, 5, "7"}, {"OIL", 2, 5, "6"}} {
		body := fmt.Sprintf("35=D\x0149=P\x0156=G\x0134=1\x0152=20261123-14:30:00.123\x0111=o%d\x0155=%s\x0154=%d\x0160=20261123-14:30:00.123\x0138=%d\x0140=2\x0144=%s\x01", i, o.symbol, o.side, o.qty, o.price)
		b := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s10=000\x01", len(body), body)
		order.Seal(b)
		if _, err := c.Submit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	return "--endpoint=" + strings.Join(g.Endpoints, ",")
}

var orderName = regexp.MustCompile(` *p\d+/\d+`)

// placesOf is the text of queues without names of orders, which depend on entries of the grid.
func placesOf(text string) string { return orderName.ReplaceAllString(text, " order") }

// TestQueues: each order with its place and what is ahead of it, of so many levels.
func TestQueues(t *testing.T) {
	m := wire.OrdersShown{Seq: 9, Through: wire.OrdersAt{Seq: 9, Index: shown.All}, NOrders: 4, NBids: 3, Flags: wire.OrdersAnew | wire.OrdersComplete, PriceDigits: 1, To: wire.OrdersPlace{Side: wire.OrdersEnd}}
	for i, o := range []wire.ShownOrder{{ID: 3, Price: 101, Qty: 5}, {ID: 7, Price: 101, Qty: 2}, {ID: 4, Price: 99, Qty: 1}, {ID: 5, Price: 110, Qty: 8}} {
		o.Prio = uint64(i) + 1
		m.Rows = wire.AppendShownOrder(m.Rows, &o)
	}
	var b ogclient.OrderBook
	if _, err := b.Apply(&m, nil); err != nil {
		t.Fatal(err)
	}
	o := queuesObject("IBM", "p1", 9, &b, 1)
	got, err := json.Marshal(o)
	want := `{"symbol":"IBM","orders":4,"bids":[{"price":"10.1","qty":"7","orders":[{"place":1,"order":"p1/3","qty":"5","ahead":"0"},{"place":2,"order":"p1/7","qty":"2","ahead":"5"}]}],` +
		`"asks":[{"price":"11.0","qty":"8","orders":[{"place":1,"order":"p1/5","qty":"8","ahead":"0"}]}],"partition":"p1","seq":9}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want\n%s", got, err, want)
	}
	var text strings.Builder
	if err := writeQueues(&text, &o); err != nil {
		t.Fatal(err)
	}
	if want := `IBM  4 orders  p1/9
  place            order            bid          price            ask            order   place
                                                  11.0              8             p1/5       1
      1             p1/3              5           10.1
      2             p1/7              2           10.1
`; text.String() != want {
		t.Errorf("the queues are\n%swant\n%s", text.String(), want)
	}
	b.Forget()
	empty := queuesObject("IBM", "p1", 9, &b, 1)
	text.Reset()
	if err := writeQueues(&text, &empty); err != nil || !strings.HasSuffix(text.String(), "no orders\n") {
		t.Errorf("without orders: %q, %v", text.String(), err)
	}
}

// TestExchangeOfARealGrid: the ladder, the trades, and what a person does with a book.
func TestExchangeOfARealGrid(t *testing.T) {
	endpoint := exchangeGrid(t)
	ask := func(wantErr string, args ...string) string {
		t.Helper()
		out, err := run(append(args, endpoint)...)
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Fatalf("%v: %v, want %q\n%s", args, err, wantErr, out)
		}
		return out
	}
	const ladder = ` orders            bid          price            ask  orders
                               125.30             40       1
      1             70         125.20
      1              7         125.00
`
	if out := ask("", "book", "dev", "IBM"); !strings.HasPrefix(out, "IBM  open  last 125.20  band 0.00 to 1000.00  p") || !strings.HasSuffix(out, ladder) {
		t.Errorf("the ladder is\n%s", out)
	}
	var b bookJSON
	if out := ask("", "book", "dev", "IBM", "-o", "json", "--depth=1"); json.Unmarshal([]byte(out), &b) != nil || len(b.Bids) != 1 || b.Bids[0] != (levelJSON{"125.20", "70", 1}) || b.State != "open" {
		t.Errorf("as JSON: %s", out)
	}
	const queues = `  place            order            bid          price            ask            order   place
                                                125.30             40             p0/4       1
      1             p0/2             70         125.20
      1             p0/3              7         125.00
`
	if out := ask("", "book", "dev", "IBM", "--orders"); !strings.HasPrefix(out, "IBM  3 orders  p") || !strings.HasSuffix(placesOf(out), placesOf(queues)) {
		t.Errorf("the queues are\n%s", out)
	}
	var q queuesJSON
	if out := ask("", "book", "dev", "IBM", "--orders", "-o", "json", "--depth=1"); json.Unmarshal([]byte(out), &q) != nil || q.Orders != 3 || len(q.Bids) != 1 || q.Bids[0].Qty != "70" || len(q.Bids[0].Orders) != 1 || q.Bids[0].Orders[0].Ahead != "0" {
		t.Errorf("as JSON: %s", out)
	}
	if out := ask("", "trades", "dev"); strings.Count(out, "\n") != 1 || !strings.Contains(out, "IBM       sell              30 at 125.20") {
		t.Errorf("the trades are\n%s", out)
	}
	if out := ask("", "market", "dev", "OIL", "uncross", "--reason=opening auction"); !strings.HasPrefix(out, "OIL is open, by entry p") {
		t.Errorf("uncross: %s", out)
	}
	if out := ask("", "trades", "dev", "--symbol=OIL", "-o", "json"); strings.Count(out, "\n") != 1 || !strings.Contains(out, `"symbol":"OIL","side":"buy"`) || !strings.Contains(out, `"auction":true`) {
		t.Errorf("the trades of OIL are\n%s", out)
	}
	ask("not allowed in this state of the book", "market", "dev", "OIL", "uncross", "--reason=again")
	if out := ask("", "market", "dev", "IBM", "band", "120", "125.25", "--reason=volatility"); !strings.HasPrefix(out, "IBM has the band 120 to 125.25, by entry p") {
		t.Errorf("band: %s", out)
	}
	if out := ask("", "book", "dev", "IBM"); !strings.Contains(out, "  band 120.00 to 125.25  ") || !strings.HasSuffix(out, ladder) {
		t.Errorf("with another band the ladder is\n%s", out)
	}
	ask("its lowest and highest are fixed", "market", "dev", "IBM", "band", "120", "1000.05", "--reason=x")
	ask("no multiple of the instrument's tick", "market", "dev", "IBM", "band", "120.01", "130", "--reason=x")
	ask("at most 2 digits", "market", "dev", "IBM", "band", "120", "130.005", "--reason=x")
	ask("the lowest price first", "market", "dev", "IBM", "band", "130", "120", "--reason=x")
	ask("", "market", "dev", "IBM", "halt", "--for=1h", "--reason=news")
	if out := ask("", "book", "dev", "IBM"); !strings.HasPrefix(out, "IBM  halted until 2") {
		t.Errorf("a halted book is\n%s", out)
	}
	ask("has no book", "book", "dev", "XYZ")
	ask("has no book", "book", "dev", "XYZ", "--orders")
	for _, wrong := range [][]string{{"market", "dev", "IBM", "stop", "--reason=x"}, {"market", "dev", "IBM", "halt"}, {"market"}, {"market", "dev", "--endpoint=127.0.0.1:1"}, {"market", "dev", "--reason=x"}, {"market", "dev", "-o", "csv"}, {"market", "dev", "IBM", "band", "1", "--reason=x"}, {"market", "dev", "IBM", "halt", "1", "--reason=x"}, {"market", "dev", "IBM", "band", "1", "2", "--for=1m", "--reason=x"}, {"market", "dev", "IBM", "open", "--for=1m", "--reason=x"}, {"book", "dev"}, {"book", "dev", "IBM", "--depth=65"}, {"trades", "dev", "-o", "csv"}} {
		if _, err := run(wrong...); !errors.As(err, new(usageError)) {
			t.Errorf("%v: %v, want wrong usage", wrong, err)
		}
	}
}
