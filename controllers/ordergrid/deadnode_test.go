package ordergrid

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// onNodes puts pod i on node n<i>, and marks the named nodes as lost for that long.
func (o *observation) onNodes(since time.Duration, lost ...string) map[string]lostNode {
	for i := range o.pods {
		o.pods[i].Spec.NodeName = "n" + o.pods[i].Name[len(o.pods[i].Name)-1:]
	}
	nodes := map[string]lostNode{}
	for _, name := range lost {
		nodes[name] = lostNode{name: name, since: rollNow.Add(-since)}
		for i := range o.pods {
			if o.pods[i].Spec.NodeName == name {
				o.pods[i].Status.Conditions[0].Status = corev1.ConditionFalse
			}
		}
	}
	return nodes
}

// three turns the pair of healthy into a shard of three.
func (o *observation) three() {
	o.grid.Spec.Replicas = 3
	third := *o.pods[1].DeepCopy()
	third.Name = api.PodName("rtd", 0, 2)
	o.pods = append(o.pods, third)
	p := *o.partitions[1].DeepCopy()
	p.Name, p.Spec.Partition, o.grid.Spec.Partitions = api.PartitionName("rtd", 2), 2, 3
	o.partitions = append(o.partitions, p)
	for i := range o.partitions {
		st := &o.partitions[i].Status
		st.InSync = append(slices.Clone(st.InSync), api.Member{ID: third.Name + "/x", PodName: third.Name})
	}
}

func TestPlanLost(t *testing.T) {
	minute := time.Minute
	for _, test := range []struct {
		name   string
		plan   func(*observation) map[string]lostNode
		giveUp string
		text   string
		again  time.Duration
	}{
		{"nothing is lost", func(o *observation) map[string]lostNode { return o.onNodes(minute) }, "", "", 0},
		{"the others have taken it out", func(o *observation) map[string]lostNode { o.leave("rtd-s0-1"); return o.onNodes(minute, "n1") }, "rtd-s0-1", "", 0},
		{"a node that is only unreachable for Kubernetes", func(o *observation) map[string]lostNode { return o.onNodes(minute, "n1") }, "",
			"rtd-s0-1 is on n1, which is lost, and is not replaced: the others still count on its copy of rtd-p0", 0},
		{"in one partition of two", func(o *observation) map[string]lostNode {
			o.partitions[0].Status.InSync = o.partitions[0].Status.InSync[:1]
			return o.onNodes(minute, "n1")
		}, "", "the others still count on its copy of rtd-p1", 0},
		{"not for long enough", func(o *observation) map[string]lostNode { o.leave("rtd-s0-1"); return o.onNodes(10*time.Second, "n1") }, "",
			"is replaced 30s after that", 20 * time.Second},
		{"the node is tainted out-of-service", func(o *observation) map[string]lostNode {
			o.leave("rtd-s0-1")
			nodes := o.onNodes(0, "n1")
			nodes["n1"] = lostNode{name: "n1", final: true}
			return nodes
		}, "rtd-s0-1", "", 0},
		{"both are lost, and one holds all orders", func(o *observation) map[string]lostNode { o.leave("rtd-s0-1"); return o.onNodes(minute, "n0", "n1") }, "",
			"rtd-s0-1 is on n1, which is lost, and is not replaced: no pod that is ready has all orders of rtd-p0", 0},
		{"the other is not ready", func(o *observation) map[string]lostNode {
			o.leave("rtd-s0-1")
			o.pods[0].Status.Conditions[0].Status = corev1.ConditionFalse
			return o.onNodes(minute, "n1")
		}, "", "no pod that is ready has all orders", 0},
		{"the other is being deleted", func(o *observation) map[string]lostNode {
			o.leave("rtd-s0-1")
			now := metav1.NewTime(rollNow)
			o.pods[0].DeletionTimestamp = &now
			return o.onNodes(minute, "n1")
		}, "", "no pod that is ready has all orders", 0},
		{"the record is an old one", func(o *observation) map[string]lostNode {
			o.leave("rtd-s0-1")
			o.findings = map[string]*finding{"rtd-p0": {record: &o.partitions[0], lead: &lead{}}}
			return o.onNodes(minute, "n1")
		}, "", "manual action is required first, rtd-p0: ConfigurationRegressed", 0},
		{"no pod holds all orders", func(o *observation) map[string]lostNode {
			o.leave("rtd-s0-1")
			o.findings = map[string]*finding{"rtd-p0": {record: &o.partitions[0], loss: loss{verdict: fateGone}}}
			return o.onNodes(minute, "n1")
		}, "", "DataLossSuspected", 0},
		{"a record is gone", func(o *observation) map[string]lostNode {
			o.leave("rtd-s0-1")
			o.partitions = o.partitions[:1]
			return o.onNodes(minute, "n1")
		}, "", "a partition has no record, and may be on it", 0},
		{"a grid that never held an order", func(o *observation) map[string]lostNode {
			for i := range o.partitions {
				o.partitions[i].Status = api.GridPartitionStatus{}
			}
			return o.onNodes(minute, "n1")
		}, "rtd-s0-1", "", 0},
		{"two of three: one at a time", func(o *observation) map[string]lostNode {
			o.three()
			o.leave("rtd-s0-1")
			o.leave("rtd-s0-2")
			return o.onNodes(minute, "n1", "n2")
		}, "rtd-s0-1", "", 0},
		{"two of three: the first is starting", func(o *observation) map[string]lostNode {
			o.three()
			o.leave("rtd-s0-1")
			o.leave("rtd-s0-2")
			nodes := o.onNodes(minute, "n1", "n2")
			o.pods[1].Spec.NodeName = "n3"
			return nodes
		}, "", "rtd-s0-2 is on n2, which is lost, and is replaced once rtd-s0-1 is in sync", 0},
		{"it was given up already", func(o *observation) map[string]lostNode {
			o.leave("rtd-s0-1")
			nodes := o.onNodes(minute, "n1")
			o.pods = o.pods[:1]
			return nodes
		}, "", "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := healthy()
			nodes := test.plan(o)
			plan := planLost(o, nodes, rollNow)
			var got []string
			for _, pod := range plan.giveUp {
				got = append(got, pod.Name)
			}
			if strings.Join(got, " ") != test.giveUp || plan.again != test.again || !strings.Contains(plan.sentence(), test.text) {
				t.Errorf("gives up %q, reconciles again after %v, message %q", got, plan.again, plan.sentence())
			}
			if test.text == "" && test.giveUp == "" && len(plan.waiting) > 0 {
				t.Errorf("waits: %v", plan.waiting)
			}
		})
	}
}

func TestJudgeNode(t *testing.T) {
	at := metav1.NewTime(rollNow)
	later := metav1.NewTime(rollNow.Add(time.Second))
	for _, test := range []struct {
		name   string
		taints []corev1.Taint
		want   lostNode
		lost   bool
	}{
		{"well", nil, lostNode{}, false},
		{"not ready, as reported by itself", []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute, TimeAdded: &at}}, lostNode{}, false},
		{"unreachable", []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &later},
			{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &at}}, lostNode{name: "n", since: rollNow}, true},
		{"unreachable, since an unknown time", []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}, lostNode{}, false},
		{"out of service", []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &at}, {Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}},
			lostNode{name: "n", final: true}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, lost := judgeNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Taints: test.taints}})
			if lost != test.lost || lost && got != test.want {
				t.Errorf("%+v, %v", got, lost)
			}
		})
	}
}

// losing is a pair on three Kubernetes nodes of the API server without kubelets: a deleted pod stays.
type losing struct {
	*rolling
	lostAt time.Time
}

func newLosing(t *testing.T) *losing {
	l := &losing{rolling: newRolling(t)}
	for _, name := range []string{"a", "b", "c"} {
		l.addNode(name, map[string]string{corev1.LabelHostname: name})
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: l.namespace + "-" + name}}
		l.get(node)
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("100")}
		if err := l.client.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	for ordinal, name := range []string{"a", "b"} {
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: l.namespace + "-" + name}}
		if err := l.client.SubResource("binding").Create(t.Context(), l.pod(int32(ordinal)), binding); err != nil {
			t.Fatal(err)
		}
	}
	l.reconcile.KubeNodes = l.reconcile.Client
	return l
}

// lose plays Kubernetes for node b with a silent kubelet: a taint, pods not ready, then pods deleted.
func (l *losing) lose(t *testing.T) {
	t.Helper()
	l.mark(t)
	if err := l.client.Delete(t.Context(), l.pod(1)); err != nil {
		t.Fatal(err)
	}
	if l.gone(1) {
		t.Fatal("the pod was deleted without its node's kubelet")
	}
}

func (l *losing) mark(t *testing.T) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: l.namespace + "-b"}}
	l.get(node)
	l.lostAt = l.clock.Now()
	added := metav1.NewTime(l.lostAt)
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &added}, {Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}}
	if err := l.client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	l.setReady("rtd-s0-1", corev1.ConditionFalse)
}

// takeOver plays the take-over of the live pod.
func (l *losing) takeOver(t *testing.T) {
	t.Helper()
	for index := range int32(2) {
		p := l.partition(l.grid, 0, index)
		m := processOf(l.grid, 0, 0)
		p.Status.Epoch, p.Status.ChangeID, p.Status.Primary, p.Status.InSync = p.Status.Epoch+1, "takeover", &m, []api.Member{m}
		if err := l.asPod(l.grid, 0).Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPodOnALostNodeIsReplaced follows a node from its silence to the pod's end.
func TestPodOnALostNodeIsReplaced(t *testing.T) {
	l := newLosing(t)
	l.lose(t)
	l.clock.SetTime(l.lostAt.Add(time.Minute))
	l.run(l.grid)
	if l.gone(1) {
		t.Fatal("given up while the records count on it")
	}
	l.wantCondition(l.grid, api.ConditionRedundant, metav1.ConditionFalse, reasonCopiesMissing, "rtd-s0-1 is on "+l.namespace+"-b, which is lost, and is not replaced: the others still count on its copy")
	l.takeOver(t)
	l.clock.SetTime(l.lostAt.Add(10 * time.Second))
	l.run(l.grid)
	if l.gone(1) || l.again <= 0 || l.again > 20*time.Second {
		t.Fatalf("after 10 of 30 seconds: gone %v, reconciles again after %v", l.gone(1), l.again)
	}
	l.clock.SetTime(l.lostAt.Add(31 * time.Second))
	writes := l.run(l.grid)
	if !l.gone(1) || l.gone(0) {
		t.Fatalf("writes %v; rtd-s0-1 is to go, and only that", writes)
	}
	l.wantEvent("Warning ReplacingLostPod gave up pod rtd-s0-1: its node " + l.namespace + "-b is unreachable for 31s")
	if writes := l.run(l.grid); evictions(writes) != 0 {
		t.Errorf("writes %v when it was gone", writes)
	}
}

// TestPodThatToleratesALostNode is given up before Kubernetes would delete it, unless its budget forbids it.
func TestPodThatToleratesALostNode(t *testing.T) {
	l := newLosing(t)
	l.mark(t)
	l.takeOver(t)
	l.clock.SetTime(l.lostAt.Add(time.Minute))
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "rtd-s0", Namespace: l.namespace}}
	for _, healthy := range []int32{0, 1} { // the disruption controller is slow; it has seen the live pod
		l.get(pdb)
		pdb.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: pdb.Generation, CurrentHealthy: healthy, DesiredHealthy: 1, ExpectedPods: 2}
		if err := l.client.Status().Update(t.Context(), pdb); err != nil {
			t.Fatal(err)
		}
		l.run(l.grid)
		if l.gone(1) != (healthy == 1) || l.gone(0) {
			t.Errorf("with %d healthy pods in the budget, gone: %v", healthy, l.gone(1))
		}
	}
}

// TestPodOnALostNodeStays where replacement is disabled, or would not help.
func TestPodOnALostNodeStays(t *testing.T) {
	for _, test := range []struct {
		name string
		when func(*testing.T, *losing)
		text string
	}{
		{"spec.nodeFailure.policy Wait", func(_ *testing.T, l *losing) {
			l.grid.Spec.NodeFailure.Policy = api.NodeFailureWait
			l.update(l.grid)
		}, ""},
		{"no node is read", func(_ *testing.T, l *losing) { l.reconcile.KubeNodes = nil }, ""},
		{"no other node fits", func(t *testing.T, l *losing) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: l.namespace + "-c"}}
			l.get(node)
			node.Spec.Unschedulable = true
			if err := l.client.Update(t.Context(), node); err != nil {
				t.Fatal(err)
			}
		}, "no other Kubernetes node fits"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLosing(t)
			l.lose(t)
			l.takeOver(t)
			test.when(t, l)
			l.clock.SetTime(l.lostAt.Add(time.Hour))
			l.run(l.grid)
			if l.gone(1) {
				t.Error("given up")
			}
			l.wantCondition(l.grid, api.ConditionRedundant, metav1.ConditionFalse, reasonCopiesMissing, test.text)
		})
	}
}
