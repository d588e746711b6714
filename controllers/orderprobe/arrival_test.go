package orderprobe

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/golden"
	"github.com/ordergrid/ordergrid/probe/flow"
	"github.com/ordergrid/ordergrid/probe/pod"
)

func hawkesProbe() *api.OrderProbe {
	probe := pairProbe()
	probe.Spec.Scenario, probe.Spec.Orders = api.ScenarioHawkes, api.OrdersVaried
	probe.Spec.Arrival = &api.OrderArrival{Type: api.ArrivalHawkes, Hawkes: &api.HawkesArrival{BranchingPercent: ptr.To[int32](80)}, Seed: ptr.To[int64](7)}
	return probe
}

func replayProbe(source api.ReplaySource) *api.OrderProbe {
	probe := pairProbe()
	probe.Spec.Scenario = api.ScenarioReplay
	probe.Spec.Arrival = &api.OrderArrival{Type: api.ArrivalReplay, Seed: ptr.To[int64](1), Replay: &api.ReplayArrival{
		Source: source, Format: api.ReplayLobster, Speeds: []int32{1, 8}, MaxMessages: ptr.To[int32](5000)}}
	return probe
}

var (
	fromConfigMap = api.ReplaySource{ConfigMap: &api.ReplayConfigMap{Name: "recordings", Key: "AMZN_message_1.csv"}}
	fromVolume    = api.ReplaySource{VolumeClaim: &api.ReplayVolumeClaim{ClaimName: "recordings", Path: "2012/AMZN_message_1.csv"}}
)

// TestGoldenArrivals compares the Jobs of probes whose orders do not arrive steadily.
func TestGoldenArrivals(t *testing.T) {
	for name, probe := range map[string]*api.OrderProbe{"hawkes": hawkesProbe(), "replay-configmap": replayProbe(fromConfigMap), "replay-volume": replayProbe(fromVolume)} {
		t.Run(name, func(t *testing.T) {
			golden.YAML(t, filepath.Join("testdata", "arrival", name+".yaml"), job(probe, plan(t, probe), testDefaults))
		})
	}
}

// The operator and the pods derive the same plan.
func TestArrivalInThePlan(t *testing.T) {
	p := plan(t, hawkesProbe())
	if p.Arrival == nil || *p.Arrival != (flow.Arrival{Type: flow.Hawkes, Branching: 80, Seed: 7}) || !p.Varied {
		t.Errorf("%+v", p.Arrival)
	}
	p = plan(t, replayProbe(fromVolume))
	if len(p.Steps) != 2*p.Repeats || p.Steps[0].Speed != 1 || p.Steps[1].Speed != 8 || p.Orders(p.Steps[0]) != 5000 {
		t.Errorf("%+v", p.Steps)
	}
	probe := pairProbe()
	probe.Spec.Arrival = &api.OrderArrival{Type: api.ArrivalSteady}
	if p = plan(t, probe); p.Arrival != nil {
		t.Errorf("a steady arrival changes the plan: %+v", p.Arrival)
	}
}

// TestReplayWaitsForItsRecording: pods that cannot mount their recording would hang silently.
func TestReplayWaitsForItsRecording(t *testing.T) {
	b := newBench(t)
	b.setGrid(b.grid(2), metav1.ConditionTrue)
	probe := b.probe(replayProbe(fromConfigMap).Spec)
	b.run(probe)
	b.want(probe, "", "RecordingNotFound", "there is no ConfigMap recordings in namespace "+b.namespace)
	b.wantEvent("Warning RecordingNotFound")
	m := &corev1.ConfigMap{ObjectMeta: b.meta("recordings"), Data: map[string]string{"other.csv": ""}}
	if err := b.client.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	b.run(probe)
	b.want(probe, "", "RecordingNotFound", "ConfigMap recordings has no key AMZN_message_1.csv")
	m.Data["AMZN_message_1.csv"] = "34200,1,1,100,10000,1\n"
	if err := b.client.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	b.run(probe)
	b.want(probe, api.ConditionRunning, "Starting", "starting 2 probes")
	j := &batchv1.Job{ObjectMeta: b.meta("pair")}
	b.get(j)
	if got := strings.Join(j.Spec.Template.Spec.Containers[0].Args, " "); !strings.Contains(got, "--arrival replay --seed 1 --replay /recording/AMZN_message_1.csv --replay-format lobster --speeds 1,8 --max-messages 5000") {
		t.Errorf("arguments %s", got)
	}
}

// TestBurstsInStatus: steady and bursty steps of one rate are separate rows.
func TestBurstsInStatus(t *testing.T) {
	b := newBench(t)
	b.setGrid(b.grid(2), metav1.ConditionTrue)
	probe := b.probe(api.OrderProbeSpec{Scenario: api.ScenarioHawkes, Parameters: api.ParametersQuick, Overrides: &api.ProbeOverrides{RatesPerProbe: []int32{100}}})
	t.Cleanup(func() { forget(client.ObjectKeyFromObject(probe)) }) // metrics are of the whole process
	b.run(probe)
	b.run(probe)
	p := plan(t, probe)
	for i := range 2 {
		b.say(i, pod.KeyReady, "yes")
	}
	b.run(probe)
	for i := range 2 {
		b.say(i, pod.KeyResult, result(t, p, i))
	}
	b.run(probe)
	b.want(probe, api.ConditionComplete, "Completed", "Valid: ")
	for _, rate := range []string{"100 steady", "100 hawkes"} {
		if !slices.ContainsFunc(probe.Status.Rows, func(r api.ProbeRow) bool { return r.Rate == rate && r.Metric == "c2e mean" && r.Here == "100" }) {
			t.Errorf("no row of %s among %+v", rate, probe.Status.Rows)
		}
	}
	if !slices.ContainsFunc(probe.Status.Rows, func(r api.ProbeRow) bool { return r.Metric == "c2e p99 / steady" && r.Here == "1" }) {
		t.Errorf("no ratio of bursts to steady among %+v", probe.Status.Rows)
	}
	if !slices.ContainsFunc(probe.Status.Verdicts, func(v api.ProbeVerdict) bool { return v.Name == "BURSTS" }) {
		t.Errorf("verdicts %+v", probe.Status.Verdicts)
	}
}
