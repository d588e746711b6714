package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/ordergrid/ordergrid/internal/pki"
)

// The fabric is a second network between the nodes: a bridge of its own in the switch, a cable from it to each node, and
// macvlan interfaces on that for the pods that ask Multus for it. Nothing routes between it and the pod network.

const (
	fabricBridge = "fabric"
	fabricPort   = "fab0" // a node's end of its cable
	fabricConf   = "00-multus.conf"
	multusUser   = "ordergrid:multus"
)

// fabricCable is the name of a node's port on the fabric's bridge.
func fabricCable(node string) string { return "f-" + node }

// fabricNetwork is the network of all pods on the fabric, fabricPods the part that one node gives addresses from.
func (p *Plan) fabricNetwork() netip.Prefix     { return netip.PrefixFrom(p.addr(192, 0), 18) }
func (p *Plan) fabricPods(n Node) (a, b string) { return p.fabricAddr(n, 10), p.fabricAddr(n, 250) }
func (p *Plan) fabricAddr(n Node, last int) string {
	return p.addr(192+n.Number, last).String()
}

// fabricSettings are what the templates of the fabric use.
type fabricSettings struct {
	Network, First, Last, CNIBin, User string
	PodNetwork                         string // the CNI configuration of the pod network
}

// FabricUp adds the fabric to a cluster that is up. It may be repeated.
func (c *Cluster) FabricUp(ctx context.Context) error {
	dir, err := EnsureMultus(ctx, c.root, c.steps.Say)
	if err != nil {
		return err
	}
	plan, unlock, err := c.loadLocked()
	if err != nil {
		return err
	}
	defer unlock()
	if off := plan.off(); len(off) > 0 {
		return fmt.Errorf("machines without power: %s; repair that first with: up", strings.Join(off, ", "))
	}
	plan.Multus = dir
	if err := c.save(plan); err != nil {
		return err
	}
	err = c.steps.Run("second network between the nodes, "+plan.fabricNetwork().String()+", with Multus", func() error {
		if err := plan.kubectlApply(ctx, "multus.yaml", fabricSettings{User: multusUser}); err != nil {
			return err
		}
		for _, node := range plan.Nodes {
			if err := plan.joinFabric(ctx, node); err != nil {
				return fmt.Errorf("node %s: %w", node.Name, err)
			}
		}
		return nil
	})
	if err == nil {
		c.steps.Say("pods get it from a NetworkAttachmentDefinition without spec.config called fabric")
	}
	return err
}

// FabricDown takes the fabric away, with every NetworkAttachmentDefinition. Pods that are on it lose it.
func (c *Cluster) FabricDown(ctx context.Context) error {
	plan, unlock, err := c.loadLocked()
	if err != nil {
		return err
	}
	defer unlock()
	plan.Multus = ""
	if err := c.save(plan); err != nil {
		return err
	}
	for _, node := range plan.Nodes {
		if err := plan.leaveFabric(ctx, node); err != nil {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
	}
	if err := plan.kubectl(ctx, "multus.yaml", fabricSettings{User: multusUser}, "delete", "--ignore-not-found"); err != nil {
		return err
	}
	_ = ipBatch(ctx, plan.machinePID(switchName), []string{"link del " + fabricBridge}) // none
	return nil
}

func (c *Cluster) save(plan *Plan) error {
	content, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(c.planFile(), content, 0o644)
}

// joinFabric brings a node that is on into the state it should be in.
func (p *Plan) joinFabric(ctx context.Context, n Node) error {
	facts, err := findFacts(p)
	if err != nil {
		return err
	}
	if err := p.connectFabric(ctx, n); err != nil {
		return err
	}
	// containerd looks for plugins in one directory, which is the host's: only this node sees Multus in it.
	pid := p.machinePID(n.Name)
	if !hasMultus(ctx, pid, facts) {
		if _, err := runIn(ctx, pid, nil, "mount", "-t", "overlay", "overlay", "-o", "ro,lowerdir="+p.Multus+":"+facts.cniBin, facts.cniBin); err != nil {
			return fmt.Errorf("adding Multus to %s: %w", facts.cniBin, err)
		}
	}
	ca, err := pki.Load(p.pkiDir(), authorityName)
	if err != nil {
		return err
	}
	w := &fileWriter{dir: filepath.Join(p.machineDir(n.Name), "etc"), plan: p, ca: ca}
	w.fabric(n, facts)
	return w.err
}

func hasMultus(ctx context.Context, pid int, facts hostFacts) bool {
	_, err := runIn(ctx, pid, nil, "test", "-e", filepath.Join(facts.cniBin, Multus))
	return err == nil
}

// rejoinFabric puts a machine that was switched on back on the fabric, if there is one and it is a node.
func (p *Plan) rejoinFabric(ctx context.Context, machine string) error {
	for _, n := range p.Nodes {
		if p.Multus == "" || n.Name != machine {
			continue
		}
		if err := waitContainerd(ctx, p, n); err != nil { // its mounts are made by then
			return err
		}
		return p.joinFabric(ctx, n)
	}
	return nil
}

// fabric writes what Multus reads; last the file by which containerd begins to call it.
func (w *fileWriter) fabric(n Node, facts hostFacts) {
	first, last := w.plan.fabricPods(n)
	// Multus 4.2 would also read the file of the pod network by itself, but has lost its ranges of addresses when a pod ends,
	// which then never does.
	pods, err := render("cni.conflist", nodeSettings{Pods: w.plan.nodePods(n).String()})
	s := fabricSettings{Network: w.plan.fabricNetwork().String(), First: first, Last: last, CNIBin: facts.cniBin, PodNetwork: string(pods)}
	w.err = errors.Join(w.err, err)
	w.kubeconfig("multus", pki.Identity{User: multusUser})
	for _, file := range []struct{ template, name string }{
		{"fabric.conf", filepath.Join("networks", "fabric.conf")},
		{"multus.conf", filepath.Join("cni", fabricConf)},
	} {
		content, err := render(file.template, s)
		w.write(file.name, content, err)
	}
}

// connectFabric plugs the node's second cable in.
func (p *Plan) connectFabric(ctx context.Context, n Node) error {
	switchPID, pid := p.machinePID(switchName), p.machinePID(n.Name)
	if _, err := run(ctx, nil, "nsenter", "-t", fmt.Sprint(switchPID), "-n", "--", "ip", "link", "show", fabricBridge); err != nil {
		if err := ipBatch(ctx, switchPID, p.fabricSwitchLinks()); err != nil {
			return err
		}
	}
	if _, err := run(ctx, nil, "nsenter", "-t", fmt.Sprint(pid), "-n", "--", "ip", "link", "show", fabricPort); err == nil {
		return nil
	}
	if err := ipBatch(ctx, switchPID, p.fabricPortLinks(n, pid)); err != nil {
		return err
	}
	return ipBatch(ctx, pid, []string{"link set " + fabricPort + " up"})
}

func (p *Plan) fabricSwitchLinks() []string {
	return []string{"link add " + fabricBridge + " type bridge", "link set " + fabricBridge + " up"}
}

func (p *Plan) fabricPortLinks(n Node, pid int) []string {
	port := fabricCable(n.Name)
	return []string{
		fmt.Sprintf("link add %s type veth peer name %s netns %d", port, fabricPort, pid),
		fmt.Sprintf("link set %s master %s", port, fabricBridge),
		fmt.Sprintf("link set %s up", port),
	}
}

func (p *Plan) leaveFabric(ctx context.Context, n Node) error {
	etc := filepath.Join(p.machineDir(n.Name), "etc")
	if err := os.Remove(filepath.Join(etc, "cni", fabricConf)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	pid := p.machinePID(n.Name)
	if pid == 0 {
		return nil
	}
	_ = ipBatch(ctx, pid, []string{"link del " + fabricPort}) // none
	facts, err := findFacts(p)
	if err != nil {
		return err
	}
	if hasMultus(ctx, pid, facts) {
		_, err = runIn(ctx, pid, nil, "umount", "-l", facts.cniBin) // pods may be in the making
	}
	return err
}

// kubectlApply creates or corrects objects of the cluster's own.
func (p *Plan) kubectlApply(ctx context.Context, template string, settings any) error {
	return p.kubectl(ctx, template, settings, "apply", "--server-side", "--field-manager=ordergrid-cluster", "--force-conflicts")
}

// kubectl does something with the objects of a template.
func (p *Plan) kubectl(ctx context.Context, template string, settings any, verb ...string) error {
	manifest, err := render(template, settings)
	if err != nil {
		return err
	}
	args := append(append([]string{"--kubeconfig", p.kubeconfig()}, verb...), "-f", "-")
	_, err = run(ctx, bytes.NewReader(manifest), filepath.Join(p.Bin, "kubectl"), args...)
	return err
}
