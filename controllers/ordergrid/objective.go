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

// An update with spec.updateStrategy.objective is judged by the latency of orders: the pods are read twice, a window
// apart, and the difference is judged shard by shard, so that one bad shard is not hidden among many.

// fewestOrders of a shard in a window that are judged: with fewer, the 99th percentile is the slowest one.
const fewestOrders = 100

// survey is the order metrics of a grid's pods at one moment.
type survey struct {
	at     time.Time
	pods   map[string]*orderCount // by pod; those that answered
	silent []string               // the others, and why
}

// orderCount is the counters of a process since its start.
type orderCount struct {
	shard                 string
	uid                   types.UID // of the pod
	made                  time.Time // creation time of the pod
	began                 float64   // start of the process, seconds since 1970: it distinguishes processes of one pod
	acknowledged, refused float64
	latency               *histogram.Native // seconds
}

// since is the difference to an earlier reading. It is unknown for a process that existed then and did not answer.
func (c *orderCount) since(before *survey, pod string) (*orderCount, bool) {
	out := *c
	out.latency = &histogram.Native{}
	_ = out.latency.Add(c.latency) // an empty one accepts any schema
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

// orderState is the judgement of orders by an objective.
type orderState int

const (
	ordersKeep    orderState = iota // they meet it
	ordersMiss                      // they do not
	ordersFew                       // there were too few to judge
	ordersUnknown                   // no node reported them
)

// judgeOrders reports whether the orders between two surveys met the objective, with evidence.
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
		return ordersUnknown, fmt.Sprintf("orders cannot be judged by spec.updateStrategy.objective: %s; let the operator reach port %d of the pods, or remove the objective",
			strings.Join(silent[:min(len(silent), 3)], "; "), api.HTTPPort)
	case judged == 0:
		return ordersFew, fmt.Sprintf("no shard had %d orders in %s: there is nothing to judge by spec.updateStrategy.objective", fewestOrders, window)
	}
	return ordersKeep, fmt.Sprintf("orders met spec.updateStrategy.objective for %s", window)
}

// misses returns what a shard's orders missed of the objective.
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
