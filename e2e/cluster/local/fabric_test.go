package local

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/pki"
)

// TestFabricFiles: what Multus reads on a node, and that containerd's file comes last in name and time.
func TestFabricFiles(t *testing.T) {
	plan := examplePlan(t)
	plan.State = t.TempDir()
	ca, err := pki.Load(plan.pkiDir(), authorityName)
	if err != nil {
		t.Fatal(err)
	}
	node := plan.Nodes[1]
	w := &fileWriter{dir: filepath.Join(plan.machineDir(node.Name), "etc"), plan: plan, ca: ca}
	w.fabric(node, hostFacts{cniBin: "/usr/lib/cni"})
	if w.err != nil {
		t.Fatal(w.err)
	}
	var text strings.Builder
	for _, name := range []string{"cni/" + fabricConf, "networks/fabric.conf"} {
		content, err := os.ReadFile(filepath.Join(w.dir, name))
		if err != nil || !json.Valid(content) {
			t.Fatalf("%s: %v\n%s", name, err, content)
		}
		text.WriteString("==> " + name + "\n" + string(content))
	}
	text.WriteString("==> links\n" + strings.Join(append(plan.fabricSwitchLinks(), plan.fabricPortLinks(node, 4711)...), "\n") + "\n")
	golden(t, "fabric", text.String())
	if fabricConf > "10-pods.conflist" {
		t.Errorf("containerd takes the first file by name, which is not %s", fabricConf)
	}
	manifest, err := render("multus.yaml", fabricSettings{User: multusUser})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "multus.yaml", string(manifest))
}

// TestFabricNetwork: no address is given out twice, and none is anything else's.
func TestFabricNetwork(t *testing.T) {
	nodes, err := PlanNodes(maxNodes)
	if err != nil {
		t.Fatal(err)
	}
	p := &Plan{Nodes: nodes}
	for _, other := range []netip.Prefix{p.podNetwork(), p.serviceNetwork(), netip.PrefixFrom(p.switchAddr(), 24).Masked()} {
		if p.fabricNetwork().Overlaps(other) {
			t.Errorf("the fabric %s overlaps %s", p.fabricNetwork(), other)
		}
	}
	seen := map[string]string{}
	for _, n := range nodes {
		first, last := p.fabricPods(n)
		for _, addr := range []string{first, last} {
			if !p.network().Contains(netip.MustParseAddr(addr)) || !p.fabricNetwork().Contains(netip.MustParseAddr(addr)) {
				t.Errorf("%s of %s is outside %s", addr, n.Name, p.fabricNetwork())
			}
			if seen[addr] != "" {
				t.Errorf("%s is of %s and %s", addr, seen[addr], n.Name)
			}
			seen[addr] = n.Name
		}
		if len(fabricCable(n.Name)) > 15 {
			t.Errorf("port %s has more than 15 bytes", fabricCable(n.Name))
		}
	}
}
