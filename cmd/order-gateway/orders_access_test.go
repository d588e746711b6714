package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// TestGridOrders: who may read a book order by order, its pages and changes, a symbol that is not traded and then is, what is
// refused with the reason, the bound of a client, events, and that nothing of an owner is in it.
func TestGridOrders(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	g, c, write := matchingFrom(t)
	var names []any
	for i, m := range []string{"11=1|1=SECRET|55=IBM|54=1|38=10|40=2|44=125.00", "11=2|1=SECRET|55=IBM|54=1|38=30|111=5|40=2|44=125.00", "11=3|1=SECRET|55=IBM|54=2|38=7|40=2|44=125.10"} {
		r, err := c.Submit(ctx, fixMessage("35=D|"+m))
		if err != nil {
			t.Fatal(i, err)
		}
		names = append(names, fmt.Sprintf("%s/%d", r.Partition, r.Seq))
	}
	at := startGateway(t, g, "127.0.0.1:0", "--websocket-backlog", "0", "--websocket-clients", booksFile(t, "book.IBM.>", "book.NONE.*", "book.OIL.L2"))
	k := talkTo(t, ctx, at)
	k.says(`{"op":"subscribe","id":1,"topics":"book.IBM.L3"}`, `"op":"subscribed"`)
	k.says("", fmt.Sprintf(`"topic":"book.IBM.L3","data":{"symbol":"IBM","first":true,"bids":[[%q,"125.00","10"],[%q,"125.00","5"]],"asks":[[%q,"125.10","7"]],"last":true}}`, names...))
	k.says(`{"op":"subscribe","id":3,"topics":"book.NONE.L3"}`, `"op":"subscribed"`)
	k.says("", `"id":3`, `"data":{"symbol":"NONE","first":true,"state":"unknown","bids":[],"asks":[],"last":true}`)
	for command, want := range map[string][]string{
		`{"op":"subscribe","id":9,"topics":"book.OIL.L3"}`:                                          {`"code":"not-permitted"`},
		`{"op":"subscribe","id":9,"topics":"book.*.L3"}`:                                            {`"code":"not-permitted"`},
		`{"op":"subscribe","id":9,"topics":"book.IBM.deep.L3"}`:                                     {`"code":"invalid"`, "book.SYMBOL.L1"},
		`{"op":"subscribe","id":9,"topics":"book.IBM.L3","last":1}`:                                 {`"code":"invalid"`, "last"},
		`{"op":"subscribe","id":9,"topics":"book.IBM.L3","policy":"conflate"}`:                      {`"code":"invalid"`, "allowed: drop"},
		`{"op":"subscribe","id":9,"topics":"book.IBM.L3","resume":"1.p0:1"}`:                        {`"code":"lineage"`},
		`{"op":"subscribe","id":9,"topics":"book.IBM.L3","resume":"p0"}`:                            {`"code":"invalid"`},
		`{"op":"subscribe","id":9,"topics":"book.IBM.L3","filter":[{"field":"price","min":"1.0"}]}`: {`"code":"invalid"`},
	} {
		k.says(command, append(want, `"op":"error"`)...)
	}
	time.Sleep(3 * time.Second) // all copies note what changes: a gateway that asks another one, as the first is slow, goes on
	// Twelve: ten of the first, two of what the iceberg shows.
	if _, err := c.Submit(ctx, fixMessage("35=D|11=4|1=SECRET|55=IBM|54=2|38=12|40=2|44=125.00")); err != nil {
		t.Fatal(err)
	}
	for i, left := range []string{`"qty":"0","traded":"10"`, `"qty":"3","traded":"2"`} {
		text := k.says("", fmt.Sprintf(`"data":{"kind":"traded","order":%q,"side":"buy","price":"125.00",%s}`, names[i], left))
		if strings.Contains(text, "SECRET") || strings.Contains(text, "owner") {
			t.Errorf("a change says whose it is: %s", text)
		}
	}
	for id := 10; id < 24; id++ { // with the two of before it has 16
		k.says(fmt.Sprintf(`{"op":"subscribe","id":%d,"topics":"book.IBM.L3"}`, id), `"op":"subscribed"`)
		k.says("", `"first":true`, `"last":true`, fmt.Sprintf(`[%q,"125.00","3"]`, names[1]))
	}
	k.says(`{"op":"subscribe","id":24,"topics":"book.IBM.L3"}`, `"code":"limit"`, "allowed: at most 16")
	k.says(`{"op":"unsubscribe","id":10}`, `"op":"unsubscribed"`)
	k.says(`{"op":"subscribe","id":24,"topics":"book.IBM.L3"}`, `"op":"subscribed"`)
	k.says("", `"first":true`)
	readEvents(t, ctx, at, "topics=book.IBM.L3", `"topic":"book.IBM.L3","data":{"symbol":"IBM","first":true,`)
	if text := metricsOf(t, at); !strings.Contains(text, fmt.Sprintf(`ordergrid_stream_books{partition="%s"} `, c.RouteSymbol("IBM"))) || !strings.Contains(text, "ordergrid_stream_book_failures_total 0") {
		t.Error("the metrics have no books, or failures")
	}
	write(testgrid.Instruments + `- {symbol: NONE, tick: "1", lot: "1", low: "0", high: "9"}` + "\n")
	k.says("", `"op":"gap"`, `"id":3`)
	k.says("", `"id":3`, `"data":{"symbol":"NONE","first":true,"bids":[],"asks":[],"last":true}`)
}
