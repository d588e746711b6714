package gateway

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/fix/counterparty"
	"github.com/ordergrid/ordergrid/e2e/fix/quickfixgo"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// TestDropCopyToEngine: quickfixgo, which checks messages by its dictionary of FIX 4.4, gets a copy
// of each report of another session while a primary is killed, and refuses none.
func TestDropCopyToEngine(t *testing.T) {
	g := testgrid.Run(t)
	c := downstream.Dial(t, g)
	partition := c.RouteFix(client.FixSessionOf("FIX.4.4", "P", "GRID"))
	s := start(t, g.Endpoints, "--drop-copy", fmt.Sprintf(`{"name": "risk", "session": "FIX.4.4:R->GRID", "partition": %d, "sessions": ["FIX.4.4:P->GRID"]}`, partition))
	module, err := quickfixgo.Dir()
	if err != nil {
		t.Fatal(err)
	}
	engine := func(name string) *counterparty.Initiator {
		i, err := counterparty.Start(counterparty.Options{BeginString: "FIX.4.4", Sender: name, Target: "GRID", Address: s.address, CA: s.ca, User: "user", Password: "right",
			Dictionary: filepath.Join(module, "spec", "FIX44.xml")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(i.Stop)
		if err := i.Wait(time.Minute, func(s counterparty.Seen) bool { return s.LoggedOn }); err != nil {
			t.Fatal(err)
		}
		return i
	}
	risk, p := engine("R"), engine("P")
	const orders = 100
	for n := range orders {
		if err := p.Order(fmt.Sprint("copied-", n), "ACME"); err != nil {
			t.Fatal(err)
		}
		if n == orders/2 {
			downstream.KillPrimary(t, c, g, partition)
		}
	}
	for name, i := range map[string]*counterparty.Initiator{"P": p, "R": risk} {
		var seen counterparty.Seen
		if err := i.Wait(time.Minute, func(s counterparty.Seen) bool { seen = s; return len(s.Reports) == orders }); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(seen.Refused) > 0 || len(seen.Admin) > 0 || seen.Logons != 1 {
			t.Errorf("%s: %d logons, refused: %q %q", name, seen.Logons, seen.Refused, seen.Admin)
		}
		for id, types := range seen.Reports {
			if len(types) != 1 || types[0] != "0" {
				t.Errorf("%s: the reports of %s are %q, expected one of type 0", name, id, types)
			}
		}
	}
}
