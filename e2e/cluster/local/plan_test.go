package local

import (
	"net/netip"
	"strings"
	"testing"
)

// examplePlan is the cluster the goldens describe.
func examplePlan(t *testing.T) *Plan {
	t.Helper()
	nodes, err := PlanNodes(3)
	if err != nil {
		t.Fatal(err)
	}
	return &Plan{ID: "0123abcd", Index: 2, State: "/state/0123abcd", Bin: "/cache/beef", Nodes: nodes}
}

func TestPlanNodes(t *testing.T) {
	for _, c := range []struct {
		n    int
		want string
	}{
		{1, "xeon-1"},
		{3, "xeon-1 xeon-2 general-1"},
		{7, "xeon-1 xeon-2 general-1 xeon-3 xeon-4 general-2 xeon-5"},
	} {
		nodes, err := PlanNodes(c.n)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, node := range nodes {
			names = append(names, node.Name)
			if got := node.Labels()["feature.node.kubernetes.io/rdma.available"] == "true"; got != (node.Pool == PoolXeon) {
				t.Errorf("%s in pool %s: rdma %v", node.Name, node.Pool, got)
			}
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%d nodes are %s, want %s", c.n, got, c.want)
		}
	}
	for _, n := range []int{-1, 0, maxNodes + 1} {
		if _, err := PlanNodes(n); err == nil {
			t.Errorf("%d nodes were accepted", n)
		}
	}
}

// TestAddressesAreDisjoint checks the largest cluster of every index: every
// address inside its /16, no two ranges overlapping.
func TestAddressesAreDisjoint(t *testing.T) {
	nodes, err := PlanNodes(maxNodes)
	if err != nil {
		t.Fatal(err)
	}
	for index := range maxClusters {
		p := &Plan{Index: index, Nodes: nodes}
		ranges := []netip.Prefix{netip.PrefixFrom(p.addr(0, 0), 24), p.podNetwork(), p.serviceNetwork()}
		for i, a := range ranges {
			if !p.network().Overlaps(a) || a.Bits() < 16 {
				t.Errorf("%s is outside %s", a, p.network())
			}
			for _, b := range ranges[i+1:] {
				if a.Overlaps(b) {
					t.Errorf("%s overlaps %s", a, b)
				}
			}
		}
		seen := map[netip.Addr]string{p.hostAddr(): "host"}
		for _, name := range p.machines() {
			addr := p.machineAddr(name)
			if other, taken := seen[addr]; taken || !ranges[0].Contains(addr) {
				t.Errorf("%s has %s, which is %s's or outside %s", name, addr, other, ranges[0])
			}
			seen[addr] = name
		}
		for n := range maxOutside {
			addr := p.outsideAddr(n)
			if other, taken := seen[addr]; taken || !ranges[0].Contains(addr) {
				t.Errorf("command %d outside has %s, which is %s's or outside %s", n, addr, other, ranges[0])
			}
			seen[addr] = "a command's"
		}
		pods := map[netip.Prefix]bool{}
		for _, node := range nodes {
			if own := p.nodePods(node); pods[own] || !p.podNetwork().Contains(own.Addr()) {
				t.Errorf("the pods of %s are in %s, taken or outside %s", node.Name, own, p.podNetwork())
			} else {
				pods[own] = true
			}
		}
		if !p.serviceNetwork().Contains(p.dnsAddr()) || !p.serviceNetwork().Contains(p.apiServiceAddr()) {
			t.Error("the DNS or API service lies outside the services' network")
		}
	}
}

func TestInterfaceNamesFit(t *testing.T) {
	nodes, err := PlanNodes(maxNodes)
	if err != nil {
		t.Fatal(err)
	}
	p := &Plan{ID: "0123abcd", Nodes: nodes}
	for _, name := range p.machines() {
		if len(cable(name)) > 15 {
			t.Errorf("port %s has %d bytes, the kernel takes 15", cable(name), len(cable(name)))
		}
	}
	if len(p.hostLink()) > 15 {
		t.Errorf("%s has more than 15 bytes", p.hostLink())
	}
}

func TestClusterIDDependsOnBoth(t *testing.T) {
	ids := map[string]bool{}
	for _, c := range [][2]string{{"/a", "/b"}, {"/b", "/a"}, {"/a", "/c"}, {"/a/b", ""}} {
		ids[clusterID(c[0], c[1])] = true
	}
	if len(ids) != 4 {
		t.Errorf("four different clusters have the ids %v", ids)
	}
}
