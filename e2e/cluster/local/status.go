package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/probe/report"
)

// Status prints the machines and the addresses of the cluster.
func (c *Cluster) Status(ctx context.Context) error {
	plan, err := c.load()
	if errors.Is(err, errDown) {
		fmt.Fprintln(c.out, "local cluster: down (bring it up with: make cluster-up)")
		return nil
	}
	if err != nil {
		return err
	}
	states, apiErr := c.kubernetesView(ctx, plan)
	cut := map[string]bool{}
	if pid := plan.machinePID(switchName); pid != 0 {
		if cut, err = cutPorts(ctx, pid); err != nil {
			return err
		}
	}
	table := report.NewList("MACHINE", "POWER", "CABLE", "ADDRESS", "PODS", "KUBERNETES")
	for _, name := range plan.machines() {
		pods, view := "-", "-"
		if node, err := plan.node(name); err == nil {
			pods, view = plan.nodePods(node).String(), describeNode(states, name, apiErr)
		} else if name == controlPlaneName {
			view = describeAPI(apiErr)
		}
		table.Add(name, onOff(plan.machinePID(name)), plugged(name, plan, cut), plan.machineAddr(name), pods, view)
	}
	p := report.NewPage(c.out)
	p.Rows(table)
	p.Say("\nnetwork     %s (pods %s, services %s, all reachable from this host)\nKUBECONFIG  %s\nlogs        %s/machines/*/log\naudit log   %s\n",
		plan.network(), plan.podNetwork(), plan.serviceNetwork(), plan.kubeconfig(), plan.State, plan.auditLog())
	return p.Err()
}

func (c *Cluster) kubernetesView(ctx context.Context, plan *Plan) (map[string]nodeState, error) {
	if plan.machinePID(controlPlaneName) == 0 {
		return nil, errors.New("no power")
	}
	api, err := newAPIClient(plan)
	if err != nil {
		return nil, err
	}
	return api.nodes(ctx)
}

func onOff(pid int) string {
	if pid == 0 {
		return "off"
	}
	return fmt.Sprintf("on (%d)", pid)
}

func plugged(name string, plan *Plan, cut map[string]bool) string {
	switch {
	case name == switchName || plan.machinePID(name) == 0:
		return "-"
	case cut[cable(name)]:
		return "pulled"
	}
	return "plugged in"
}

func describeNode(states map[string]nodeState, name string, apiErr error) string {
	state, known := states[name]
	switch {
	case apiErr != nil:
		return "unknown: the API server does not answer"
	case !known:
		return "not registered"
	case state.Ready:
		return "Ready"
	}
	return "NotReady: " + state.Reason
}

func describeAPI(err error) string {
	if err != nil {
		return "API server does not answer: " + err.Error()
	}
	return "API server ready"
}
