package ordergrid

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/histogram"
)

// counted is a process with that latency of each of its orders.
func counted(t *testing.T, shard string, orders uint64, latency time.Duration, refused float64) *orderCount {
	t.Helper()
	var h histogram.Histogram
	h.ObserveN(int64(latency), orders)
	var m dto.Metric
	if err := histogram.Metric(prometheus.NewDesc("x", "", nil, nil), &h).Write(&m); err != nil {
		t.Fatal(err)
	}
	n, err := histogram.FromScrape(m.Histogram)
	if err != nil {
		t.Fatal(err)
	}
	return &orderCount{shard: shard, uid: "1", began: 1, made: rollNow.Add(-time.Hour), acknowledged: float64(orders), refused: refused, latency: n}
}

// add counts more orders of the same process.
func (c *orderCount) add(t *testing.T, orders uint64, latency time.Duration, refused float64) *orderCount {
	t.Helper()
	more := counted(t, c.shard, orders, latency, refused)
	out := *c
	out.acknowledged, out.refused, out.latency = c.acknowledged+more.acknowledged, c.refused+more.refused, &histogram.Native{}
	for _, l := range []*histogram.Native{c.latency, more.latency} {
		if err := out.latency.Add(l); err != nil {
			t.Fatal(err)
		}
	}
	return &out
}

func TestJudgeOrders(t *testing.T) {
	const quick, slow = 100 * time.Microsecond, 5 * time.Millisecond
	old := counted(t, "0", 1e6, slow, 5000) // orders before the window do not count
	p99 := api.UpdateObjective{P99: &metav1.Duration{Duration: time.Millisecond}}
	errs := api.UpdateObjective{Errors: "0.1%"}
	both := api.UpdateObjective{P99: p99.P99, Errors: errs.Errors}
	restarted := counted(t, "0", 1000, quick, 0)
	restarted.began = 2
	replaced := counted(t, "0", 1000, slow, 0)
	replaced.uid, replaced.made = "2", rollNow.Add(-10*time.Second)
	for _, test := range []struct {
		name      string
		objective api.UpdateObjective
		before    map[string]*orderCount
		now       map[string]*orderCount
		silent    []string
		state     orderState
		text      string
	}{
		{"quick enough", both, map[string]*orderCount{"a": old}, map[string]*orderCount{"a": old.add(t, 30000, quick, 0)}, nil, ordersKeep, "met spec.updateStrategy.objective for 30s"},
		{"one in a hundred may be slow", p99, map[string]*orderCount{"a": old}, map[string]*orderCount{"a": old.add(t, 29800, quick, 0).add(t, 200, slow, 0)}, nil, ordersKeep, ""},
		{"two in a hundred may not", p99, map[string]*orderCount{"a": old}, map[string]*orderCount{"a": old.add(t, 29400, quick, 0).add(t, 600, slow, 0)}, nil, ordersMiss, "p99 of orders in shard 0 was "},
		{"says both figures", p99, map[string]*orderCount{"a": old}, map[string]*orderCount{"a": old.add(t, 3000, slow, 0)}, nil, ordersMiss, "ms over the last 30s, spec.updateStrategy.objective.p99 is 1ms"},
		{"only p99 is set", p99, map[string]*orderCount{"a": old}, map[string]*orderCount{"a": old.add(t, 30000, quick, 3000)}, nil, ordersKeep, ""},
		{"refused", errs, map[string]*orderCount{"a": old}, map[string]*orderCount{"a": old.add(t, 30000, slow, 300)}, nil, ordersMiss, "0.99% of orders in shard 0 were refused over the last 30s, spec.updateStrategy.objective.errors is 0.1%"},
		{"as many refused as allowed", errs, map[string]*orderCount{"a": old}, map[string]*orderCount{"a": old.add(t, 99900, slow, 100)}, nil, ordersKeep, ""},
		{"all refused", both, map[string]*orderCount{"a": old}, map[string]*orderCount{"a": old.add(t, 0, 0, 3000)}, nil, ordersMiss, "100% of orders in shard 0"},
		{"no orders", both, map[string]*orderCount{"a": old}, map[string]*orderCount{"a": old}, nil, ordersFew, "no shard had 100 orders in 30s"},
		{"few orders, all slow", both, map[string]*orderCount{"a": old}, map[string]*orderCount{"a": old.add(t, 99, slow, 0)}, nil, ordersFew, ""},
		{"two pods of a shard count together", p99, map[string]*orderCount{"a": old, "b": old}, map[string]*orderCount{"a": old.add(t, 30000, quick, 0), "b": old.add(t, 200, slow, 0)}, nil, ordersKeep, ""},
		{"a bad shard among good ones", p99, map[string]*orderCount{"a": old, "b": counted(t, "7", 0, 0, 0)},
			map[string]*orderCount{"a": old.add(t, 1e6, quick, 0), "b": counted(t, "7", 1000, slow, 0)}, nil, ordersMiss, "in shard 7"},
		{"a shard without orders beside one with", p99, map[string]*orderCount{"a": old, "b": counted(t, "7", 0, 0, 0)},
			map[string]*orderCount{"a": old.add(t, 1000, quick, 0), "b": counted(t, "7", 0, 0, 0)}, nil, ordersKeep, ""},
		{"another process of the pod", p99, map[string]*orderCount{"a": old}, map[string]*orderCount{"a": restarted}, nil, ordersKeep, ""},
		{"a pod made since", p99, map[string]*orderCount{"a": old}, map[string]*orderCount{"a": old.add(t, 1000, quick, 0), "b": replaced}, nil, ordersMiss, ""},
		{"a pod that did not answer before", p99, nil, map[string]*orderCount{"a": old}, nil, ordersUnknown, "a did not answer when the measuring began"},
		{"a pod that does not answer", p99, map[string]*orderCount{"a": old}, map[string]*orderCount{"a": old.add(t, 1000, quick, 0)}, []string{"b: refused"}, ordersUnknown, "b: refused; let the operator reach port 9400 of the pods, or remove the objective"},
		{"a bad shard and a silent pod", p99, map[string]*orderCount{"a": old}, map[string]*orderCount{"a": old.add(t, 1000, slow, 0)}, []string{"b: refused"}, ordersMiss, "p99"},
		{"no pod", p99, nil, nil, nil, ordersFew, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := &survey{at: rollNow.Add(-30 * time.Second), pods: test.before}
			state, text := judgeOrders(&test.objective, before, &survey{at: rollNow, pods: test.now, silent: test.silent})
			if state != test.state || !strings.Contains(text, test.text) {
				t.Errorf("state %d %q, want %d %q", state, text, test.state, test.text)
			}
		})
	}
}

// TestPlanRollAsksForTheObjective: which pods wait for a judgement, and which are replaced regardless.
func TestPlanRollAsksForTheObjective(t *testing.T) {
	for _, test := range []struct {
		name            string
		change          func(*observation)
		replace, judged string
	}{
		{"the first pod", func(*observation) {}, "", "rtd-s0-1"},
		{"two shards", func(o *observation) { o.grid.Spec.UpdateStrategy.MaxUnavailableShards = 2 }, "", "rtd-s0-1 rtd-s1-1"},
		{"the next pod", func(o *observation) { o.renew("rtd-s0-1", time.Minute, true) }, "", "rtd-s0-0"},
		{"paused", func(o *observation) { o.grid.Spec.UpdateStrategy.Type = api.UpdatePaused }, "", ""},
		{"a copy is missing", func(o *observation) { o.renew("rtd-s0-1", time.Minute, false) }, "", ""},
		{"reverted half-way: the new version's pods are replaced", func(o *observation) {
			o.renew("rtd-s0-1", time.Minute, true)
			for i := range o.statefulSets {
				o.statefulSets[i].Status.UpdateRevision = "rev1"
			}
		}, "rtd-s0-1", ""},
		{"reverted after a whole shard", func(o *observation) {
			o.renew("rtd-s0-0", time.Minute, true)
			o.renew("rtd-s0-1", 2*time.Minute, true)
			for i := range o.statefulSets {
				o.statefulSets[i].Status.UpdateRevision = "rev1"
			}
		}, "rtd-s0-1", ""},
		{"reverted: a pod that never worked is replaced", func(o *observation) {
			o.renew("rtd-s0-1", time.Minute, false)
			for i := range o.statefulSets {
				o.statefulSets[i].Status.UpdateRevision = "rev1"
			}
		}, "rtd-s0-1", ""},
		{"a third version half-way: it is judged", func(o *observation) {
			o.renew("rtd-s0-1", time.Minute, true)
			for i := range o.statefulSets {
				o.statefulSets[i].Status.UpdateRevision = "rev3"
			}
		}, "", "rtd-s0-1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := twoShards()
			for i := range o.pods { // the revision before rev2
				o.pods[i].Labels["controller-revision-hash"] = "rev1"
			}
			o.grid.Spec.UpdateStrategy.Objective = &api.UpdateObjective{Errors: "0%", Window: metav1.Duration{Duration: 30 * time.Second}}
			test.change(o)
			plan := planRoll(o, rollNow)
			var replace, judged []string
			for _, pod := range plan.replace {
				replace = append(replace, pod.Name)
			}
			for _, pod := range plan.judged {
				judged = append(judged, pod.Name)
			}
			if got, want := fmt.Sprint(replace, judged), fmt.Sprintf("[%s] [%s]", test.replace, test.judged); got != want {
				t.Errorf("replaced and judged %s, want %s; %s", got, want, plan)
			}
		})
	}
}
