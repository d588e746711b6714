package plan_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
)

func resolve(t *testing.T, spec api.FailoverDrillSpec) *api.FailoverDrillSpec {
	t.Helper()
	r, err := plan.ResolveSuite(&spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func steps(t *testing.T, spec api.FailoverDrillSpec, seed int64) []plan.Step {
	t.Helper()
	s, err := plan.Steps(resolve(t, spec), plan.Shape{Shards: 4, Replicas: 2, Partitions: 8}, seed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSameSeedSamePlan: the same plan for the same seed; another one for another seed.
func TestSameSeedSamePlan(t *testing.T) {
	spec := api.FailoverDrillSpec{Suite: api.SuiteOvernight}
	a, b := steps(t, spec, 7), steps(t, spec, 7)
	if !reflect.DeepEqual(a, b) {
		t.Error("two plans with the same seed differ")
	}
	if reflect.DeepEqual(a, steps(t, spec, 8)) {
		t.Error("two plans with different seeds are the same")
	}
	// The plan of a seed is part of a certificate's contract: it stays the same in later versions.
	p := steps(t, api.FailoverDrillSpec{Suite: api.SuitePullThePlug}, 42)
	var got []string
	for _, s := range p {
		got = append(got, s.PartitionName("rtd"))
	}
	want := strings.Fields(goldenPlan)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("seed 42 hits\n%v, want\n%v", got, want)
	}
}

const goldenPlan = `rtd-p1 rtd-p6 rtd-p6 rtd-p4 rtd-p7 rtd-p1 rtd-p5 rtd-p5 rtd-p2 rtd-p2`

// TestEveryFaultOncePerRepetition: in any order, nothing is left out, and followers stay behind their leaders.
func TestEveryFaultOncePerRepetition(t *testing.T) {
	spec := api.FailoverDrillSpec{Suite: api.SuiteOvernight, Repetitions: new(int32(20))}
	faults := resolve(t, spec).Faults
	all := steps(t, spec, 3)
	if len(all) != 20*len(faults) {
		t.Fatalf("%d steps", len(all))
	}
	partitions, orders := map[string]bool{}, map[string]bool{}
	for r := range 20 {
		seen, order := map[string]bool{}, ""
		for i := range faults {
			s := all[r*len(faults)+i]
			if s.Index != r*len(faults)+i || s.Repetition != r+1 || seen[s.Fault.Name] {
				t.Fatalf("step %+v", s)
			}
			seen[s.Fault.Name], order = true, order+" "+s.Fault.Name
			if s.Start == api.StartHeld {
				before := all[s.Index-1]
				if before.Fault.Type.Momentary() || before.Repetition != s.Repetition || before.Shard != s.Shard || before.Partition != s.Partition {
					t.Errorf("%s of s%d p%d is held by %s of s%d p%d", s.Fault.Name, s.Shard, s.Partition, before.Fault.Name, before.Shard, before.Partition)
				}
			}
			if wide := s.Fault.Type.GridWide(); wide != (s.Partition == -1) || wide != (s.PartitionName("rtd") == "") {
				t.Errorf("%s is about s%d p%d", s.Fault.Name, s.Shard, s.Partition)
			}
			partitions[s.PartitionName("rtd")] = true
		}
		orders[order] = true
	}
	if len(partitions) != 9 { // eight, and the whole grid
		t.Errorf("only %v are ever hit", partitions)
	}
	if len(orders) < 19 {
		t.Errorf("only %d orders in 20 repetitions", len(orders))
	}
}

// TestNamedTargets: named targets are not drawn, and naming one in a fault changes no other.
func TestNamedTargets(t *testing.T) {
	spec := api.FailoverDrillSpec{Repetitions: new(int32(10)), Faults: []api.DrillFault{{Name: "a", Type: api.FaultPodKill}, {Name: "b", Type: api.FaultPodKill}}}
	drawn := steps(t, spec, 1)
	spec.Faults[0].Target = &api.DrillTarget{Partition: new(int32(5))}
	for i, s := range steps(t, spec, 1) {
		if i%2 == 0 && s.PartitionName("rtd") != "rtd-p5" {
			t.Errorf("step %d hits %s", i, s.PartitionName("rtd"))
		}
		if i%2 == 1 && !reflect.DeepEqual(s, drawn[i]) {
			t.Errorf("step %d hits another target than before", i)
		}
	}
}

// TestTimes: the times of a fault, and 0 by default.
func TestTimes(t *testing.T) {
	d := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	s := steps(t, api.FailoverDrillSpec{Faults: []api.DrillFault{
		{Name: "a", Type: api.FaultPodKill, After: d(3 * time.Second)}, {Name: "b", Type: api.FaultPodFailure, Duration: d(5 * time.Second), Start: api.StartServed},
	}}, 1)
	if s[0].After != 3*time.Second || s[0].Duration != 0 || s[0].Start != api.StartRedundant || s[1].After != 0 || s[1].Duration != 5*time.Second || s[1].Start != api.StartServed {
		t.Errorf("steps %+v", s)
	}
}

// TestImpossiblePlans: plans that are invalid for the shape of the grid or the order, with the remedy.
func TestImpossiblePlans(t *testing.T) {
	lasting := &metav1.Duration{Duration: time.Second}
	for _, test := range []struct {
		name     string
		faults   []api.DrillFault
		replicas int32
		want     string
	}{
		{"no such shard", []api.DrillFault{{Name: "a", Type: api.FaultPodKill, Target: &api.DrillTarget{Shard: new(int32(4))}}}, 2, "fault a: target.shard: the grid has no shard 4; allowed are 0 to 3"},
		{"no such partition", []api.DrillFault{{Name: "a", Type: api.FaultPodKill, Target: &api.DrillTarget{Partition: new(int32(2))}}}, 2, "fault a: target.partition: the grid has no partition 2; allowed are 0 to 1"},
		{"no backup", []api.DrillFault{{Name: "a", Type: api.FaultPodKill, Target: &api.DrillTarget{Role: api.RoleBackup}}}, 1, "fault a: target.role: Backup needs a second copy, and the grid has replicas: 1; set role: Primary, or choose a grid with replicas: 2"},
		{"no copies", []api.DrillFault{{Name: "a", Type: api.FaultNetworkPartition, Duration: lasting}}, 1, "fault a: target.peer: Copies needs a second copy, and the grid has replicas: 1; set peer: Everything or Clients"},
		{"no backup to hand over to", []api.DrillFault{{Name: "a", Type: api.FaultHandOver}}, 1, "fault a: type HandOver needs a second copy"},
		{"served after nothing", []api.DrillFault{{Name: "a", Type: api.FaultPodKill, Start: api.StartServed}}, 2, "fault a: start: Served, but there is no fault before it; put it after another, or set start: Redundant"},
		{"held by a momentary fault", []api.DrillFault{{Name: "a", Type: api.FaultPodKill}, {Name: "b", Type: api.FaultPodKill, Start: api.StartHeld}}, 2, "fault b: start: Held, but PodKill before it is over in a moment; put it after a fault with a duration, or set start: Served"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := plan.Steps(resolve(t, api.FailoverDrillSpec{Faults: test.faults}), plan.Shape{Shards: 4, Replicas: test.replicas, Partitions: test.replicas}, 1)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
	if _, err := plan.Steps(&api.FailoverDrillSpec{}, plan.Shape{}, 1); err == nil {
		t.Error("an empty plan")
	}
}

func TestSeedIsInRange(t *testing.T) {
	for range 1000 {
		if s := plan.Seed(); s < 1 || s > 9007199254740991 {
			t.Fatalf("seed %d", s)
		}
	}
}
