package client_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestGridShowsBooks: a book is shown as the orders made it, at the primary and at a copy; the exchange halts it and opens
// it again, and what a book refuses is told.
func TestGridShowsBooks(t *testing.T) {
	g := testgrid.Matching(t)
	c := dial(t, g, func(c *client.Config) { c.BySymbol = true })
	waitForRedundancy(t, c)
	for _, fields := range []string{"35=D 11=b1 55=IBM 54=1 38=100 40=2 44=125.20", "35=D 11=b2 55=IBM 54=1 38=50 40=2 44=125.20", "35=D 11=b3 55=IBM 54=1 38=7 40=2 44=125.00",
		"35=D 11=s1 55=IBM 54=2 38=40 40=2 44=125.30", "35=D 11=s2 55=IBM 54=2 38=20 40=2 44=125.20"} {
		if _, err := c.Submit(t.Context(), message(fields)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(b client.Book, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		bids, asks := []client.BookLevel{{Price: 12520, Qty: 130, Orders: 2}, {Price: 12500, Qty: 7, Orders: 1}}, []client.BookLevel{{Price: 12530, Qty: 40, Orders: 1}}
		if !slices.Equal(b.Bids, bids) || !slices.Equal(b.Asks, asks) || b.State != client.BookOpen || !b.Traded || b.Last != 12520 || client.Decimal(b.Last, b.PriceDigits) != "125.20" || b.High != 100_000 {
			t.Errorf("the book is %+v", b)
		}
	}
	b, err := c.ReadBook(t.Context(), "IBM", 10, "")
	check(b, err)
	for _, m := range c.Table()[b.Partition].Members {
		waitFor(t, func() bool {
			other, err := c.ReadBook(t.Context(), "IBM", 10, m.Address)
			return err == nil && other.Seq >= b.Seq
		})
		check(c.ReadBook(t.Context(), "IBM", 10, m.Address))
	}
	if b, err = c.ReadBook(t.Context(), "IBM", 1, ""); err != nil || len(b.Bids) != 1 || len(b.Asks) != 1 {
		t.Errorf("one level: %+v, %v", b, err)
	}
	var reject *client.RejectError
	if _, err := c.ReadBook(t.Context(), "XYZ", 1, ""); !errors.As(err, &reject) || reject.Code != wire.CodeUnknownInstrument {
		t.Errorf("a symbol without orders: %v", err)
	}

	seq, state, err := c.Market(t.Context(), client.MarketOp{Symbol: "IBM", State: client.BookHalted, Reason: "news pending"})
	if err != nil || state != client.BookHalted || seq <= b.Seq {
		t.Fatalf("halt: entry %d, %v, %v", seq, state, err)
	}
	if b, err = c.ReadBook(t.Context(), "IBM", 1, ""); err != nil || b.State != client.BookHalted {
		t.Errorf("after the halt: %+v, %v", b, err)
	}
	found := false
	if _, err := c.ReadLog(t.Context(), b.Partition, "", seq, func(e client.LogEntry) error {
		found = found || strings.HasSuffix(string(e.Bytes), "news pending")
		return nil
	}); err != nil || !found {
		t.Errorf("the reason is in the log: %v, %v", found, err)
	}
	var refused *client.MarketError
	if _, _, err := c.Market(t.Context(), client.MarketOp{Symbol: "IBM", Uncross: true, State: client.BookOpen, Reason: "mistake"}); !errors.As(err, &refused) || refused.State != client.BookHalted {
		t.Errorf("uncross of a halted book: %v", err)
	}
	if _, state, err = c.Market(t.Context(), client.MarketOp{Symbol: "IBM", State: client.BookOpen, Reason: "news is out"}); err != nil || state != client.BookOpen {
		t.Errorf("open: %v, %v", state, err)
	}
	if seq, state, err = c.Market(t.Context(), client.MarketOp{Symbol: "IBM", Band: &client.PriceBand{Low: 12_000, High: 12_525}, Reason: "volatility"}); err != nil || state != client.BookOpen {
		t.Errorf("band: %v, %v", state, err)
	}
	for _, m := range c.Table()[b.Partition].Members {
		waitFor(t, func() bool {
			other, err := c.ReadBook(t.Context(), "IBM", 10, m.Address)
			return err == nil && other.Seq >= seq && other.Low == 12_000 && other.High == 12_525 && len(other.Asks) == 1
		})
	}
	if _, _, err := c.Market(t.Context(), client.MarketOp{Symbol: "IBM", Band: &client.PriceBand{Low: -5, High: 12_525}, Reason: "mistake"}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "its lowest and highest are fixed") {
		t.Errorf("a band beyond the instrument's prices: %v", err)
	}
	for _, op := range []client.MarketOp{{State: client.BookOpen}, {Uncross: true}, {Until: time.Now()}, {Price: 1}, {Band: &client.PriceBand{Low: 2, High: 1}}} {
		if op.Symbol, op.Reason = "IBM", "x"; op.Band == nil {
			op.Band = &client.PriceBand{Low: 12_000, High: 12_525}
		}
		if _, _, err := c.Market(t.Context(), op); err == nil || !strings.Contains(err.Error(), "the lowest price first, without") {
			t.Errorf("%+v: %v", op, err)
		}
	}
	for _, reason := range []string{"", "two\nlines", strings.Repeat("x", 129)} {
		if _, _, err = c.Market(t.Context(), client.MarketOp{Symbol: "IBM", State: client.BookHalted, Reason: reason}); err == nil {
			t.Errorf("reason %q is taken", reason)
		}
	}
}

// TestGridWithoutBooks: a grid that stores orders has none.
func TestGridWithoutBooks(t *testing.T) {
	c := dial(t, testgrid.Run(t))
	var reject *client.RejectError
	if _, err := c.ReadBook(t.Context(), "IBM", 1, ""); !errors.As(err, &reject) || reject.Code != wire.CodeUnsupported {
		t.Errorf("read a book: %v", err)
	}
	if _, _, err := c.Market(t.Context(), client.MarketOp{Symbol: "IBM", State: client.BookHalted, Reason: "x"}); !errors.As(err, &reject) || reject.Code != wire.CodeUnsupported {
		t.Errorf("halt: %v", err)
	}
}
