package packets

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
	"github.com/ordergrid/ordergrid/internal/golden"
)

func TestRules(t *testing.T) {
	until := time.Date(2026, 11, 21, 18, 30, 0, 0, time.FixedZone("CET", 3600))
	for name, spec := range map[string]Spec{
		"delay-all":      {Type: executor.NetworkDelay},
		"loss-two-peers": {Type: executor.NetworkLoss, Peers: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}, Parameters: executor.Parameters{Loss: 0.5, Direction: executor.DirectionBoth}},
		"corrupt-data0":  {Type: executor.NetworkCorrupt, Parameters: executor.Parameters{Corrupt: 1, Direction: executor.DirectionFrom, Interface: "data0"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec.ID, spec.Queue, spec.Deadline = "trading-drill-1", 9000, until
			golden.Bytes(t, filepath.Join("testdata", name+".rules"), []byte(spec.rules().restore()))
		})
	}
}

// TestChainNames keeps them within what iptables takes, and apart.
func TestChainNames(t *testing.T) {
	long := strings.Repeat("a", executor.MaxID)
	for _, id := range []string{"a", long} {
		for _, hook := range hooks {
			if name := chain(id, hook.suffix); len(name) > 28 {
				t.Errorf("%s has %d bytes", name, len(name))
			}
		}
	}
	if chain("a", "TO") == chain("b", "TO") {
		t.Error("two faults share a chain")
	}
	r := Rules{ID: long}
	if comment := r.comment(ruleMatched); len(comment) > 255 {
		t.Errorf("a comment of %d bytes", len(comment))
	}
}

func TestParseCounts(t *testing.T) {
	saved := `*mangle
:OUTPUT ACCEPT [3:4]
[12:3456] -A OGFAULT-1-TO -m comment --comment "ordergrid-executor a-1 matched"
[2:345] -A OGFAULT-1-TO -m comment --comment "ordergrid-executor a-1 queued" -j NFQUEUE
[30:1] -A OGFAULT-1-FROM -m comment --comment "ordergrid-executor a-1 matched"
[99:1] -A OGFAULT-2-TO -m comment --comment "ordergrid-executor a-11 matched"
[x:y] nonsense
`
	if matched, queued := parseCounts(saved, "a-1"); matched != 42 || queued != 2 {
		t.Errorf("matched %d, queued %d", matched, queued)
	}
}
