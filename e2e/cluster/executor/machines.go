package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
	"github.com/ordergrid/ordergrid/e2e/cluster"
)

// Machines does faults to the nodes and the control plane of a cluster.
type Machines struct {
	Of cluster.Inspectable
}

// Offers implements Hands.
func (m *Machines) Offers(ctx context.Context) ([]executor.Offer, error) {
	nodes, err := m.Of.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	return []executor.Offer{
		{Type: executor.NodePowerOff, Nodes: nodes, Note: "every process of the node is gone at once, its disk stays; taken back when the node is ready again"},
		{Type: executor.NodeLinkDown, Nodes: nodes, Note: "the node's cable is pulled; everything on it keeps running"},
		{Type: executor.APIServerOutage, MaxDeadlineSeconds: 600, Note: "the control plane has no power; ends at the deadline, for the operator cannot ask for it"},
	}, nil
}

// Conflict implements Hands: a node can be broken in one way at a time.
func (m *Machines) Conflict(a, b *executor.Fault) string {
	if a.Type == executor.APIServerOutage && b.Type == executor.APIServerOutage {
		return "the control plane is switched off"
	}
	if executor.IsNetwork(a.Type) {
		return ""
	}
	for _, node := range b.Nodes {
		if slices.Contains(a.Nodes, node) {
			return fmt.Sprintf("%s is broken already", node)
		}
	}
	return ""
}

// Inject implements Hands.
func (m *Machines) Inject(ctx context.Context, job *Job) (string, error) {
	names := m.names(&job.Fault)
	for _, name := range names {
		boot, err := m.Of.Boot(ctx, name)
		if err != nil {
			return "", err
		}
		if boot == "" {
			return "", fmt.Errorf("%s has no power already; switch it on: node start %s", name, name)
		}
		job.Notes[noteBoot+name] = boot
	}
	do, did := m.Of.KillNode, "has no power"
	if job.Fault.Type == executor.NodeLinkDown {
		do, did = m.Of.CutNode, "is unplugged"
	}
	for _, name := range names {
		if err := do(ctx, name); err != nil {
			return "", err
		}
	}
	return strings.Join(names, ", ") + " " + did, nil
}

// noteBoot and a machine's name is the note of the boot it had before.
const noteBoot = "boot "

func (m *Machines) names(f *executor.Fault) []string {
	if f.Type == executor.APIServerOutage {
		return []string{m.Of.ControlPlane()}
	}
	return f.Nodes
}

// Adopt implements Hands: the machines are as they were left.
func (m *Machines) Adopt(context.Context, *Job) error { return nil }

// Recover implements Hands.
func (m *Machines) Recover(ctx context.Context, job *Job) error {
	for _, name := range m.names(&job.Fault) {
		if err := m.recover(ctx, job.Fault.Type, name); err != nil {
			return err
		}
	}
	return nil
}

func (m *Machines) recover(ctx context.Context, kind, name string) error {
	boot, err := m.Of.Boot(ctx, name)
	if err != nil {
		return err
	}
	if kind != executor.NodeLinkDown {
		if boot != "" {
			return nil
		}
		return m.Of.StartNode(ctx, name)
	}
	if boot == "" {
		return nil // switched on again, it is plugged in
	}
	return m.Of.HealNode(ctx, name)
}

// Look implements Hands: a machine's power or link is looked at, not taken
// from what was asked of it.
func (m *Machines) Look(ctx context.Context, job *Job) (executor.Witness, error) {
	w := executor.Witness{Seen: true}
	var all []string
	for _, name := range m.names(&job.Fault) {
		seen, what, err := m.look(ctx, job, name)
		if err != nil {
			return executor.Witness{}, err
		}
		w.Seen = w.Seen && seen
		all = append(all, name+" "+what)
	}
	w.Message = strings.Join(all, "; ")
	return w, nil
}

func (m *Machines) look(ctx context.Context, job *Job, name string) (seen bool, what string, err error) {
	before := job.Notes[noteBoot+name]
	boot, err := m.Of.Boot(ctx, name)
	if err != nil {
		return false, "", err
	}
	if job.Fault.Type == executor.NodeLinkDown {
		if boot == "" {
			return false, "has no power, which is another fault", nil
		}
		cut, err := m.Of.Unplugged(ctx, name)
		if err != nil {
			return false, "", err
		}
		if !cut {
			return false, "is plugged in", nil
		}
		return true, "is unplugged, its " + boot + " runs on", nil
	}
	switch boot {
	case "":
		return true, "is off: its " + before + " is gone", nil
	case before:
		return false, "still runs, " + boot, nil
	}
	return true, "was off: its " + before + " is gone, it now is " + boot, nil
}

// Close implements Hands.
func (m *Machines) Close() {}
