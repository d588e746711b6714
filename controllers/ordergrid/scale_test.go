package ordergrid

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// world is a grid as planScale sees it, written in short: per shard "+" (serves), "-" (a primary is away), "0" (never
// claimed), with "d" or "r" behind it for what its records say of admission.
func world(shards string, layout api.GridLayout) (records []api.GridPartition, pods []corev1.Pod) {
	for _, s := range strings.Fields(shards) {
		shard := int32(s[0] - 'a')
		for index := range int32(2) {
			p := api.GridPartition{ObjectMeta: metav1.ObjectMeta{Name: api.PartitionName("rtd", shard, index)},
				Spec: api.GridPartitionSpec{Shard: shard, Index: index, Replicas: 2, Admission: api.AdmissionOpen}}
			if layout.Revision > 0 {
				p.Spec.Layout = &layout
			}
			switch {
			case strings.HasSuffix(s, "r"), strings.HasSuffix(s, "p") && index == 0:
				p.Spec.Admission = api.AdmissionRetired
			case strings.HasSuffix(s, "d"), strings.HasSuffix(s, "p"):
				p.Spec.Admission = api.AdmissionDraining
			}
			name := api.PodName("rtd", shard, index)
			if s[1] != '0' {
				m := api.Member{ID: name + "/0123456789abcdef", PodName: name}
				p.Status = api.GridPartitionStatus{Epoch: 2, Primary: &m, InSync: []api.Member{m, {PodName: "other"}}}
			}
			records = append(records, p)
			status := corev1.ConditionTrue
			if s[1] == '-' {
				status = corev1.ConditionFalse
			}
			pods = append(pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
				Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}}})
		}
	}
	return records, pods
}

func kept() *api.OrderGrid {
	g := pairGrid()
	g.Spec.Sinks = []api.SinkSpec{{Name: "audit", Type: api.SinkFile, File: &api.FileSinkSpec{Volume: api.SinkVolumeClaim}}}
	g.Spec.ScaleIn = api.ScaleInSpec{Policy: api.ScaleInWhenDownstream, KeepDrained: metav1.Duration{Duration: 30 * time.Second}}
	return g
}

// TestPlanScale: what clients are told, step by step, whoever begins and wherever it is broken off.
func TestPlanScale(t *testing.T) {
	l := func(revision int64, shards, open, removed int32) api.GridLayout {
		return api.GridLayout{Revision: revision, Shards: shards, Open: open, Removed: removed}
	}
	hold := func(g *api.OrderGrid) { g.Spec.Sinks = nil }
	for _, test := range []struct {
		name    string
		wanted  int32
		shards  string
		layout  api.GridLayout
		want    api.GridLayout
		works   int32  // shards the pass works on
		says    string // admissions of the shards, one letter each
		waiting string
		change  func(*api.OrderGrid)
	}{
		{"a new grid is told of as a whole", 3, "", l(0, 0, 0, 0), l(1, 3, 3, 0), 3, "ooo", "", nil},
		{"and stays so while its records are made", 3, "a0", l(1, 3, 3, 0), l(1, 3, 3, 0), 3, "ooo", "", nil},
		{"one from before there were layouts", 2, "a+ b+", l(0, 0, 0, 0), l(1, 2, 2, 0), 2, "oo", "", nil},
		{"the same, and it grows", 3, "a+", l(0, 0, 0, 0), l(1, 1, 1, 0), 3, "ooo", "shard 1 is being made", nil},
		{"nothing to do", 2, "a+ b+", l(4, 2, 2, 0), l(4, 2, 2, 0), 2, "oo", "", nil},

		{"shards are added: not there yet", 3, "a+", l(1, 1, 1, 0), l(1, 1, 1, 0), 3, "ooo", "shard 1 is being made", nil},
		{"not claimed yet", 3, "a+ b0 c+", l(1, 1, 1, 0), l(1, 1, 1, 0), 3, "ooo", "rtd-s1-p0 has no primary yet", nil},
		{"the first serves", 3, "a+ b+ c0", l(1, 1, 1, 0), l(2, 2, 2, 0), 3, "ooo", "rtd-s2-p0 has no primary yet", nil},
		{"both do", 3, "a+ b+ c+", l(1, 1, 1, 0), l(2, 3, 3, 0), 3, "ooo", "", nil},
		{"taken back before anybody was told", 1, "a+ b+ c0", l(1, 1, 1, 0), l(1, 1, 1, 0), 3, "odd", "", nil},

		{"a shard drains", 2, "a+ b+ c+", l(2, 3, 3, 0), l(3, 3, 2, 0), 3, "ood", "", nil},
		{"two do", 1, "a+ b+ c+", l(2, 3, 3, 0), l(3, 3, 1, 0), 3, "odd", "", nil},
		{"not while those that stay do not serve", 2, "a+ b- c+", l(2, 3, 3, 0), l(2, 3, 3, 0), 3, "ooo", "shard 2 begins to drain once the shards that stay serve: the primary of rtd-s1-p0, rtd-s1-0, is not ready", nil},
		{"one that goes may be down", 2, "a+ b+ c-", l(2, 3, 3, 0), l(3, 3, 2, 0), 3, "ood", "", nil},
		{"it goes on draining", 2, "a+ b+ c+d", l(3, 3, 2, 0), l(3, 3, 2, 0), 3, "ood", "", nil},
		{"half of the records were written", 2, "a+ b+ c+", l(3, 3, 2, 0), l(3, 3, 2, 0), 3, "ood", "", nil},
		{"changed back", 3, "a+ b+ c+d", l(3, 3, 2, 0), l(4, 3, 3, 0), 3, "ooo", "", nil},
		{"changed back while its primary is away", 3, "a+ b+ c-d", l(3, 3, 2, 0), l(3, 3, 2, 0), 3, "ood", "the primary of rtd-s2-p0, rtd-s2-0, is not ready", nil},
		{"changed back in part", 2, "a+ b+d c+d", l(3, 3, 1, 0), l(4, 3, 2, 0), 3, "ood", "", nil},

		{"one of its partitions is retired", 2, "a+ b+ c+p", l(3, 3, 2, 0), l(3, 3, 2, 0), 3, "oor", "", nil},
		{"and now it is wanted again: too late", 3, "a+ b+ c+p", l(3, 3, 2, 0), l(3, 3, 2, 0), 3, "oor", "shard 2 is being removed and has to be gone before it is made anew", nil},
		{"all are: clients are told", 2, "a+ b+ c+r", l(3, 3, 2, 0), l(4, 2, 2, 1), 2, "oo", "", nil},
		{"it goes", 2, "a+ b+ c+r", l(4, 2, 2, 1), l(4, 2, 2, 1), 2, "oo", "", nil},
		{"it goes, and is wanted again", 3, "a+ b+ c+r", l(4, 2, 2, 1), l(4, 2, 2, 1), 2, "oo", "", nil},
		{"it is gone, and is made anew", 3, "a+ b+", l(4, 2, 2, 1), l(4, 2, 2, 1), 3, "ooo", "shard 2 is being made", nil},
		{"the next one drains while it goes", 1, "a+ b+d c+r", l(4, 3, 1, 0), l(5, 2, 1, 1), 2, "od", "", nil},

		{"with nothing downstream it stays open", 2, "a+ b+ c+", l(2, 3, 3, 0), l(2, 3, 3, 0), 3, "ooo", "", hold},
		{"unless that is wanted", 2, "a+ b+ c+", l(2, 3, 3, 0), l(3, 3, 2, 0), 3, "ood", "", func(g *api.OrderGrid) {
			hold(g)
			g.Spec.ScaleIn.Policy = api.ScaleInDiscardOrders
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			grid := kept()
			grid.Spec.Shards = test.wanted
			if test.change != nil {
				test.change(grid)
			}
			records, pods := world(test.shards, test.layout)
			s := planScale(grid, records, pods, time.Unix(1<<20, 0))
			if told := s.layout.NextFirstSeq != 0; told != (test.want.Removed > test.layout.Removed) {
				t.Errorf("nextFirstSeq %d: it says where partitions begin once others were removed", s.layout.NextFirstSeq)
			}
			s.layout.NextFirstSeq = 0
			if s.layout != test.want || s.shards != test.works {
				t.Errorf("layout %+v, %d shards; want %+v, %d", s.layout, s.shards, test.want, test.works)
			}
			if got := strings.Join(s.waiting, "; "); got != test.waiting {
				t.Errorf("waits %q, want %q", got, test.waiting)
			}
			if refused := test.name == "with nothing downstream it stays open"; refused != (s.refused != "") {
				t.Errorf("refused %q", s.refused)
			}
			says := ""
			for shard := range s.shards {
				var now *api.GridPartition
				for i := range records {
					if records[i].Spec.Shard == shard && records[i].Spec.Index == 0 {
						now = &records[i]
					}
				}
				desired := partition(grid, &shardCopies{shard: shard, wanted: 2, needed: 1}, 0, wishes{})
				s.tell(desired, now)
				says += map[api.PartitionAdmission]string{api.AdmissionOpen: "o", api.AdmissionDraining: "d", api.AdmissionRetired: "r"}[desired.Spec.Admission]
			}
			if says != test.says {
				t.Errorf("admissions %s, want %s", says, test.says)
			}
		})
	}
}

// TestJudgeDrain: a shard is drained when nothing can be added to what the sink holds, and everybody says so.
func TestJudgeDrain(t *testing.T) {
	healthy := func() (*api.OrderGrid, []*api.GridPartition, map[string]*answer) {
		records, _ := world("c+d", api.GridLayout{Revision: 7, Shards: 3, Open: 2})
		p := &records[0]
		answers := map[string]*answer{}
		p.Status.InSync = nil
		for ordinal := range int32(2) {
			name := api.PodName("rtd", 2, ordinal)
			p.Status.InSync = append(p.Status.InSync, api.Member{ID: name + "/0123456789abcdef", PodName: name})
			q := nodestatus.Partition{Record: p.Name, Member: name + "/0123456789abcdef", Role: "backup", Epoch: 2, Closed: true, AdmissionRevision: 7,
				LastSeq: 101, CommitSeq: 101, DataSeq: 100, CursorSeq: 100, ClosedForNs: int64(time.Minute)}
			if ordinal == 0 {
				q.Role = "primary"
			}
			answers[name] = &answer{pod: &corev1.Pod{}, node: &nodestatus.Node{Partitions: []nodestatus.Partition{q}}}
		}
		p.Status.Primary = &p.Status.InSync[0]
		return kept(), []*api.GridPartition{p}, answers
	}
	first := func(answers map[string]*answer) *nodestatus.Partition { return &answers["rtd-s2-0"].node.Partitions[0] }
	second := func(answers map[string]*answer) *nodestatus.Partition { return &answers["rtd-s2-1"].node.Partitions[0] }
	for _, test := range []struct {
		name   string
		change func(g *api.OrderGrid, p *api.GridPartition, answers map[string]*answer)
		waits  string
		left   int64
	}{
		{"drained", func(*api.OrderGrid, *api.GridPartition, map[string]*answer) {}, "", 0},
		{"the record is open", func(_ *api.OrderGrid, p *api.GridPartition, _ map[string]*answer) {
			p.Spec.Admission = api.AdmissionOpen
		}, "rtd-s2-p0 has not been told", 0},
		{"the record is of an older decision", func(_ *api.OrderGrid, p *api.GridPartition, _ map[string]*answer) { p.Spec.Layout.Revision = 6 }, "rtd-s2-p0 has not been told", 0},
		{"the primary has not heard", func(_ *api.OrderGrid, _ *api.GridPartition, a map[string]*answer) { first(a).Closed = false }, "rtd-s2-0 has not heard that rtd-s2-p0 takes no more orders", 0},
		{"a backup has heard an older decision only: it may become primary and take orders", func(_ *api.OrderGrid, _ *api.GridPartition, a map[string]*answer) { second(a).AdmissionRevision = 5 }, "rtd-s2-1 has not heard that rtd-s2-p0 takes no more orders", 0},
		{"a member is silent", func(_ *api.OrderGrid, _ *api.GridPartition, a map[string]*answer) { a["rtd-s2-1"].node = nil }, "rtd-s2-1, which holds a copy of rtd-s2-p0, does not answer", 0},
		{"a member's pod is gone", func(_ *api.OrderGrid, _ *api.GridPartition, a map[string]*answer) { delete(a, "rtd-s2-1") }, "rtd-s2-1, which holds a copy of rtd-s2-p0, does not answer", 0},
		{"a pod that was dropped is silent", func(_ *api.OrderGrid, p *api.GridPartition, a map[string]*answer) {
			p.Status.InSync, a["rtd-s2-1"].node = p.Status.InSync[:1], nil
		}, "", 0},
		{"another process runs in the pod", func(_ *api.OrderGrid, _ *api.GridPartition, a map[string]*answer) { second(a).Member = "rtd-s2-1/new" }, "rtd-s2-1 is not the process that the record of rtd-s2-p0 names", 0},
		{"a take-over is under way", func(_ *api.OrderGrid, _ *api.GridPartition, a map[string]*answer) { first(a).Epoch = 3 }, "the primary of rtd-s2-p0 is being changed", 0},
		{"it was the primary", func(_ *api.OrderGrid, _ *api.GridPartition, a map[string]*answer) { first(a).Role = "fenced" }, "the primary of rtd-s2-p0 is being changed", 0},
		{"orders are under way", func(_ *api.OrderGrid, _ *api.GridPartition, a map[string]*answer) { first(a).LastSeq = 102 }, "rtd-s2-p0 has orders under way", 0},
		{"the sink lags", func(_ *api.OrderGrid, _ *api.GridPartition, a map[string]*answer) { first(a).CursorSeq = 60 }, "rtd-s2-p0 holds 40 entries that its sink does not", 40},
		{"the sink lags, and may", func(g *api.OrderGrid, _ *api.GridPartition, a map[string]*answer) {
			first(a).CursorSeq, g.Spec.ScaleIn.Policy = 60, api.ScaleInDiscardOrders
		}, "", 40},
		{"it has just begun", func(_ *api.OrderGrid, _ *api.GridPartition, a map[string]*answer) {
			first(a).ClosedForNs = int64(10 * time.Second)
		}, "rtd-s2-p0 answers reads and repeated orders for 20s more", 0},
		{"nobody ever had it", func(_ *api.OrderGrid, p *api.GridPartition, _ map[string]*answer) {
			p.Status = api.GridPartitionStatus{}
		}, "", 0},
		{"it is retired already", func(_ *api.OrderGrid, p *api.GridPartition, a map[string]*answer) {
			p.Spec.Admission, a["rtd-s2-1"].node, a["rtd-s2-0"].node = api.AdmissionRetired, nil, nil
		}, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			grid, records, answers := healthy()
			test.change(grid, records[0], answers)
			d := judgeDrain(grid, 7, records, answers)
			if got := strings.Join(d.waits, "; "); got != test.waits || d.left != test.left {
				t.Errorf("waits %q with %d left, want %q with %d", got, d.left, test.waits, test.left)
			}
		})
	}
}

// TestScaleMessages: what a person reads.
func TestScaleMessages(t *testing.T) {
	grid := kept()
	grid.Spec.Shards, grid.Spec.Sinks = 2, nil
	records, pods := world("a+ b+ c+", api.GridLayout{Revision: 2, Shards: 3, Open: 3})
	s := planScale(grid, records, pods, time.Now())
	if want := "shard 2 cannot be removed, because spec.sinks has none, and its orders are in memory only. Set spec.shards back to 3, or give the orders up with spec.scaleIn.policy DiscardOrders"; s.refused != want {
		t.Errorf("refused %q, want %q", s.refused, want)
	}
	s = planScale(kept(), records, pods, time.Now()) // one shard wanted of three
	s.left[2], s.waitsFor[2] = 40, "rtd-s2-p0 holds 40 entries that its sink does not"
	reason, message := s.underWay()
	want := "1 of 1 shards take orders; shard 1: draining; shard 2: draining, 40 entries are not downstream, waits: rtd-s2-p0 holds 40 entries that its sink does not"
	if reason != "RemovingShards" || message != want {
		t.Errorf("%s: %q, want %q", reason, message, want)
	}
	if got := fmt.Sprint(len(s.leaving()), *s.leaving()[1].OrdersLeft, s.leaving()[0].OrdersLeft == nil); got != "2 40 true" {
		t.Errorf("leaving %s", got)
	}
}
