package recorder

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/validate"
)

// exchange is a drill of a grid of processes that matches.
func exchange(t *testing.T, change func(*Config)) *drill {
	t.Helper()
	file := filepath.Join(t.TempDir(), "instruments.yaml")
	if err := os.WriteFile(file, []byte(testgrid.Instruments), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, setup{replicas: 2, noSink: true, args: []string{"--execution", "match", "--instruments", file}, change: change})
}

// traded checks what the certificate of a drill of a grid that matches has to have.
func traded(t *testing.T, c *certificate.Certificate, kills int) *certificate.Executions {
	t.Helper()
	x := c.Executions
	if x == nil {
		t.Fatal("the certificate has no executions")
	}
	if c.Verdict == certificate.Violated || len(c.Unread) > 0 || c.Control.Result != certificate.ControlPassed || x.Control.Result != certificate.ControlPassed || x.Control.Done < 4 {
		t.Errorf("%s: %q, not read %q, executions %+v", c.Verdict, c.Reasons, c.Unread, x)
	}
	if len(c.Steps) != kills || c.Ledger.Lost+x.Lost+x.Different+x.Unsummed != 0 || x.Copies < 2 || x.Told < x.Orders || x.Trades < 100 {
		t.Errorf("%d steps, %d orders lost, executions %+v", len(c.Steps), c.Ledger.Lost, x)
	}
	return x
}

// TestKillMidSweep: the primary is killed while orders sweep the books. Nothing that a session was
// told is lost, and every copy has executed what its log says.
func TestKillMidSweep(t *testing.T) {
	d := exchange(t, nil)
	d.calm()
	d.kill(0, primaryOf(t, d, "IBM"))
	d.over(0)
	c := d.finish(api.Finish{Context: api.Context{Drill: "trading/sweep", Suite: "kill-mid-sweep", StepsAsked: 1}})
	traded(t, c, 1)
	seesForgeries(t, d.dir)
}

// TestKillInAuction: the primary is killed while a book collects orders for an auction, which is
// then held by the next one.
func TestKillInAuction(t *testing.T) {
	d := exchange(t, func(c *Config) { c.Auctions = 3 * time.Second })
	d.calm()
	watch, err := client.Dial(t.Context(), client.Config{Endpoints: d.grid.Endpoints})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close() //nolint:errcheck // it never fails
	d.until("the book collects orders", func() bool {
		b, err := watch.ReadBook(t.Context(), "IBM", 1, "")
		return err == nil && b.State == client.BookCall
	})
	d.kill(0, primaryOf(t, d, "IBM"))
	d.over(0)
	d.until("auctions are held again", func() bool {
		d.rec.auctions.mu.Lock()
		defer d.rec.auctions.mu.Unlock()
		return d.rec.auctions.held >= 3
	})
	c := d.finish(api.Finish{Context: api.Context{Drill: "trading/auction", Suite: "kill-in-auction", StepsAsked: 1}})
	if x := traded(t, c, 1); x.Auctions < 3 {
		t.Errorf("%d auctions", x.Auctions)
	}
}

// primaryOf is the number of the pod that is primary of a symbol's partition.
func primaryOf(t *testing.T, d *drill, symbol string) int {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Config{Endpoints: d.grid.Endpoints})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	id := c.Table()[c.RouteSymbol(symbol)].Primary.ID
	if len(id) < len("dev-s0-0") {
		t.Fatalf("no primary: %q", id)
	}
	return int(id[len("dev-s0-")] - '0')
}

// forged judges the history of a drill again, after it was changed.
func forged(t *testing.T, dir string, change func(h *history.History)) *validate.Executions {
	t.Helper()
	h, err := history.Load(filepath.Join(dir, certificate.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	change(h)
	return validate.TakeExecutions(h, 7)
}

// seesForgeries: a certificate is not given where an execution is lost, or a copy did otherwise.
func seesForgeries(t *testing.T, dir string) {
	t.Helper()
	const size = history.ExecutionSize
	// trade finds a trade of the second copy, by the place of its first record.
	trade := func(h *history.History) (x *history.Copied, at int) {
		x = &h.Executions[len(h.Executions)-1]
		for at = len(x.Records) / size / 2 * size; ; at += size {
			if _, _, r := history.ExecutionOf(x.Records[at:]); r.Kind == match.Filled && r.Flags&match.Passive == 0 {
				return x, at
			}
		}
	}
	for name, change := range map[string]func(h *history.History){
		"a trade is lost": func(h *history.History) { x, at := trade(h); x.Records = slices.Delete(x.Records, at, at+2*size) },
		"a trade is there twice": func(h *history.History) {
			x, at := trade(h)
			x.Records = slices.Insert(x.Records, at, slices.Clone(x.Records[at:at+2*size])...)
		},
		"of another owner": func(h *history.History) { x, at := trade(h); x.Records[at+12+48]++ },
	} {
		if x := forged(t, dir, change); x.Different == 0 || x.Unsummed == 0 || len(x.Words) == 0 || x.Lost != 0 {
			t.Errorf("%s: %+v", name, x)
		}
	}
	// The log ends before what sessions were told: each such execution is named.
	x := forged(t, dir, func(h *history.History) {
		for i := range h.Books {
			if b := &h.Books[i]; len(b.Symbols) > 0 {
				b.Entries = b.Entries[:len(b.Entries)-5]
			}
		}
	})
	if x.Lost == 0 || len(x.LostExamples) != int(min(x.Lost, 16)) {
		t.Errorf("with the end of the log cut off: %+v", x)
	}
	t.Logf("with the end of the log cut off: %d lost: %s", x.Lost, x.LostExamples[0])
}
