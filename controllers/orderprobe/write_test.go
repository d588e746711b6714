package orderprobe

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/probe/pod"
)

// TestWriteTakesTheGridItIsGiven: the pods get the grid's number of copies, and status has that half.
func TestWriteTakesTheGridItIsGiven(t *testing.T) {
	for replicas, want := range map[int32]string{1: "1 copy", 2: "2 copies"} {
		t.Run(want, func(t *testing.T) { takesTheGrid(t, replicas, want) })
	}
}

func takesTheGrid(t *testing.T, replicas int32, want string) {
	b := newBench(t)
	grid := b.grid(replicas)
	probe := b.probe(api.OrderProbeSpec{Scenario: api.ScenarioWrite, Parameters: api.ParametersQuick, Overrides: &api.ProbeOverrides{RatesPerProbe: []int32{100}}})
	t.Cleanup(func() { forget(client.ObjectKeyFromObject(probe)) }) // metrics are of the whole process
	b.run(probe)
	b.want(probe, api.ConditionRunning, "Starting", "starting 1 probes")
	job := &batchv1.Job{ObjectMeta: b.meta("pair")}
	b.get(job)
	if got := strings.Join(job.Spec.Template.Spec.Containers[0].Args, " "); !strings.Contains(got, "--scenario gs-write --quick --replicas "+want[:1]) {
		t.Errorf("arguments %s", got)
	}
	p, err := planOf(figures(t), probe, grid)
	if err != nil {
		t.Fatal(err)
	}
	b.run(probe)
	b.say(0, pod.KeyReady, "yes")
	b.run(probe)
	b.say(0, pod.KeyResult, result(t, p, 0))
	b.run(probe)
	b.want(probe, api.ConditionComplete, "Completed", "Valid: ")
	rates := map[string]bool{}
	for _, row := range probe.Status.Rows {
		if row.Metric == "s2e best80" && row.Here == "90.0" {
			rates[row.Rate] = true
		}
	}
	if len(rates) != 2 || !rates["100 empty, "+want] || !rates["100 8 fields, "+want] {
		t.Errorf("%d copies: rows %v of %+v", replicas, rates, probe.Status.Rows)
	}
}

func TestWriteNeedsOneCopyOrTwo(t *testing.T) {
	probe := pairProbe()
	probe.Spec.Scenario = api.ScenarioWrite
	grid := &api.OrderGrid{Spec: api.OrderGridSpec{Shards: 1, Replicas: 3}}
	grid.Name = "rtd"
	p, err := planOf(figures(t), probe, grid)
	if err != nil {
		t.Fatal(err)
	}
	if reason, message := mismatch(p, grid); reason != reasonGridMismatch || message != "scenario gs-write needs an OrderGrid with replicas 1 (without replication) or 2; rtd has 3; name another one, or create it" {
		t.Errorf("%s: %s", reason, message)
	}
	// While the grid does not exist, the half is unknown.
	if p, err := planOf(figures(t), probe, nil); err != nil || p.Processes() != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}
