package client_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestGridGetsInstruments: an instrument that is added to the file is traded without a restart, and what is there
// stays as it is. Orders of one session do not trade with each other where the grid says so.
func TestGridGetsInstruments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "instruments.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write(testgrid.Instruments)
	g := testgrid.Run(t, "--", "--execution", "match", "--instruments", file, "--self-trade", "session")
	told := &pushed{t: t, byID: map[string]client.Execution{}}
	c := dial(t, g, func(c *client.Config) { c.BySymbol, c.OnExecutions = true, told.got })
	waitForRedundancy(t, c)
	var reject *client.RejectError
	if _, err := c.ReadBook(t.Context(), "GAS", 1, ""); !errors.As(err, &reject) || reject.Code != wire.CodeUnknownInstrument {
		t.Fatalf("a symbol that is not listed: %v", err)
	}
	write(testgrid.Instruments + `- {symbol: GAS, tick: "1", lot: "1", low: "0", high: "9"}` + "\n")
	waitFor(t, func() bool { _, err := c.ReadBook(t.Context(), "GAS", 1, ""); return err == nil })
	for _, fields := range []string{"35=D 11=g1 55=GAS 54=1 38=5 40=2 44=7", "35=D 11=g2 55=GAS 54=2 38=5 40=2 44=7"} {
		if _, err := c.Submit(t.Context(), message(fields)); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := c.ReadBook(t.Context(), "GAS", 1, ""); err != nil || b.Traded || len(b.Bids) != 1 || len(b.Asks) != 0 {
		t.Errorf("the session trades with itself: %+v, %v", b, err)
	}
	write(testgrid.Instruments + `- {symbol: GAS, tick: "1", lot: "1", low: "0", high: "9"}` + "\n" + `- {symbol: ORE, tick: "1", lot: "1", low: "0", high: "9"}` + "\n")
	waitFor(t, func() bool { _, err := c.ReadBook(t.Context(), "ORE", 1, ""); return err == nil })
	if b, err := c.ReadBook(t.Context(), "GAS", 1, ""); err != nil || b.High != 9 {
		t.Errorf("GAS has another band: %+v, %v", b, err)
	}
}
