package ordergrid

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// journalGrid has a journal, and a sink with claims that go with the grid.
func journalGrid() *api.OrderGrid {
	grid := pairGrid()
	grid.Spec.Journal = &api.JournalSpec{Size: resource.MustParse("16Gi"), StorageClassName: ptr.To("local-nvme")}
	grid.Spec.Sinks = []api.SinkSpec{{Name: api.SinkNameFile, Type: api.SinkFile, File: &api.FileSinkSpec{
		Volume: api.SinkVolumeClaim, Size: resource.MustParse("20Gi"), WhenDeleted: api.ClaimDelete,
	}}}
	return grid
}

func TestJournalOfPod(t *testing.T) {
	with, without := pairGrid(), pairGrid()
	with.Spec.Journal = &api.JournalSpec{Size: resource.MustParse("16Gi")}
	if args := strings.Join(nodeArgs(with, 0), " "); !strings.Contains(args, " --journal /var/lib/ordergrid/journal --journal-max-bytes 16106127360") { // 15Gi
		t.Error(args)
	}
	if args := strings.Join(nodeArgs(without, 0), " "); strings.Contains(args, "--journal") {
		t.Errorf("without spec.journal: %s", args)
	}
	a, b := container(with, 0, testDefaults), container(without, 0, testDefaults)
	if d := a.StartupProbe.FailureThreshold - b.StartupProbe.FailureThreshold; d != 320 {
		t.Errorf("16Gi may take %d s to be read at the start, want 320", d)
	}
	if d := (a.LivenessProbe.FailureThreshold - b.LivenessProbe.FailureThreshold) * a.LivenessProbe.PeriodSeconds; d != 320 {
		t.Errorf("16Gi may take %d s to be read again, want 320", d)
	}
	if p := statefulSet(with, 0, 2, pod(with, 0, testDefaults)).Spec.PersistentVolumeClaimRetentionPolicy; p == nil || p.WhenDeleted != "Retain" || p.WhenScaled != "Retain" {
		t.Errorf("the claims are handled as %+v", p)
	}
}

// TestJournalsHealthy: the condition tells what the nodes report, and no more than is known.
func TestJournalsHealthy(t *testing.T) {
	for name, test := range map[string]struct {
		change     func(o *observation, answers []*nodestatus.Memory)
		want, text string
	}{
		"written":   {func(*observation, []*nodestatus.Memory) {}, "True/Durable", "all 2 pods acknowledge only what is on the disk"},
		"no spec":   {func(o *observation, _ []*nodestatus.Memory) { o.grid.Spec.Journal = nil }, "/", ""},
		"not asked": {func(o *observation, _ []*nodestatus.Memory) { o.roomAsked = false }, "Unknown/NodesSilent", "no grid node has answered"},
		"full":      {func(_ *observation, m []*nodestatus.Memory) { m[1].Journal.Full = true }, "False/JournalFull", "rtd-s0-1. No acknowledged order is lost. spec.retention.policy KeepAll frees nothing"},
		"full, though it frees": {func(o *observation, m []*nodestatus.Memory) {
			m[1].Journal.Full, o.grid.Spec.Retention.Policy = true, api.RetentionFreeDownstream
		}, "False/JournalFull", "check which one lags"},
		"failing": {func(_ *observation, m []*nodestatus.Memory) {
			m[0].Journal.Full, m[0].Journal.Error = true, "p1: input/output error"
		},
			"False/Failing", "rtd-s0-0: p1: input/output error"},
		"an older image": {func(_ *observation, m []*nodestatus.Memory) { m[0].Journal = nil }, "False/NoJournal", "rtd-s0-0"},
	} {
		t.Run(name, func(t *testing.T) {
			o := healthy()
			o.grid.Spec.Journal, o.roomAsked = &api.JournalSpec{Size: resource.MustParse("16Gi")}, true
			var answers []*nodestatus.Memory
			for _, pod := range []string{"rtd-s0-0", "rtd-s0-1"} {
				m := memoryOf(pod, 100, nil)
				m.Journal = &nodestatus.Journal{Bytes: 1 << 30, LimitBytes: 15 << 30}
				answers = append(answers, m)
			}
			fine := roomOf(answers, 2)
			test.change(o, answers)
			o.room = roomOf(answers, 2)
			j := judgeJournals(o)
			if got := string(j.status) + "/" + j.reason; got != test.want || !strings.Contains(j.message, test.text) {
				t.Errorf("%s: %s\nwant %s: … %s", got, j.message, test.want, test.text)
			}
			if trouble := strings.HasPrefix(test.want, "False"); trouble && fine.equal(&o.room) {
				t.Error("the operator does not look at the grid for it")
			}
		})
	}
	o := healthy()
	o.grid.Spec.Journal, o.roomAsked = &api.JournalSpec{}, true
	m := memoryOf("rtd-s0-0", 100, nil)
	m.Journal = &nodestatus.Journal{}
	o.room = roomOf([]*nodestatus.Memory{m}, 2)
	if j := judgeJournals(o); j.status != metav1.ConditionUnknown || !strings.Contains(j.message, "only these pods answer the operator: rtd-s0-0") {
		t.Errorf("a pod is silent: %+v", j)
	}
	o.room = roomOf([]*nodestatus.Memory{m}, 1) // the other one has no address, so it was not asked
	if j := judgeJournals(o); j.status != metav1.ConditionUnknown {
		t.Errorf("a pod is not there: %+v", j)
	}
}

// TestJournalIsNoLoss: a pod that is gone comes back with its journal; another process in it has lost it.
func TestJournalIsNoLoss(t *testing.T) {
	b, grid := powerCut(t)
	b.wantCondition(grid, api.ConditionDataLossSuspected, metav1.ConditionUnknown, "MembersUnreachable",
		"is gone: its pod does not exist, and what it held is in PersistentVolumeClaim journal-rtd-s0-1, with which it comes back; if that is lost, delete the claim and the pod")
	b.comeBack(grid, secondBoot, "learner")
	b.wantCondition(grid, api.ConditionDataLossSuspected, metav1.ConditionTrue, "NoInSyncMemberLeft", "its pod runs rtd-s0-0/"+secondBoot)
}

// TestJournalBringsMembersBack: processes with the boot ids of their journals are the members that were gone.
func TestJournalBringsMembersBack(t *testing.T) {
	b, grid := powerCut(t)
	b.comeBack(grid, "0123456789abcdef", "claiming")
	b.wantCondition(grid, api.ConditionDataLossSuspected, metav1.ConditionFalse, "MembersPresent")
}

// comeBack starts both pods; their processes report this boot id and role.
func (b *bench) comeBack(grid *api.OrderGrid, boot, role string) {
	b.t.Helper()
	for i := range int32(2) {
		b.startPod(grid, 0, i)
		b.setReady(api.PodName("rtd", 0, i), corev1.ConditionFalse)
		b.nodes.says(grid, i, boot, role, b.partition(grid, 0, 0), b.partition(grid, 0, 1))
	}
	b.run(grid)
}

// powerCut is a grid with journals whose pods are all gone.
func powerCut(t *testing.T) (*bench, *api.OrderGrid) {
	t.Helper()
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{Journal: &api.JournalSpec{Size: resource.MustParse("2Gi")}})
	b.run(grid)
	b.run(grid)
	b.play(grid)
	b.run(grid)
	for _, pod := range []string{"rtd-s0-0", "rtd-s0-1"} {
		b.setReady(pod, corev1.ConditionFalse)
	}
	b.run(grid)
	b.clock.SetTime(b.clock.Now().Add(troubleAfter))
	for _, pod := range []string{"rtd-s0-0", "rtd-s0-1"} {
		object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: b.namespace}}
		if err := b.client.Delete(t.Context(), object, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	b.run(grid)
	return b, grid
}
