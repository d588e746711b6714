package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
)

// rack is machines that only remember what was done to them; TestOnCluster
// does it to real ones.
type rack struct {
	boots map[string]int // how often each was switched on; negative while it is off
	cut   map[string]bool
}

func newRack() *rack {
	return &rack{boots: map[string]int{"control-plane": 1, "n1": 1, "n2": 1}, cut: map[string]bool{}}
}

func (r *rack) Nodes(context.Context) ([]string, error) { return []string{"n1", "n2"}, nil }
func (r *rack) ControlPlane() string                    { return "control-plane" }
func (r *rack) ExecutorDir() string                     { return "" }
func (r *rack) Unplugged(_ context.Context, name string) (bool, error) {
	return r.cut[name], nil
}
func (r *rack) Boot(_ context.Context, name string) (string, error) {
	if r.boots[name] < 0 {
		return "", nil
	}
	return fmt.Sprintf("run %d", r.boots[name]), nil
}
func (r *rack) KillNode(_ context.Context, name string) error {
	r.boots[name], r.cut[name] = -r.boots[name], false
	return nil
}
func (r *rack) StartNode(_ context.Context, name string) error {
	r.boots[name] = 1 - r.boots[name]
	return nil
}
func (r *rack) CutNode(_ context.Context, name string) error {
	r.cut[name] = true
	return nil
}
func (r *rack) HealNode(_ context.Context, name string) error {
	if r.boots[name] < 0 {
		return fmt.Errorf("%s is off", name)
	}
	r.cut[name] = false
	return nil
}
func (r *rack) Exec(context.Context, string, []string) error { return nil }

func machineJob(kind string, nodes ...string) *Job {
	return &Job{ID: "a", Fault: executor.Fault{Type: kind, Nodes: nodes}, Notes: map[string]string{}}
}

// TestMachines covers changes to machines besides the requested ones.
func TestMachines(t *testing.T) {
	for _, c := range []struct {
		name      string
		job       *Job
		meanwhile func(*rack)
		seen      bool
		says      string
	}{
		{"power off", machineJob(executor.NodePowerOff, "n1", "n2"), func(*rack) {}, true, "n1 is off: its run 1 is gone; n2 is off"},
		{"one is switched on", machineJob(executor.NodePowerOff, "n1", "n2"), func(r *rack) { _ = r.StartNode(context.Background(), "n1") }, true, "n1 was off: its run 1 is gone, it now is run 2"},
		{"it never went off", machineJob(executor.NodePowerOff, "n1"), func(r *rack) { r.boots["n1"] = 1 }, false, "n1 still runs, run 1"},
		{"the control plane", machineJob(executor.APIServerOutage), func(*rack) {}, true, "control-plane is off"},
		{"link down", machineJob(executor.NodeLinkDown, "n1"), func(*rack) {}, true, "n1 is unplugged, its run 1 runs on"},
		{"it is plugged in", machineJob(executor.NodeLinkDown, "n1"), func(r *rack) { r.cut["n1"] = false }, false, "n1 is plugged in"},
		{"it loses its power, too", machineJob(executor.NodeLinkDown, "n1"), func(r *rack) { _ = r.KillNode(context.Background(), "n1") }, false, "n1 has no power"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRack()
			m := &Machines{Of: r}
			if _, err := m.Inject(t.Context(), c.job); err != nil {
				t.Fatal(err)
			}
			c.meanwhile(r)
			w, err := m.Look(t.Context(), c.job)
			if err != nil || w.Seen != c.seen || !strings.Contains(w.Message, c.says) {
				t.Errorf("witness %+v, %v", w, err)
			}
			for range 2 { // it may be repeated
				if err := m.Recover(t.Context(), c.job); err != nil {
					t.Fatal(err)
				}
			}
			for name, boot := range r.boots {
				off := boot < 0 && c.job.Fault.Type != executor.NodeLinkDown // what another fault did is not taken back
				if off || r.cut[name] {
					t.Errorf("%s: boot %d, cut %v", name, boot, r.cut[name])
				}
			}
		})
	}
}

func TestMachinesRefuse(t *testing.T) {
	r := newRack()
	m := &Machines{Of: r}
	r.boots["n2"] = -1
	if _, err := m.Inject(t.Context(), machineJob(executor.NodePowerOff, "n1", "n2")); err == nil || !strings.Contains(err.Error(), "n2 has no power already") {
		t.Errorf("a node that is off: %v", err)
	}
	if r.boots["n1"] != 1 {
		t.Error("the other node was switched off all the same")
	}
	for _, c := range []struct {
		a, b     *Job
		conflict bool
	}{
		{machineJob(executor.NodePowerOff, "n1"), machineJob(executor.NodePowerOff, "n2"), false},
		{machineJob(executor.NodePowerOff, "n1"), machineJob(executor.NodeLinkDown, "n2", "n1"), true},
		{machineJob(executor.APIServerOutage), machineJob(executor.APIServerOutage), true},
		{machineJob(executor.APIServerOutage), machineJob(executor.NodePowerOff, "n1"), false},
		{machineJob(executor.NetworkDelay, "n1"), machineJob(executor.NodePowerOff, "n1"), false},
	} {
		if got := m.Conflict(&c.a.Fault, &c.b.Fault); (got != "") != c.conflict {
			t.Errorf("%s %v and %s %v: %q", c.a.Fault.Type, c.a.Fault.Nodes, c.b.Fault.Type, c.b.Fault.Nodes, got)
		}
	}
	offers, err := m.Offers(t.Context())
	if err != nil || len(offers) != 3 || !slices.Equal(offers[0].Nodes, []string{"n1", "n2"}) {
		t.Errorf("offers %+v, %v", offers, err)
	}
}
