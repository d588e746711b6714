package client_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// TestGridFollowsSelections: a selection has what any of its selectors takes, of orders and of executions, at every copy.
func TestGridFollowsSelections(t *testing.T) {
	g := testgrid.Matching(t, "--partitions", "1")
	c := dial(t, g, func(c *client.Config) { c.BySymbol = true })
	waitForRedundancy(t, c)
	var last client.Receipt
	for i := range 20 {
		for _, m := range []string{"11=%d-a 1=MINE 55=IBM 54=1 38=3 40=2 44=125.00", "11=%d-b 1=THEIRS 55=IBM 54=2 38=1 40=2 44=125.00", "11=%d-c 1=MINE 55=OIL 54=1 38=1 40=2 44=5", "11=%d-d 1=THEIRS 55=OIL 54=2 38=1 40=2 44=5"} {
			var err error
			if last, err = c.Submit(t.Context(), message("35=D "+fmt.Sprintf(m, i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	replica := c.Table()[0].Members[0].Address
	whole := client.FollowOptions{Executions: true, Replica: replica, Window: 64 << 10}
	all, _ := followed(t, c, whole, last.Seq)
	fills := client.KindExecution(client.ExecFilled)
	for _, list := range [][]client.Selector{
		nil,
		{{Kinds: client.KindExecutions}},
		{{Kinds: fills}},
		{{Kinds: client.KindOrders, Account: "MINE"}},
		{{Kinds: client.KindOrders | client.KindExecutions, Account: "MINE", Symbol: "OIL"}},
		{{Kinds: client.KindExecutions, Account: "MINE", Symbol: "OIL"}, {Kinds: fills, Account: "THEIRS"}, {Kinds: client.KindOrders, Symbol: "IBM"}},
		{{Kinds: client.KindExecutions, Symbol: "IBM"}, {Kinds: client.KindOther}},
		{{Kinds: client.KindOrders | client.KindExecutions | client.KindOther}},
		{{Kinds: client.KindOrders, Account: "NONE"}, {Kinds: client.KindExecutions, Symbol: "NONE"}},
	} {
		takes := func(kinds client.Kinds, account, symbol string) bool {
			return slices.ContainsFunc(list, func(s client.Selector) bool {
				return s.Kinds&kinds != 0 && (s.Account == "" || s.Account == account) && (s.Symbol == "" || s.Symbol == symbol)
			})
		}
		entries := 0
		if _, err := c.ReadLog(t.Context(), 0, "", 1, func(e client.LogEntry) error {
			if kinds := client.KindOther; e.Seq <= last.Seq {
				if e.Kind.IsOrder() {
					kinds = client.KindOrders
				}
				if takes(kinds, string(order.Account(e.Bytes)), string(order.Symbol(e.Bytes))) {
					entries++
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, m := range c.Table()[0].Members {
			got, sent := followed(t, c, client.FollowOptions{Selection: &client.Selection{Selectors: list}, Replica: m.Address, Window: 64 << 10}, last.Seq)
			for id, e := range all {
				x, there := got[id]
				if want := takes(client.KindExecution(e.Kind), e.Account, e.Symbol); there != want || there && x != e {
					t.Errorf("%+v: execution %s is there: %v, want %v of %+v", list, id, there, want, e)
				}
			}
			if sent < entries || sent > entries && !takes(client.KindOther, "", "") || len(got) > len(all) {
				t.Errorf("%+v: %d entries and %d executions, want %d entries, of %d executions", list, sent, len(got), entries, len(all))
			}
		}
	}
}
