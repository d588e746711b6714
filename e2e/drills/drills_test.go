//go:build e2e

package drills

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestDrills prepares the cluster once. Each part can be chosen with -run TestDrills/NAME.
func TestDrills(t *testing.T) {
	f := prepare(t.Context(), t)
	for _, part := range []struct {
		name string
		run  func(context.Context, *field)
	}{
		{"pull-the-plug", pullThePlug},
		{"network", suite(api.SuiteNetwork)},
		{"node", suite(api.SuiteNode)},
		{"clock-and-cpu", suite(api.SuiteClockAndCPU)},
		{"rolling-upgrade-under-load", suite(api.SuiteRollingUpgrade)},
		{"api-outage", suite(api.SuiteAPIOutage)},
		{"cascade", suite(api.SuiteCascade)},
		{"callbacks", callbacks},
		{"kill-mid-sweep", exchange(api.SuiteKillMidSweep)},
		{"kill-in-auction", exchange(api.SuiteKillInAuction)},
		{"calendar", calendar},
		{"overnight", overnight},
		{"negative-control", negativeControl},
		{"one-copy", oneCopy},
		{"same-seed", sameSeed},
		{"operator-killed", operatorKilled},
		{"drill-deleted", drillDeleted},
		{"chaos-mesh-killed", meshKilled},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t.Context(), f.on(t)) })
	}
}

// suite runs one suite once against a fresh grid.
func suite(name api.DrillSuite, args ...string) func(context.Context, *field) {
	return func(ctx context.Context, f *field) {
		f.grow(ctx)
		d, _ := f.run(ctx, string(name), append([]string{string(name), "--repetitions", "1"}, args...)...)
		f.sound(ctx, d)
	}
}

// overnight is every other suite's faults in one drill, once. The grid keeps every order of it.
func overnight(ctx context.Context, f *field) {
	f.grow(ctx, "memory: 512Mi", "memory: 2Gi")
	d, _ := f.run(ctx, "overnight", "overnight", "--skip-unsupported", "--repetitions", "1")
	f.sound(ctx, d)
}

// pullThePlug is the published test, ten times at 3,000 orders a second of each of two probes. REPETITIONS changes that.
func pullThePlug(ctx context.Context, f *field) {
	f.grow(ctx)
	args := []string{"pull-the-plug"}
	if n := os.Getenv("REPETITIONS"); n != "" {
		args = append(args, "--repetitions", n)
	}
	d, _ := f.run(ctx, "pull-the-plug", args...)
	f.sound(ctx, d)
}

// sameSeed runs one seed twice: the same faults at the same targets' roles in the same order.
func sameSeed(ctx context.Context, f *field) {
	f.grow(ctx)
	var plans [2][]string
	for i, name := range []string{"same-seed-a", "same-seed-b"} {
		d := &api.FailoverDrill{}
		d.Name = name
		d.Spec.Seed, d.Spec.Order, d.Spec.Repetitions = new(int64(20071121)), api.OrderRandom, new(int32(2))
		d.Spec.SteadyState.Calm.Duration = time.Second
		d.Spec.Faults = []api.DrillFault{
			{Name: "kill", Type: api.FaultContainerKill},
			{Name: "delete", Type: api.FaultPodDelete, Target: &api.DrillTarget{Role: api.RoleBackup}},
			{Name: "hand-over", Type: api.FaultHandOver},
		}
		f.create(ctx, d)
		d = f.follow(ctx, name)
		f.sound(ctx, d)
		for _, s := range d.Status.Steps {
			plans[i] = append(plans[i], s.Fault+" of "+s.Partition)
		}
	}
	if len(plans[0]) != 6 || !slices.Equal(plans[0], plans[1]) {
		f.Errorf("the same seed gave\n%v\n%v", plans[0], plans[1])
	}
	f.Logf("both times: %v", plans[0])
}
