package inject

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/probe/nodefeatures"
)

// chaosPod is a ready pod of Chaos Mesh. The tests of a package share an API server, and Chaos Mesh is looked up in all
// namespaces, so it is deleted with its test.
func (b *bench) chaosPod(component, node string) *corev1.Pod {
	b.t.Helper()
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "chaos-", Labels: map[string]string{labelComponent: component}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "chaos"}}}}
	b.create(&p)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := b.client.Status().Update(b.t.Context(), &p); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := b.client.Delete(context.Background(), &p, client.GracePeriodSeconds(0)); err != nil {
			b.t.Error(err)
		}
	})
	return &p
}

func (b *bench) lack(daemon *corev1.Pod, kinds string) {
	b.t.Helper()
	daemon.Annotations = map[string]string{annotationLacks: kinds}
	if err := b.client.Update(b.t.Context(), daemon); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) scope(faults ...api.DrillFault) *Scope {
	return &Scope{Drill: b.drill(), Grid: testGrid(b.namespace), Faults: faults, Nodes: []string{"node-a", "node-b"}}
}

func mustSupport(t *testing.T, i Injector, s *Scope) map[api.DrillFaultType]Answer {
	t.Helper()
	answers, err := i.Supports(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

func (a Answer) is(v Verdict, says string) bool {
	return a.Verdict == v && strings.Contains(a.Message, says)
}

var (
	kill      = api.DrillFault{Name: "kill", Type: api.FaultPodKill}
	restart   = api.DrillFault{Name: "restart", Type: api.FaultContainerKill}
	partition = api.DrillFault{Name: "cut", Type: api.FaultNetworkPartition}
	slow      = api.DrillFault{Name: "slow", Type: api.FaultNetworkDelay, Network: &api.NetworkFault{Latency: lasts(5e6)}}
)

func TestSupportsWithoutChaosMesh(t *testing.T) {
	b, c := chaosBench(t)
	got := mustSupport(t, c, b.scope(kill, api.DrillFault{Type: api.FaultNodePowerOff}))
	if !got[api.FaultPodKill].is(No, "Chaos Mesh's CRDs exist, but no pod") || !got[api.FaultNodePowerOff].is(No, "no fault of type NodePowerOff") {
		t.Errorf("%+v", got)
	}
	daemon := b.chaosPod(componentDaemon, "node-a")
	if got := mustSupport(t, c, b.scope(kill)); !got[api.FaultPodKill].is(No, "controller manager is ready") {
		t.Errorf("%+v", got)
	}
	b.chaosPod(componentManager, "node-a")
	b.lack(daemon, "DNSChaos,TimeChaos")
	if got := mustSupport(t, c, b.scope(api.DrillFault{Type: api.FaultClockSkew, Clock: &api.ClockFault{Offset: *lasts(1e9)}})); !got[api.FaultClockSkew].is(No, "lacks the programs for TimeChaos") {
		t.Errorf("%+v", got)
	}
	got = mustSupport(t, c, b.scope(kill, restart, partition))
	if !got[api.FaultPodKill].is(Yes, "") || !got[api.FaultContainerKill].is(No, "no chaos-daemon is ready on node-b") || !got[api.FaultNetworkPartition].is(No, "node-b") {
		t.Errorf("%+v", got)
	}
	var jobs batchv1.JobList
	if err := b.client.List(t.Context(), &jobs, client.InNamespace(b.namespace)); err != nil || len(jobs.Items) != 0 {
		t.Errorf("%d Jobs were started unnecessarily, %v", len(jobs.Items), err)
	}
}

// The Jobs are played: each ends with the output of order-probe node-features.
func TestSupportsByWhatNodesCanDo(t *testing.T) {
	b, c := chaosBench(t)
	b.chaosPod(componentDaemon, "node-a")
	b.chaosPod(componentDaemon, "node-b")
	b.chaosPod(componentManager, "node-a")
	everything := api.DrillFault{Name: "narrow", Type: api.FaultNetworkBandwidth, Target: &api.DrillTarget{Peer: api.PeerEverything}, Network: &api.NetworkFault{Rate: "10M", Direction: api.DirectionTo}}
	scope := b.scope(kill, partition, slow, everything)
	for range 2 {
		got := mustSupport(t, c, scope)
		if !got[api.FaultPodKill].is(Yes, "") || !got[api.FaultNetworkDelay].is(Asking, "node-a, node-b") || !got[api.FaultNetworkPartition].is(Asking, "") {
			t.Errorf("%+v", got)
		}
	}
	if left, err := c.Leftovers(t.Context(), scope.Drill); err != nil || len(left) != 2 || !strings.Contains(left[0], "Job") {
		t.Errorf("%q, %v", left, err)
	}
	b.endFeatureJob(c, "node-a", features(nil), 0)
	b.endFeatureJob(c, "node-b", features([]nodefeatures.Name{nodefeatures.Netem, nodefeatures.Prio}), 0)
	got := mustSupport(t, c, scope)
	delay := got[api.FaultNetworkDelay]
	if !got[api.FaultNetworkPartition].is(Yes, "") || !got[api.FaultNetworkBandwidth].is(Yes, "") || !delay.is(No, "node-b") || !strings.Contains(delay.Message, "sch_netem") || strings.Contains(delay.Message, "node-a") {
		t.Errorf("%+v", got)
	}
	// The same limit for some peers needs what node-b lacks.
	narrow := everything
	narrow.Target = nil
	if got := mustSupport(t, c, b.scope(everything, narrow)); !got[api.FaultNetworkBandwidth].is(No, "sch_prio") {
		t.Errorf("%+v", got)
	}
	b.playForegroundDeletion()
	if left, err := c.Leftovers(t.Context(), scope.Drill); err != nil || len(left) != 0 {
		t.Errorf("%q, %v", left, err)
	}
	// Another operator asks anew, the same one does not.
	if got := mustSupport(t, c, scope); got[api.FaultNetworkDelay].Verdict != No {
		t.Errorf("%+v", got)
	}
	if got := mustSupport(t, &ChaosMesh{Client: b.client, ProbeImage: "order-probe:1"}, scope); got[api.FaultNetworkDelay].Verdict != Asking {
		t.Errorf("%+v", got)
	}
	if err := c.RecoverAll(t.Context(), scope.Drill); err != nil {
		t.Error(err)
	}
}

// playForegroundDeletion plays the garbage collector, which does not run here.
func (b *bench) playForegroundDeletion() {
	b.t.Helper()
	var jobs batchv1.JobList
	if err := b.client.List(b.t.Context(), &jobs, client.InNamespace(b.namespace)); err != nil {
		b.t.Fatal(err)
	}
	for i := range jobs.Items {
		if jobs.Items[i].DeletionTimestamp != nil {
			jobs.Items[i].Finalizers = nil
			if err := b.client.Update(b.t.Context(), &jobs.Items[i]); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

func features(without []nodefeatures.Name) string {
	r := nodefeatures.Report{Kernel: "6.18", Arch: "amd64", Features: map[nodefeatures.Name]nodefeatures.Feature{}}
	for _, n := range nodefeatures.Names() {
		r.Features[n] = nodefeatures.Feature{Supported: true}
	}
	for _, n := range without {
		r.Features[n] = nodefeatures.Feature{Reason: "no such file or directory"}
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// endFeatureJob plays the Job controller and the kubelet.
func (b *bench) endFeatureJob(c *ChaosMesh, node, words string, code int32) {
	b.t.Helper()
	job := c.featureJob(b.drill(), node)
	if err := b.get(job); err != nil {
		b.t.Fatal(err)
	}
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: job.Name + "-", Labels: map[string]string{batchv1.JobNameLabel: job.Name}}, Spec: job.Spec.Template.Spec}
	b.create(&p)
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "node-features", Image: "x", ImageID: "x", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: words}}}}
	if err := b.client.Status().Update(b.t.Context(), &p); err != nil {
		b.t.Fatal(err)
	}
}

func TestReadFeatures(t *testing.T) {
	pod := func(s corev1.ContainerState) []corev1.Pod {
		return []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: s}}}}}
	}
	ended := func(code int32, words string) []corev1.Pod {
		return pod(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: words}})
	}
	failed := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}}
	for name, c := range map[string]struct {
		job   *batchv1.Job
		pods  []corev1.Pod
		says  string // of the problem; empty: none
		known bool
	}{
		"not yet":            {&batchv1.Job{}, nil, "", false},
		"running":            {&batchv1.Job{}, pod(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}), "", false},
		"a report":           {&batchv1.Job{}, ended(0, features(nil)), "", true},
		"no message":         {&batchv1.Job{}, ended(0, ""), "termination message", false},
		"other message":      {&batchv1.Job{}, ended(0, `{"ok":true}`), "termination message", false},
		"long other message": {&batchv1.Job{}, ended(0, strings.Repeat("x", 4096)), "termination message", false},
		"no pod":             {failed, nil, "--drill-node-features-namespace", false},
		"could not be tried": {failed, ended(4, "no capability"), "exit code 4: no capability", false},
		"no image":           {failed, pod(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}), "ImagePullBackOff", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := readFeatures(c.job, c.pods, "node-a")
			if (r.report != nil) != c.known || (r.problem != "") != (c.says != "") || !strings.Contains(r.problem, c.says) || len(r.problem) > 800 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A drill that Chaos Mesh does not support is detected before it begins.
func TestSupportsOnlyWhatCanBeBuilt(t *testing.T) {
	b, c := chaosBench(t)
	b.chaosPod(componentDaemon, "node-a")
	b.chaosPod(componentDaemon, "node-b")
	b.chaosPod(componentManager, "node-a")
	all := api.DrillFault{Type: api.FaultNetworkLoss, Network: &api.NetworkFault{Loss: "1%", Direction: api.DirectionBoth}, Target: &api.DrillTarget{Peer: api.PeerEverything}}
	sink := api.DrillFault{Type: api.FaultIODelay, IO: &api.IOFault{Delay: lasts(1e6)}}
	got := mustSupport(t, c, b.scope(all, sink))
	if !got[api.FaultNetworkLoss].is(No, "direction: To") || !got[api.FaultIODelay].is(No, "spec.sinks") {
		t.Errorf("%+v", got)
	}
}
