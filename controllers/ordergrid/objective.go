package ordergrid

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/histogram"
)

// An update with spec.updateStrategy.objective is held against what orders meet: the pods are read twice, a window apart,
// and what they counted in between is judged shard by shard, so that one bad shard does not hide among many.

// fewestOrders of a shard in a window that are judged: of fewer, the 99th percentile is the slowest one.
const fewestOrders = 100

// survey is what the pods of a grid told of their orders at one moment.
type survey struct {
	at     time.Time
	pods   map[string]*orderCount // by pod; those that answered
	silent []string               // the others, and why
}

// orderCount is what a process has counted since it began.
type orderCount struct {
	shard                 string
	uid                   types.UID // of the pod
	made                  time.Time // when the pod was
	began                 float64   // when the process did, seconds since 1970: it tells processes of one pod apart
	acknowledged, refused float64
	latency               *histogram.Native // seconds
}

// since is what was counted after an earlier reading. It is not known of a process that was there then and did not answer.
func (c *orderCount) since(before *survey, pod string) (*orderCount, bool) {
	out := *c
	out.latency = &histogram.Native{}
	_ = out.latency.Add(c.latency) // an empty one takes any schema
	was := before.pods[pod]
	switch {
	case was != nil && was.uid == c.uid && was.began == c.began:
		out.acknowledged -= was.acknowledged
		out.refused -= was.refused
		out.latency.Sub(was.latency)
	case was == nil && c.made.Before(before.at):
		return nil, false
	}
	return &out, true
}

// orderState is what can be said of orders and an objective.
type orderState int

const (
	ordersKeep    orderState = iota // they keep to it
	ordersMiss                      // they do not
	ordersFew                       // there were too few to say
	ordersUnknown                   // nobody told
)

// judgeOrders says whether the orders between two surveys kept to the objective, and what speaks for that.
func judgeOrders(objective *api.UpdateObjective, before, now *survey) (orderState, string) {
	window := now.at.Sub(before.at).Round(time.Second)
	shards, silent := map[string]*orderCount{}, slices.Clone(now.silent)
	for pod, c := range now.pods {
		delta, known := c.since(before, pod)
		if !known {
			silent = append(silent, pod+" did not answer when the measuring began")
			continue
		}
		sum := shards[c.shard]
		if sum == nil {
			sum = &orderCount{shard: c.shard, latency: &histogram.Native{}}
			shards[c.shard] = sum
		}
		sum.acknowledged, sum.refused = sum.acknowledged+delta.acknowledged, sum.refused+delta.refused
		if delta.latency.Count == 0 {
			continue
		}
		if err := sum.latency.Add(delta.latency); err != nil {
			silent = append(silent, pod+": "+err.Error())
		}
	}
	var missed []string
	judged := 0
	for _, name := range sortedKeys(shards) {
		s := shards[name]
		if s.acknowledged+s.refused < fewestOrders {
			continue
		}
		judged++
		missed = append(missed, s.misses(objective, window)...)
	}
	slices.Sort(silent)
	switch {
	case len(missed) > 0:
		return ordersMiss, strings.Join(missed[:min(len(missed), 4)], "; ")
	case len(silent) > 0:
		return ordersUnknown, fmt.Sprintf("orders cannot be held against spec.updateStrategy.objective: %s; let the operator reach port %d of the pods, or remove the objective",
			strings.Join(silent[:min(len(silent), 3)], "; "), api.HTTPPort)
	case judged == 0:
		return ordersFew, fmt.Sprintf("no shard had %d orders in %s: there is nothing to hold against spec.updateStrategy.objective", fewestOrders, window)
	}
	return ordersKeep, fmt.Sprintf("orders kept to spec.updateStrategy.objective for %s", window)
}

// misses says what of the objective a shard's orders did not keep to.
func (c *orderCount) misses(objective *api.UpdateObjective, window time.Duration) (out []string) {
	where := "shard " + c.shard
	if p99 := c.latency.Quantile(0.99); objective.P99 != nil && c.latency.Count >= fewestOrders && !math.IsNaN(p99) && p99 > objective.P99.Seconds() {
		out = append(out, fmt.Sprintf("p99 of orders in %s was %s over the last %s, spec.updateStrategy.objective.p99 is %s", where,
			time.Duration(p99*float64(time.Second)).Round(time.Microsecond), window, objective.P99.Duration))
	}
	if objective.Errors == "" {
		return out
	}
	allowed, err := strconv.ParseFloat(objective.Errors.Number(), 64)
	if part := 100 * c.refused / (c.acknowledged + c.refused); err == nil && part > allowed {
		out = append(out, fmt.Sprintf("%.3g%% of orders in %s were refused over the last %s, spec.updateStrategy.objective.errors is %s", part, where, window, objective.Errors))
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if len(a) != len(b) { // numbers of shards
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return keys
}
