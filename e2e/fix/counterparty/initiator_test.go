package counterparty

import (
	"fmt"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/fix/quickfixgo"
	"github.com/ordergrid/ordergrid/gateway/fix"
)

// An engine sends orders while its connection is cut several times: each order gets its
// report, by resends in both directions, and none is refused.
func TestInitiatorOverCuts(t *testing.T) {
	for _, v := range []fix.Version{fix.FIX42, fix.FIX44, fix.FIXT11} {
		t.Run(v.String(), func(t *testing.T) {
			p := fix.Profile{ID: fix.ID{Version: v, Acceptor: "GRID", Initiator: "BANK"}}
			address, events := Serve(t, p)
			wire := NewCable(t, address)
			o := Options{BeginString: v.String(), Sender: "BANK", Target: "GRID", Address: wire.Addr().String()}
			if v == fix.FIXT11 {
				var err error
				if o.Transport, o.Dictionary, err = quickfixgo.FIX50(); err != nil {
					t.Fatal(err)
				}
			}
			i, err := Start(o)
			if err != nil {
				t.Fatal(err)
			}
			defer i.Stop()
			fail := func(err error) {
				t.Helper()
				t.Fatalf("%v; events: %q", err, events())
			}
			if err := i.Wait(20*time.Second, func(s Seen) bool { return s.LoggedOn }); err != nil {
				fail(err)
			}
			const orders = 300
			for n := range orders {
				if n%100 == 50 {
					wire.Cut()
				}
				if err := i.Order(fmt.Sprint("o", n), "ACME"); err != nil {
					t.Fatal(err)
				}
			}
			if err := i.Wait(30*time.Second, func(s Seen) bool { return len(s.Reports) == orders }); err != nil {
				fail(err)
			}
			var seen Seen
			_ = i.Wait(time.Second, func(s Seen) bool { seen = s; return true })
			for id, types := range seen.Reports {
				if len(types) != 1 || types[0] != "0" {
					t.Errorf("the reports of %s are %q, expected one of type 0", id, types)
				}
			}
			if len(seen.Refused) > 0 || len(seen.Admin) > 0 || seen.Logons < 2 {
				t.Errorf("%d logons; refused: %q %q", seen.Logons, seen.Refused, seen.Admin)
			}
		})
	}
}
