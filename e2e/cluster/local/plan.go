// Package local runs a real Kubernetes on one Linux machine, as root, from
// plain binaries: every machine of the cluster is one supervised process tree
// in its own network, mount, process, host-name and IPC namespaces, connected
// by a bridge. Killing a machine's first process is a power cut; nothing of
// the machine survives it but its disk.
package local

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
)

// Fixed machines. The switch holds the bridge and routes between the host, the
// machines and the services; it has a kube-proxy of its own so that a service
// address works from the host whichever node is down.
const (
	switchName       = "switch"
	controlPlaneName = "control-plane"
)

// Pools and their sizes for a default cluster: the two pools the published
// results need, of which only the first has the fast fabric.
const (
	PoolXeon    = "xeon-ib"
	PoolGeneral = "general"
	maxNodes    = 32
)

// maxClusters bounds how many clusters one machine can hold at a time, each
// with a /16 of its own.
const (
	maxClusters = 32
	firstOctet  = 180
)

// Plan is everything about a cluster that is decided before anything runs. It
// is stored in the state directory.
type Plan struct {
	ID       string `json:"id"`       // 8 hex digits, unique per state directory
	Index    int    `json:"index"`    // 0..maxClusters-1, chooses the /16
	Checkout string `json:"checkout"` // the working tree this cluster belongs to
	State    string `json:"state"`    // directory of all state
	Bin      string `json:"bin"`      // directory of the programs
	BootID   string `json:"bootID"`   // the host's boot it was started in
	Nodes    []Node `json:"nodes"`
	Multus   string `json:"multus,omitempty"` // directory of Multus; empty without the fabric
}

// Node is one worker.
type Node struct {
	Name   string `json:"name"`
	Number int    `json:"number"` // 1..maxNodes, chooses its addresses
	Pool   string `json:"pool"`
}

// PlanNodes returns n nodes: two of three in the Xeon pool, so that the default
// of three has two of them and one general.
func PlanNodes(n int) ([]Node, error) {
	if n < 1 || n > maxNodes {
		return nil, fmt.Errorf("--nodes is %d; give 1 to %d", n, maxNodes)
	}
	var nodes []Node
	count := map[string]int{}
	for i := 1; i <= n; i++ {
		pool, prefix := PoolXeon, "xeon"
		if i%3 == 0 {
			pool, prefix = PoolGeneral, "general"
		}
		count[pool]++
		nodes = append(nodes, Node{Name: fmt.Sprintf("%s-%d", prefix, count[pool]), Number: i, Pool: pool})
	}
	return nodes, nil
}

// Labels are what a node of its pool carries. Those below
// feature.node.kubernetes.io are what Node Feature Discovery would find on the
// real hardware; here they only claim it, for placement to be testable.
func (n Node) Labels() map[string]string {
	labels := map[string]string{"ordergrid.dev/pool": n.Pool}
	if n.Pool == PoolXeon {
		labels["feature.node.kubernetes.io/cpu-model.vendor_id"] = "Intel"
		labels["feature.node.kubernetes.io/cpu-model.family"] = "6"
		labels["feature.node.kubernetes.io/cpu-cpuid.AVX512F"] = "true"
		labels["feature.node.kubernetes.io/pci-0207_15b3.present"] = "true"
		labels["feature.node.kubernetes.io/rdma.capable"] = "true"
		labels["feature.node.kubernetes.io/rdma.available"] = "true"
	}
	return labels
}

// clusterID names the cluster of a checkout. It depends on where state is kept
// as well, so that two users, or a test with a home of its own, do not meet.
func clusterID(stateRoot, checkout string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(stateRoot+"\n"+checkout)))[:8]
}

// machines lists all machines in the order they are started.
func (p *Plan) machines() []string {
	names := []string{switchName, controlPlaneName}
	for _, node := range p.Nodes {
		names = append(names, node.Name)
	}
	return names
}

func (p *Plan) node(name string) (Node, error) {
	for _, node := range p.Nodes {
		if node.Name == name {
			return node, nil
		}
	}
	return Node{}, fmt.Errorf("no node %q; this cluster has %v", name, p.machines()[1:])
}

func (p *Plan) hasMachine(name string) bool { return slices.Contains(p.machines(), name) }

func (p *Plan) machineDir(name string) string { return filepath.Join(p.State, "machines", name) }
func (p *Plan) pkiDir() string                { return filepath.Join(p.State, "pki") }
func (p *Plan) kubeconfig() string            { return filepath.Join(p.State, "kubeconfig") }

// hostLink is the host's end of the cable into the cluster. Interface names
// are limited to 15 bytes.
func (p *Plan) hostLink() string { return "og-" + p.ID }

func (p *Plan) addr(third, fourth int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(firstOctet + p.Index), byte(third), byte(fourth)})
}

// network is the /16 everything of this cluster lies in.
func (p *Plan) network() netip.Prefix { return indexNetwork(p.Index) }

func indexNetwork(index int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(firstOctet + index), 0, 0}), 16)
}

func (p *Plan) podNetwork() netip.Prefix     { return netip.PrefixFrom(p.addr(64, 0), 18) }
func (p *Plan) serviceNetwork() netip.Prefix { return netip.PrefixFrom(p.addr(128, 0), 20) }
func (p *Plan) nodePods(n Node) netip.Prefix { return netip.PrefixFrom(p.addr(64+n.Number, 0), 24) }

func (p *Plan) switchAddr() netip.Addr        { return p.addr(0, 1) }
func (p *Plan) controlPlaneAddr() netip.Addr  { return p.addr(0, 2) }
func (p *Plan) nodeAddr(n Node) netip.Addr    { return p.addr(0, 10+n.Number) }
func (p *Plan) hostAddr() netip.Addr          { return p.addr(0, 254) }
func (p *Plan) apiServiceAddr() netip.Addr    { return p.addr(128, 1) }
func (p *Plan) dnsAddr() netip.Addr           { return p.addr(128, 10) }
func (p *Plan) apiURL() string                { return fmt.Sprintf("https://%s:6443", p.controlPlaneAddr()) }
func (p *Plan) cgroup() string                { return "ordergrid-" + p.ID }
func (p *Plan) machineCgroup(m string) string { return p.cgroup() + "/" + m }

// machineAddr is the address of any machine on the bridge.
func (p *Plan) machineAddr(name string) netip.Addr {
	switch name {
	case switchName:
		return p.switchAddr()
	case controlPlaneName:
		return p.controlPlaneAddr()
	}
	for _, node := range p.Nodes {
		if node.Name == name {
			return p.nodeAddr(node)
		}
	}
	panic("machineAddr: no machine " + name) // callers take names from machines()
}
