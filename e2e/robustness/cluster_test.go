//go:build e2e

package robustness_test

import (
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/robustness"
	"github.com/ordergrid/ordergrid/e2e/robustness/faults"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// TestCluster plays a short selection on the real cluster, for safety; times are
// for cmd/robustness on a machine that has nothing else to do. `make e2e
// SUITE=robustness` brings the cluster up and loads the images first.
func TestCluster(t *testing.T) {
	program := testgrid.Program(t, "e2e/cluster/cmd/cluster")
	for _, c := range []struct {
		name   string
		repeat int
	}{
		{"kill-both-in-turn", 4}, {"silent-cut", 1}, {"sigstop", 1}, {"hand-over", 3}, {"planned-stop", 2}, {"drain", 1}, {"rolling-update", 1},
		{"api-outage", 1}, {"api-outage-then-kill", 1}, {"same-name", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := robustness.FindScenario(c.name)
			if err != nil {
				t.Fatal(err)
			}
			target, err := faults.StartCluster(t.Context(), faults.ClusterOptions{Program: program, Replicas: 2, MemoryMiB: 512, HandOverDelay: s.HandOverDelay(), Progress: t.Logf})
			if err != nil {
				t.Fatal(err)
			}
			r := play(t, target, c.name, func(o *robustness.Options) { o.Repeat, o.Rate, o.Away = c.repeat, 1000, 20*time.Second })
			sound(t, r)
			if s.Goals.NoFailed && r.Orders.Failed() > 0 {
				t.Errorf("%d orders failed", r.Orders.Failed())
			}
		})
	}
}
