package ordergrid

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// scaledOut is a grid of four partitions, all on shard 0, with new pods of shard 1.
func scaledOut() *observation {
	o := twoShards()
	for i := range o.statefulSets {
		o.statefulSets[i].Status.UpdateRevision = "rev1"
	}
	for i := range o.partitions {
		p := &o.partitions[i]
		for k := range p.Status.InSync {
			m := &p.Status.InSync[k]
			m.PodName = strings.Replace(m.PodName, "-s1-", "-s0-", 1)
			m.ID = m.PodName + "/x"
		}
		p.Status.Primary = &p.Status.InSync[0]
		goHome(p, 0)
	}
	return o
}

// goHome writes a shard into a record, and its pods.
func goHome(p *api.GridPartition, shard int32) {
	p.Spec.Shard, p.Spec.Pods = shard, []string{api.PodName("rtd", shard, 0), api.PodName("rtd", shard, 1)}
	p.Spec.PreferredPod = p.Spec.Pods[0]
}

// join puts a pod of another shard in sync.
func join(p *api.GridPartition, pod string) {
	p.Status.InSync = append(p.Status.InSync, api.Member{ID: pod + "/x", PodName: pod})
}

// TestNextMoves: what begins, what follows, and what is waited for.
func TestNextMoves(t *testing.T) {
	findings := func(o *observation, n int, f finding) {
		f.record = &o.partitions[n]
		o.findings = map[string]*finding{f.record.Name: &f}
	}
	for name, c := range map[string]struct {
		change func(*observation)
		want   string // partition>shard of those that begin, + how many follow, and what is waited for
	}{
		"a shard is added":      {func(*observation) {}, "0>1 1>1 +0 "},
		"one is on its way":     {func(o *observation) { goHome(&o.partitions[3], 1) }, "0>1 +0 "},
		"its pods do not exist": {func(o *observation) { o.pods = o.pods[:2] }, "+2 p0 waits for shard 1: rtd-s1-0 does not exist yet"},
		"it is being created":   {func(o *observation) { o.statefulSets = o.statefulSets[:1] }, "+2 p0 waits for shard 1: it is being created"},
		"a pod of it is not ready": {func(o *observation) {
			o.pods[3].Status.Conditions[0].Status = corev1.ConditionFalse
		}, "+2 p0 waits for shard 1: rtd-s1-1 is not ready"},
		"it is briefly not ready as one arrives": {func(o *observation) {
			goHome(&o.partitions[3], 1)
			o.pods[3].Status.Conditions[0] = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(rollNow)}
		}, "0>1 +0 "},
		"one arrives, and it has been not ready for long": {func(o *observation) {
			goHome(&o.partitions[3], 1)
			o.pods[3].Status.Conditions[0].Status = corev1.ConditionFalse
		}, "3>0 +2 p0 waits for shard 1: rtd-s1-1 is not ready"},
		"its pods are being replaced": {func(o *observation) { o.statefulSets[1].Status.UpdateRevision = "rev2" }, "+2 p0 waits for shard 1: its pods are being replaced"},
		"its pods are replaced manually": {func(o *observation) {
			o.statefulSets[1].Status.UpdateRevision = "rev2"
			o.grid.Spec.UpdateStrategy.Type = api.UpdateOnDelete
		}, "0>1 1>1 +0 "},
		"it has a third copy meanwhile": {func(o *observation) { o.copies = []shardCopies{{shard: 0}, {shard: 1, surge: true}} }, "+2 p0 waits for shard 1: its pods are being replaced"},
		"the number of its copies changes": {func(o *observation) { o.copies = []shardCopies{{shard: 0}, {shard: 1, resizing: true}} },
			"+2 p0 waits for shard 1: the number of its copies changes first"},
		"the number of copies changes where they are": {func(o *observation) { o.copies = []shardCopies{{shard: 0, resizing: true}} },
			"+0 p0 stays on shard 0: the number of its copies changes first"},
		"a Kubernetes node of it is emptied": {func(o *observation) { o.emptied = map[string]string{"rtd-s1-1": "n4"} }, "+2 p0 waits for shard 1: rtd-s1-1 is on n4, which is being emptied"},
		"a copy of one is missing":           {func(o *observation) { o.partitions[0].Status.InSync = o.partitions[0].Status.InSync[:1] }, "1>1 2>1 +0 "},
		"data loss is suspected": {func(o *observation) { findings(o, 3, finding{loss: loss{verdict: fateGone}}) },
			"+2 rtd-p3: DataLossSuspected, and no partition begins to move before it is resolved"},
		"a record went back": {func(o *observation) { findings(o, 3, finding{lead: &lead{}}) },
			"+2 rtd-p3: ConfigurationRegressed, and no partition begins to move before it is resolved"},
		"a record is missing": {func(o *observation) { o.partitions = o.partitions[:3] }, "+0 "},
		"it leaves again":     {func(o *observation) { o.scale.wanted = 1 }, "+0 "},
		"it leaves again, and one was on its way": {func(o *observation) {
			o.scale.wanted = 1
			goHome(&o.partitions[3], 1)
		}, "3>0 +0 "},
		"it leaves again, and a copy is there": {func(o *observation) {
			o.scale.wanted = 1
			goHome(&o.partitions[3], 1)
			join(&o.partitions[3], "rtd-s1-0")
		}, "+0 "},
	} {
		o := scaledOut()
		c.change(o)
		plan := nextMoves(o, rollNow)
		var got string
		for _, m := range plan.Begin {
			got += fmt.Sprintf("%d>%d ", m.Partition, m.To)
		}
		if got += fmt.Sprintf("+%d ", len(plan.Queued)); len(plan.Waiting) > 0 {
			got += plan.Waiting[0]
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestMovingPartitionHoldsPods: a pod of either shard stays while a partition has copies on both.
func TestMovingPartitionHoldsPods(t *testing.T) {
	for name, change := range map[string]func(*api.GridPartition){
		"no pod of the other shard is in sync": func(*api.GridPartition) {},
		"one is":                               func(p *api.GridPartition) { join(p, "rtd-s1-0") },
		"one of the source shard is left": func(p *api.GridPartition) {
			p.Status.InSync = p.Status.InSync[:1]
			join(p, "rtd-s1-0")
			join(p, "rtd-s1-1")
		},
	} {
		o := twoShards()
		if plan := planRoll(o, rollNow); len(plan.replace) != 1 {
			t.Fatalf("at rest %d pods are replaced, want 1", len(plan.replace))
		}
		p := &o.partitions[1]
		goHome(p, 1)
		change(p)
		plan := planRoll(o, rollNow)
		if len(plan.replace) != 0 || !strings.Contains(strings.Join(plan.waiting, "|"), "shard 0: p1 moves first") {
			t.Errorf("%s: %d pods are replaced, waits %q", name, len(plan.replace), plan.waiting)
		}
	}

	// A pod on a lost node: the source and the target shard of a move.
	nodes := map[string]lostNode{"n1": {name: "n1", since: rollNow.Add(-time.Hour)}}
	for pod, c := range map[string]struct{ inSync, want string }{
		"rtd-s0-1": {"rtd-s0-0 rtd-s0-1 rtd-s1-0", "the others still count on its copy of rtd-p1"},
		"rtd-s1-0": {"rtd-s0-0 rtd-s1-0", "the others still count on its copy of rtd-p1"},
		"rtd-s1-1": {"rtd-s1-1", "the others still count on its copy of rtd-p1"},
		"rtd-s0-0": {"rtd-s1-0 rtd-s1-1", ""},
	} {
		o := scaledOut()
		for i := range o.partitions {
			goHome(&o.partitions[i], 1)
			o.partitions[i].Status.InSync = nil
			for _, name := range strings.Fields(c.inSync) {
				join(&o.partitions[i], name)
			}
		}
		o.partitions = o.partitions[1:]
		o.grid.Spec.Partitions = 3
		lost := podNamed(o.pods, pod)
		lost.Spec.NodeName = "n1"
		lost.Status.Conditions[0].Status = corev1.ConditionFalse
		shard, _ := shardOf(o.grid, pod)
		if got := o.needed(lost, shard, []*corev1.Pod{lost}); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s with %s in sync: needed %q, want %q", pod, c.inSync, got, c.want)
		}
		if plan := planLost(o, nodes, rollNow); (len(plan.giveUp) == 0) != (c.want != "") {
			t.Errorf("%s with %s in sync: %d pods are given up", pod, c.inSync, len(plan.giveUp))
		}
	}

	// A third copy of a shard does not allow the removal of a pod with a copy of a moving partition: it has no copy of
	// that one.
	o := scaledOut()
	o.grid.Spec.UpdateStrategy.Surge = new(int32)
	*o.grid.Spec.UpdateStrategy.Surge = 1
	third := *o.pods[1].DeepCopy()
	third.Name = "rtd-s0-2"
	o.pods = append(o.pods, third)
	sortPods(o.pods)
	for i := range o.partitions {
		join(&o.partitions[i], "rtd-s0-2")
	}
	c := &shardCopies{shard: 0, surge: true}
	if keep := o.keeps(c); keep != 2 {
		t.Errorf("three hold everything, and %d have to stay", keep)
	}
	goHome(&o.partitions[0], 1)
	o.partitions[0].Status.InSync = o.partitions[0].Status.InSync[:2]
	if keep := o.keeps(c); keep != 3 {
		t.Errorf("a partition moves away, and %d of three pods have to stay", keep)
	}
}
