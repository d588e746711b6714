package dict_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/gateway/fix/dict"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// groupOf writes two entries of a group, with all fields and inner groups in each but lengths and
// data; of the group at fault one entry is missing.
func groupOf(b *strings.Builder, t *dict.Table, g *dict.GroupOf, fault int) {
	entries := 2
	fmt.Fprintf(b, "%d=%d\x01", g.Count, entries)
	if g.Count == fault {
		entries--
	}
	for range entries {
		fmt.Fprintf(b, "%d=1\x01", g.First)
		for tag := range dict.MaxTag {
			inner := dict.Find(g.Groups, tag)
			switch kind := t.Kind(tag); {
			case inner != nil:
				groupOf(b, t, inner, fault)
			case !g.Fields.Has(tag) || tag == g.First || kind == dict.Length || kind == dict.Data:
			default:
				fmt.Fprintf(b, "%d=1\x01", tag)
			}
		}
	}
}

func allGroups(list []*dict.GroupOf) (all []*dict.GroupOf) {
	for _, g := range list {
		all = append(append(all, g), allGroups(g.Groups)...)
	}
	return all
}

// TestOrderKnowsGroups: the parser of the grid takes each repeating group that the session layer
// lets an order have, and counts its entries.
func TestOrderKnowsGroups(t *testing.T) {
	const fields = "49=A\x0156=B\x0134=1\x0152=20261123-09:30:00\x0111=x\x0141=y\x0155=IBM\x0154=1\x0160=20261123-09:30:00\x0138=1\x0140=1\x01"
	for begin, table := range map[string]*dict.Table{"FIX.4.4": dict.FIX44(), "FIXT.1.1": dict.FIX50SP2()} {
		groups := 0
		for _, kind := range []string{"D", "F", "G"} {
			m := table.Message([]byte(kind))
			parse := func(g *dict.GroupOf, fault int) *order.Error {
				var b strings.Builder
				fmt.Fprintf(&b, "35=%s\x01%s", kind, fields)
				groupOf(&b, table, g, fault)
				msg := fmt.Appendf(nil, "8=%s\x019=%d\x01%s10=000\x01", begin, b.Len(), b.String())
				order.Seal(msg)
				var o order.Order
				return order.Parse(msg, &o)
			}
			for _, g := range m.Groups {
				if err := parse(g, 0); err != nil {
					t.Errorf("%s %s, group %d: %v", begin, kind, g.Count, err)
				}
				for _, inner := range allGroups([]*dict.GroupOf{g}) {
					groups++
					if err := parse(g, inner.Count); err == nil || err.Reason != order.ReasonGroup {
						t.Errorf("%s %s, group %d with an entry too few in %d: %v", begin, kind, g.Count, inner.Count, err)
					}
				}
			}
		}
		if groups < 30 {
			t.Errorf("%s has %d groups, expected are more", begin, groups)
		}
	}
}
