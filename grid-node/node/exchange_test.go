package node

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// traded is a FIX message of "35=D 11=a 55=IBM ...".
func traded(fields string) []byte {
	body := strings.ReplaceAll(fields, " ", "\x01") + "\x0149=GW\x0156=OG\x0134=1\x0152=20261123-09:30:00\x0160=20261123-09:30:00\x01"
	m := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s10=000\x01", len(body), body)
	order.Seal(m)
	return m
}

// metric is a value on a page of metrics.
func metric(t *testing.T, page, series string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no %s in\n%s", series, page)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const acknowledged = `ordergrid_node_orders_total{outcome="acknowledged",partition="p0"}`

// TestExchangeMetrics: what a grid that matches does is on the pages of its nodes, counted once,
// by the primary, and its books are on those of both.
func TestExchangeMetrics(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Execution = &Execution{Instruments: []machine.Instrument{
		{Instrument: match.Instrument{Tick: 1, Lot: 1, Low: 0, High: 100_000, Ref: 12_500}, Symbol: "IBM", PriceDigits: 2, State: match.Open},
		{Instrument: match.Instrument{Tick: 1, Lot: 1, Low: 0, High: 100}, Symbol: "OIL", QtyDigits: 3, State: match.Call},
		{Instrument: match.Instrument{Tick: 1, Lot: 1, Low: 0, High: 100}, Symbol: "TIN", State: match.Closed},
	}}
	g.up()
	c := g.client()
	orders := 0
	send := func(fields string) {
		t.Helper()
		orders++
		g.until(func() bool { // the instruments are being defined at first
			_, err := c.Submit(t.Context(), traded(fmt.Sprintf("35=D 11=o%d 40=2 %s", orders, fields)))
			return err == nil
		}, "order %d: %s", orders, fields)
	}
	ask := func(op client.MarketOp) {
		t.Helper()
		op.Reason = "test"
		if _, _, err := c.Market(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	}
	send("55=IBM 54=1 38=100 44=125.25")
	send("55=IBM 54=2 38=40 44=125")        // trades 40
	send("55=IBM 54=2 38=10 44=126 2362=7") // rests,
	send("55=IBM 54=1 38=10 44=126 2362=7") // and does not trade with its group
	send("55=IBM 54=1 38=10 44=1000.01")    // outside the band
	send("55=OIL 54=1 38=1.5 44=7")         // collected,
	send("55=OIL 54=2 38=2 44=6")           // and traded 1.5 by the auction
	send("55=TIN 54=2 38=2 44=6")           // not in a book that is closed
	ask(client.MarketOp{Symbol: "OIL", State: client.BookOpen, Uncross: true})
	ask(client.MarketOp{Symbol: "OIL", State: client.BookHalted, Until: time.Now().Add(time.Hour)})
	ask(client.MarketOp{Symbol: "IBM", State: client.BookHalted})
	a := g.gatewayAt(0)
	a.open(wire.FixOpen{Seq: 1, Form: 3})
	g.until(func() bool { // until the copies know each other
		f := a.answer(wire.AppendFixSubmit(nil, 0, &wire.FixSubmit{Seq: 2, Prev: 1, Slot: a.m.Slot, Generation: a.m.Generation, Attempt: a.m.Attempt,
			Payload: traded("35=D 11=fix 55=IBM 54=1 38=1 40=2 44=1")}), wire.TypeFixReports, wire.TypeFixAck, wire.TypeReject)
		return wire.FrameType(f) == wire.TypeFixReports
	}, "an order of a FIX session has no report")
	g.until(func() bool {
		_, page := g.nodes[0].get("/metrics")
		return metric(t, page, `ordergrid_node_halt_age_seconds{partition="p0"}`) > 0
	}, "the halt has no age")
	g.settled()
	_, primary := g.nodes[0].get("/metrics")
	_, backup := g.nodes[1].get("/metrics")
	if got := metric(t, primary, acknowledged); got != float64(orders)+1 {
		t.Errorf("%v orders are counted, want %d and one of a FIX session", got, orders)
	}
	for series, want := range map[string]float64{
		`executions_total{kind="accepted",partition="p0"}`:          6,
		`executions_total{kind="rejected",partition="p0"}`:          3,
		`executions_total{kind="filled",partition="p0"}`:            4,
		`executions_total{kind="auction_price",partition="p0"}`:     1,
		`trades_total{partition="p0",phase="continuous"}`:           1,
		`trades_total{partition="p0",phase="auction"}`:              1,
		`traded_quantity_total{partition="p0"}`:                     41.5,
		`self_trades_prevented_total{partition="p0"}`:               1,
		`book_refusals_total{partition="p0",reason="outside_band"}`: 1,
		`book_refusals_total{partition="p0",reason="not_in_state"}`: 2,
		`book_refusals_total{partition="p0",reason="would_cross"}`:  0,
	} {
		if got := metric(t, primary, "ordergrid_node_"+series); got != want {
			t.Errorf("primary: %s is %v, want %v", series, got, want)
		}
		if got := metric(t, backup, "ordergrid_node_"+series); got != 0 {
			t.Errorf("backup: %s is %v, want 0: the primary counts", series, got)
		}
	}
	for series, want := range map[string]float64{
		`resting_orders{partition="p0"}`:       3,
		`books{partition="p0",state="open"}`:   0,
		`books{partition="p0",state="halted"}`: 2,
		`books{partition="p0",state="closed"}`: 1,
		`auction_age_seconds{partition="p0"}`:  0,
		`executions_diverged{partition="p0"}`:  0,
	} {
		for i, page := range []string{primary, backup} {
			if got := metric(t, page, "ordergrid_node_"+series); got != want {
				t.Errorf("node %d: %s is %v, want %v", i, series, got, want)
			}
		}
	}
	if got := metric(t, backup, `ordergrid_node_halt_age_seconds{partition="p0"}`); got <= 0 {
		t.Errorf("backup: a halt is %v s old, want more", got)
	}
	for i, want := range []string{"OIL halted true, IBM halted false", ""} {
		_, page := g.nodes[i].get(nodestatus.MemoryPath)
		var m nodestatus.Memory
		if err := json.Unmarshal([]byte(page), &m); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range m.Execution.Waiting {
			got = append(got, fmt.Sprintf("%s %s %v", w.Symbol, w.State, w.UntilUnixNs != 0))
			if w.Partition != "p0" || w.SinceUnixNs <= 0 {
				t.Errorf("a book that waits is %+v", w)
			}
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("node %d: books that wait are %q, want %q", i, text, want)
		}
	}
}

// TestStoresHaveNoExchange: a grid that stores orders has none of these metrics.
func TestStoresHaveNoExchange(t *testing.T) {
	_, page := newGrid(t, 1, 1).up().nodes[0].get("/metrics")
	if regexp.MustCompile(`(?m)^ordergrid_node_(resting_orders|books|executions|trades|book_refusals)`).MatchString(page) {
		t.Errorf("metrics of an exchange in\n%s", page)
	}
}
