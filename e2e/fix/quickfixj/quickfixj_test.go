package quickfixj

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/fix/counterparty"
	"github.com/ordergrid/ordergrid/e2e/fix/quickfixgo"
	"github.com/ordergrid/ordergrid/gateway/fix"
)

// QuickFIX/J sends orders while its connection is cut: each gets one report.
func TestQuickFIXJOverCuts(t *testing.T) {
	if os.Getenv("ORDERGRID_REQUIRE_QUICKFIXJ") == "" {
		t.Skip("starts Java three times, and Maven; ORDERGRID_REQUIRE_QUICKFIXJ=1 runs it")
	}
	classpath, err := Classpath(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []fix.Version{fix.FIX42, fix.FIX44, fix.FIXT11} {
		t.Run(v.String(), func(t *testing.T) {
			address, events := counterparty.Serve(t, fix.Profile{ID: fix.ID{Version: v, Acceptor: "GRID", Initiator: "BANK"}})
			line := counterparty.NewCable(t, address)
			const orders = 300
			o := Options{BeginString: v.String(), Sender: "BANK", Target: "GRID", Addresses: []string{line.Addr().String()}, Orders: orders, Pace: 5 * time.Millisecond}
			if v == fix.FIXT11 {
				if o.Transport, o.Dictionary, err = quickfixgo.FIX50(); err != nil {
					t.Fatal(err)
				}
			}
			p, err := Start(classpath, o)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Stop()
			reports, logons, cuts := map[string]int{}, 0, 0
			late := time.After(time.Minute)
			for len(reports) < orders {
				select {
				case got, ok := <-p.Lines:
					switch word, rest, _ := strings.Cut(got, " "); {
					case !ok:
						t.Fatalf("QuickFIX/J ended: %s", p.Said())
					case word == "on":
						logons++
					case word == "report":
						id, _, _ := strings.Cut(rest, " ")
						if reports[id]++; !strings.HasPrefix(rest, id+" 0 ") {
							t.Errorf("the report of %s, expected one of type 0", rest)
						}
						if n := len(reports); n%100 == 50 && cuts < n/100+1 {
							cuts++
							line.Cut()
						}
					case word == "other":
						t.Fatalf("QuickFIX/J received %s; events: %q", rest, events())
					}
				case <-late:
					t.Fatalf("%d of %d orders are reported, %d logons; events: %q; QuickFIX/J: %s", len(reports), orders, logons, events(), p.Said())
				}
			}
			for i := range orders {
				if n := reports[fmt.Sprintf("BANK-%d", i)]; n != 1 {
					t.Errorf("order BANK-%d has %d reports, expected 1", i, n)
				}
			}
			if logons < 2 || cuts != 3 { // two cuts may meet one connection
				t.Errorf("%d logons, %d cuts, expected 2 logons or more and 3 cuts", logons, cuts)
			}
		})
	}
}
