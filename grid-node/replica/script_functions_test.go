package replica_test

import (
	"crypto/sha256"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/function/post"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// scriptPosts are the functions of kind Post that a process is given: names of examples, or
// "none"; nil for "".
func scriptPosts(names string) *replica.Functions {
	if names == "" {
		return nil
	}
	f := &replica.Functions{Code: promptCode{post.New()}, Modules: map[[sha256.Size]byte][]byte{}}
	for name := range strings.SplitSeq(names, "+") {
		module := map[string][]byte{"count": examples.CountAccounts, "audit": examples.AuditTrail}[name]
		if module != nil {
			sum := sha256.Sum256(module)
			f.Want, f.Modules[sum] = append(f.Want, order.Function{Name: name, SHA256: sum, Fuel: 100_000, Pages: 8}), module
		}
	}
	return f
}

// promptCode has loaded a function when Start returns.
type promptCode struct{ *post.Code }

func (c promptCode) Start(f *order.Function, module []byte) { _ = c.Load(f, module) }

// called prints which functions are in force, and how many records each copy has made.
func (s *script) called() {
	for _, n := range s.w.nodes {
		if !n.up {
			continue
		}
		var names []string
		list, _ := n.r.FunctionsInForce()
		for _, f := range list {
			names = append(names, f.Name)
		}
		records := 0
		base, _ := n.st.Base()
		last, _ := n.st.Last()
		for seq := base + 1; seq <= last; seq++ {
			n.r.RecordsOf(seq, func(string, uint8, []byte) { records++ })
		}
		s.w.logf("%s calls [%s]; records %d", n.name(), strings.Join(names, " "), records)
	}
}
