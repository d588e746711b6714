package node

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

func postOf(name string, module []byte) PostFunction {
	return PostFunction{Name: name, Module: module, SHA256: sha256.Sum256(module)}
}

// inForce are the names of the functions that a node's copy of p0 calls.
func (g *grid) inForce(i int) string {
	var names []string
	g.onLoop(i, func() {
		list, _ := g.nodes[i].data.parts.at(0).replica.FunctionsInForce()
		for _, f := range list {
			names = append(names, f.Name)
		}
	})
	return strings.Join(names, " ")
}

// page is what a node tells of the functions of p0 where it leads.
func (g *grid) page(i int) (p *nodestatus.Posts) {
	g.onLoop(i, func() { p = g.nodes[i].data.parts.postPage() })
	return p
}

// TestPostFunctions: every copy calls them; what they remember outlives the primary, and a
// node that comes back with other functions takes those of the log.
func TestPostFunctions(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Functions = &Functions{Post: []PostFunction{postOf("count", examples.CountAccounts)}}
	g.up()
	g.until(func() bool { return g.inForce(0) == "count" && g.inForce(1) == "count" }, "the functions are not in force")
	c := g.client()
	counted := func(want uint64) {
		t.Helper()
		last, entries := uint64(0), map[uint64]bool{}
		_, err := c.ReadRecords(t.Context(), 0, "", 1, func(r client.Record) error {
			if r.Function == "count" {
				last, entries[r.Entry] = binary.LittleEndian.Uint64(r.Bytes[24:]), true
			}
			return nil
		})
		if err != nil || last != want || uint64(len(entries)) != want {
			t.Errorf("%d orders were counted, with %d records: %v; want %d", last, len(entries), err, want)
		}
	}
	submit(t, c, "first", 20)
	counted(20)
	for i := range g.nodes {
		g.until(func() bool {
			s := uint64(0)
			g.onLoop(i, func() {
				if l := g.nodes[i].data.parts.postStatus(); len(l) == 1 {
					s = l[0].Records
				}
			})
			return s == 20
		}, "node %d has not made 20 records", i)
	}
	g.kill(0)
	submit(t, c, "second", 10)
	counted(30)
	g.base.Functions = &Functions{Post: []PostFunction{postOf("audit", examples.AuditTrail), postOf("count", examples.CountAccounts)}}
	g.start(0)
	g.ready()
	g.until(func() bool { return g.inForce(0) == "count" }, "the node that is back does not call what the log has in force")
	submit(t, c, "third", 5)
	counted(35)
	if p := g.page(1); p == nil || len(p.InForce) != 1 || p.InForce[0].Name != "count" || len(p.Waiting) != 0 || len(p.Since) != 1 || p.Since[0].Entry == 0 {
		t.Errorf("the primary, which has the functions of before, tells %+v", p)
	}
	g.kill(1) // the last one that wants the former functions
	g.start(1)
	g.ready()
	g.until(func() bool { return g.inForce(0) == "audit count" && g.inForce(1) == "audit count" }, "the functions did not change")
	submit(t, c, "fourth", 5)
	counted(40)
	audited := 0
	if _, err := c.ReadRecords(t.Context(), 0, "", 1, func(r client.Record) error {
		if r.Function == "audit" {
			audited++
		}
		return nil
	}); err != nil || audited != 5 {
		t.Errorf("%d orders were audited, %v; want 5", audited, err)
	}
}

func TestPostFunctionsThatAreRefused(t *testing.T) {
	other := postOf("f", examples.AuditTrail)
	other.SHA256[0] ^= 1
	large := postOf("f", examples.AuditTrail)
	large.Pages = order.MaxFunctionPages + 1
	many := make([]PostFunction, order.MaxFunctions+1)
	for i := range many {
		many[i] = postOf(fmt.Sprint("f", i), examples.AuditTrail)
	}
	for _, c := range []struct {
		name string
		list []PostFunction
		want string
	}{
		{"another module", []PostFunction{other}, "f: the module has sha256"},
		{"too much memory", []PostFunction{large}, "memory of 65 pages"},
		{"too many", many, "9 functions, allowed: at most 8"},
		{"one name twice", []PostFunction{postOf("f", examples.AuditTrail), postOf("f", examples.CountAccounts)}, `name "f"`},
		{"another kind", []PostFunction{postOf("f", examples.FatFinger)}, `no export "og1_post"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGrid(t, 1, 1)
			cfg := g.base
			cfg.Pod, cfg.Listen, cfg.Advertise, cfg.Arbiter = "g-s0-0", g.addrs[0], g.addrs[0], g.arb
			cfg.Functions = &Functions{Post: c.list}
			if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
