package ordergrid

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// healthy is the observation of a healthy pair.
func healthy() *observation {
	o := &observation{grid: pairGrid(), scale: scale{wanted: 1, shards: 1}}
	for index := range o.grid.Spec.Replicas {
		p := recordOf(o.grid, 0, index)
		p.Status = api.GridPartitionStatus{Epoch: 2, Lineage: 1}
		for i := range o.grid.Spec.Replicas {
			ordinal := (index + i) % 2
			name := api.PodName("rtd", 0, ordinal)
			p.Status.InSync = append(p.Status.InSync, api.Member{ID: name + "/x", PodName: name})
		}
		p.Status.Primary = &p.Status.InSync[0]
		o.partitions = append(o.partitions, *p)
		o.pods = append(o.pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: api.PodName("rtd", 0, index), Labels: map[string]string{
				api.LabelShard: "0", appsv1.ControllerRevisionHashLabelKey: "rev1"}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		})
	}
	set := statefulSet(o.grid, 0, o.grid.Spec.Replicas, corev1.PodTemplateSpec{})
	set.Status.UpdateRevision = "rev1"
	o.statefulSets = append(o.statefulSets, *set)
	o.sort()
	return o
}

func TestConditions(t *testing.T) {
	notReady := func(o *observation, pod int) { o.pods[pod].Status.Conditions[0].Status = corev1.ConditionFalse }
	for _, test := range []struct {
		name   string
		change func(*observation)
		want   string // Available Redundant Progressing Stalled as status/reason
		text   string // in one of the messages
	}{
		{"healthy", func(*observation) {}, "True/Serving True/FullyInSync False/Steady False/AsExpected", "all 2 partitions have a primary"},
		{"nothing there yet", func(o *observation) { o.partitions, o.pods, o.statefulSets = nil, nil, nil },
			"False/NotClaimed False/CopiesMissing True/Starting False/AsExpected", "2 of 2 partitions have no primary yet"},
		{"one unclaimed", func(o *observation) { o.partitions[1].Status = api.GridPartitionStatus{} },
			"False/NotClaimed False/CopiesMissing False/Steady False/AsExpected", "1 of 2 partitions have no primary yet: rtd-p1"},
		{"backup away", func(o *observation) {
			o.partitions[0].Status.InSync = o.partitions[0].Status.InSync[:1]
			notReady(o, 1)
		},
			"False/PrimaryNotReady False/CopiesMissing True/Starting False/AsExpected", "rtd-p1 on rtd-s0-1"},
		{"solo by configuration", func(o *observation) {
			for i := range o.partitions {
				m := api.Member{ID: "rtd-s0-0/x", PodName: "rtd-s0-0"}
				o.partitions[i].Status.Primary, o.partitions[i].Status.InSync = &m, []api.Member{m}
			}
			notReady(o, 1)
		}, "True/Serving False/CopiesMissing True/Starting False/AsExpected", "2 of 2 partitions lack a copy: rtd-p0 has 1 of 2, without rtd-s0-1, rtd-p1 has 1 of 2, without rtd-s0-1"},
		{"below minInSync", func(o *observation) {
			o.partitions[0].Spec.MinInSync = 2
			o.partitions[0].Status.InSync = o.partitions[0].Status.InSync[:1]
		}, "False/InsufficientInSync False/CopiesMissing False/Steady False/AsExpected", "rtd-p0 has 1 of 2"},
		{"pod being deleted", func(o *observation) { now := metav1.Now(); o.pods[0].DeletionTimestamp = &now },
			"True/Serving False/CopiesMissing True/Starting False/AsExpected", "rtd-p0 has 1 of 2, without rtd-s0-0"},
		{"pod being deleted that does not answer any more", func(o *observation) {
			now := metav1.Now()
			o.pods[0].DeletionTimestamp = &now
			notReady(o, 0)
		}, "False/PrimaryNotReady False/CopiesMissing True/Starting False/AsExpected", "rtd-p0 on rtd-s0-0"},
		{"pod not scheduled", func(o *observation) {
			notReady(o, 0)
			o.pods[0].Status.Conditions = append(o.pods[0].Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."})
		}, "False/PrimaryNotReady False/CopiesMissing True/Starting False/AsExpected", "Pod rtd-s0-0: 0/2 nodes are available: 2 node(s) didn't match"},
		{"image not there", func(o *observation) {
			notReady(o, 0)
			o.pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImageNeverPull", Message: "image is not present"}}}}
		}, "False/PrimaryNotReady False/CopiesMissing True/Starting False/AsExpected", "Pod rtd-s0-0: ErrImageNeverPull: image is not present"},
		{"older template", func(o *observation) { o.statefulSets[0].Status.UpdateRevision = "rev2" },
			"True/Serving True/FullyInSync True/PodsOutdated False/AsExpected", "2 of 2 pods run an older pod template: rtd-s0-0, rtd-s0-1; delete them one at a time, each only while Redundant is True"},
		{"single copy", func(o *observation) {
			o.grid.Spec.Replicas, o.grid.Spec.Partitions = 1, 1
			o.partitions, o.pods = o.partitions[:1], o.pods[:1]
			o.partitions[0].Spec.Replicas = 1
			o.partitions[0].Status.InSync = o.partitions[0].Status.InSync[:1]
		}, "True/Serving False/SingleCopy False/Steady False/AsExpected", "the partition has a primary that serves"},
		{"stalled", func(o *observation) { o.stall = &stall{reasonNameTaken, "Service trading/rtd-client exists"} },
			"True/Serving True/FullyInSync False/Steady True/NameTaken", "Service trading/rtd-client exists"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := healthy()
			test.change(o)
			var got, messages []string
			for _, c := range gridConditions[:4] { // the others have tests of their own
				j := c.judge(o)
				got = append(got, string(j.status)+"/"+j.reason)
				messages = append(messages, j.message)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("\n got: %s\nwant: %s", strings.Join(got, " "), test.want)
			}
			if all := strings.Join(messages, "\n"); !strings.Contains(all, test.text) {
				t.Errorf("%q is in none of\n%s", test.text, all)
			}
		})
	}
}

// TestMessagesStayShort: a condition of a grid with 768 partitions names only a few.
func TestMessagesStayShort(t *testing.T) {
	grid := pairGrid()
	grid.Spec.Shards, grid.Spec.Partitions, grid.Spec.Replicas = 256, 768, 3
	o := &observation{grid: grid}
	for shard := range grid.Spec.Shards {
		for index := range grid.Spec.Replicas {
			o.partitions = append(o.partitions, *recordOf(grid, shard, index))
		}
	}
	o.sort()
	j := judgeAvailable(o)
	if len(j.message) > 200 || !strings.Contains(j.message, "768 of 768") || !strings.Contains(j.message, "764 more") {
		t.Errorf("message of %d bytes: %s", len(j.message), j.message)
	}
}

func TestEvents(t *testing.T) {
	condition := func(kind, reason string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Reason: reason, Status: status, Message: "m"}
	}
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	for _, test := range []struct {
		name            string
		before, changed metav1.Condition
		want            string
	}{
		{"becomes available", condition(api.ConditionAvailable, "NotClaimed", no), condition(api.ConditionAvailable, "Serving", yes), "Normal Serving"},
		{"no longer available", condition(api.ConditionAvailable, "Serving", yes), condition(api.ConditionAvailable, "PrimaryNotReady", no), "Warning PrimaryNotReady"},
		{"not available yet", metav1.Condition{}, condition(api.ConditionAvailable, "NotClaimed", no), ""},
		{"redundancy lost", condition(api.ConditionRedundant, "FullyInSync", yes), condition(api.ConditionRedundant, "CopiesMissing", no), "Warning CopiesMissing"},
		{"stalled", condition(api.ConditionStalled, "AsExpected", no), condition(api.ConditionStalled, "NameTaken", yes), "Warning NameTaken"},
		{"goes on", condition(api.ConditionStalled, "NameTaken", yes), condition(api.ConditionStalled, "AsExpected", no), "Normal AsExpected"},
		{"loss suspected", condition(api.ConditionDataLossSuspected, "MembersUnreachable", metav1.ConditionUnknown), condition(api.ConditionDataLossSuspected, "NoInSyncMemberLeft", yes), "Warning NoInSyncMemberLeft"},
		{"loss no longer suspected", condition(api.ConditionDataLossSuspected, "NoInSyncMemberLeft", yes), condition(api.ConditionDataLossSuspected, "MembersPresent", no), "Normal MembersPresent"},
		{"not known", condition(api.ConditionDataLossSuspected, "MembersPresent", no), condition(api.ConditionDataLossSuspected, "MembersUnreachable", metav1.ConditionUnknown), ""},
		{"regressed", condition(api.ConditionConfigurationRegressed, "RecordCurrent", no), condition(api.ConditionConfigurationRegressed, "RecordBehind", yes), "Warning RecordBehind"},
		{"never stalled", metav1.Condition{}, condition(api.ConditionStalled, "AsExpected", no), ""},
		{"progress", condition(api.ConditionProgressing, "Starting", yes), condition(api.ConditionProgressing, "Steady", no), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, e := range conditionEvents([]metav1.Condition{test.before}, []metav1.Condition{test.changed}, false) {
				got = append(got, e.kind+" "+e.reason)
			}
			if strings.Join(got, ",") != test.want {
				t.Errorf("events %q, want %q", got, test.want)
			}
		})
	}

	before := []api.PartitionSummary{{Name: "p0", Primary: "a", Epoch: 3}, {Name: "p1", Primary: "b", Epoch: 2, Lineage: 1}, {Name: "p2"}}
	after := []api.PartitionSummary{{Name: "p0", Primary: "b", Epoch: 4, InSync: 1, Lineage: 1}, {Name: "p1", Primary: "b", Epoch: 5, Lineage: 2}, {Name: "p2", Primary: "a", Epoch: 1}}
	got := partitionEvents(before, after)
	if len(got) != 2 || got[0].note != "p0: primary is b, was a; epoch 4, 1 in sync" || got[1].reason != "NewLineage" || got[1].partition != "p1" {
		t.Errorf("partition events %+v", got)
	}
}

// TestPlannedChangesAreNoWarnings: while the operator replaces pods or changes the number of shards, and every order is
// acknowledged, there is no warning. When that lasts too long, there is one.
func TestPlannedChangesAreNoWarnings(t *testing.T) {
	full := []metav1.Condition{{Type: api.ConditionRedundant, Status: metav1.ConditionTrue, Reason: reasonFullyInSync}}
	missing := []metav1.Condition{{Type: api.ConditionRedundant, Status: metav1.ConditionFalse, Reason: reasonCopiesMissing, Message: "m"}}
	for planned, want := range map[bool]string{true: "Normal", false: "Warning"} {
		if got := conditionEvents(full, missing, planned); len(got) != 1 || got[0].kind != want {
			t.Errorf("planned %v: %+v, want one %s", planned, got, want)
		}
	}

	// A second shard is added, and a partition moves to it.
	o := healthy()
	o.scale = *planScale(o.grid, o.partitions)
	o.grid.Spec.Shards, o.scale.wanted, o.scale.shards = 2, 2, 2
	p := &o.partitions[1]
	p.Spec.Shard, p.Spec.Pods = 1, []string{"rtd-s1-0", "rtd-s1-1"}
	if a, r := judgeAvailable(o), judgeRedundant(o); a.status != metav1.ConditionTrue || r.status != metav1.ConditionTrue {
		t.Errorf("while a partition moves: %+v, %+v", a, r)
	}
	if p := judgeProgressing(o); p.reason != reasonMovingPartitions || !o.planned() || !strings.Contains(p.message, "p1 moves from shard 0 to shard 1, waits: shard 1 to be created") {
		t.Errorf("while a partition moves: %+v, planned %v", p, o.planned())
	}
	// A pod of the source shard is missing.
	o.pods[1].Status.Conditions[0].Status = corev1.ConditionFalse
	if r := judgeRedundant(o); !strings.Contains(r.message, "rtd-p1 has 1 of 2 while it moves to shard 1") {
		t.Errorf("a copy is missing while a partition moves: %+v", r)
	}

	now, m := time.Now(), &scaleMemory{}
	if o.judgeLate(m, now) != 10*time.Minute {
		t.Errorf("reconciles again in %v", o.judgeLate(m, now))
	}
	if again := o.judgeLate(m, now.Add(time.Minute)); again != 9*time.Minute || judgeStalled(o).status != metav1.ConditionFalse {
		t.Errorf("after a minute: again in %v, %+v", again, judgeStalled(o))
	}
	p.Status.Epoch++ // one step further
	if again := o.judgeLate(m, now.Add(9*time.Minute)); again != 10*time.Minute {
		t.Errorf("after a step: again in %v", again)
	}
	if o.judgeLate(m, now.Add(20*time.Minute)); judgeStalled(o).reason != reasonScaleStuck {
		t.Errorf("eleven minutes after the last step: %+v", judgeStalled(o))
	}
}

// TestLostRecordIsRemembered: the mirror keeps the epoch of a partition whose record is gone.
func TestLostRecordIsRemembered(t *testing.T) {
	o := healthy()
	before := o.summaries(nil)
	o.partitions = o.partitions[:1]
	after := o.summaries(before)
	if len(after) != 2 || after[1].Name != "rtd-p1" || after[1].Epoch != 2 || after[1].Primary != "" {
		t.Errorf("mirror %+v", after)
	}
}
