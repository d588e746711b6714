package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ordergrid/ordergrid/internal/histogram"
	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/internal/scrape"
)

func (w way) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if w.tunnels != nil {
		return w.tunnels.Dial(ctx, address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (w way) close() {
	if w.tunnels != nil {
		w.tunnels.close()
	}
}

// usage is what happened on a node, or on the nodes of a shard, between two readings.
type usage struct {
	Name          string   `json:"name"`
	Shard         string   `json:"shard"`
	Orders        float64  `json:"ordersPerSecond"`
	Refused       float64  `json:"refusedPerSecond"`
	Reads         float64  `json:"readsPerSecond"`
	P50Seconds    float64  `json:"p50Seconds,omitempty"` // absent without orders
	P99Seconds    float64  `json:"p99Seconds,omitempty"`
	LagEntries    float64  `json:"lagEntries"`
	SinkAges      sinkAges `json:"sinkAgesSeconds,omitempty"` // by sink; absent where none is written
	LoopCPU       float64  `json:"loopCores"`                 // of the data loop
	MemoryUsed    float64  `json:"memoryUsedBytes"`
	MemoryLimit   float64  `json:"memoryLimitBytes"`
	FullIn        *float64 `json:"fullInSeconds,omitempty"` // absent while nothing grows, 0 while orders are refused
	ordersLatency *histogram.Native
}

// watch reads nodes repeatedly.
type watch struct {
	client  *http.Client
	targets []target
	last    map[string]*scrape.Reading
}

// read queries all nodes concurrently. A node that was read for the first time, or could not be read, is not among the
// nodes; failed has the reason.
func (w *watch) read(ctx context.Context) (nodes []usage, failed []string) {
	now := make([]*scrape.Reading, len(w.targets))
	errs := make([]error, len(w.targets))
	var all sync.WaitGroup
	for i, t := range w.targets {
		all.Go(func() { now[i], errs[i] = scrape.Get(ctx, w.client, t.address) })
	}
	all.Wait()
	for i, t := range w.targets {
		u, err := &usage{}, errs[i]
		if before := w.last[t.name]; err == nil && before != nil {
			if u, err = between(before, now[i]); err == nil {
				u.Name, u.Shard = t.name, shardOf(t.name)
				nodes = append(nodes, *u)
			}
		}
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", t.name, err))
		}
		w.last[t.name] = now[i]
	}
	return nodes, failed
}

// shardOf is the shard of a pod, such as s0, by its name; nodes that were given by their addresses are one row.
func shardOf(name string) string {
	rest, _, _ := cutLast(name, "-")
	if _, shard, ok := cutLast(rest, "-"); ok && shard != "" && shard[0] == 's' {
		return shard
	}
	return "all"
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// between is the difference of two readings.
func between(before, now *scrape.Reading) (*usage, error) {
	latency, err := now.Latency()
	if err != nil {
		return nil, err
	}
	earlier, err := before.Latency()
	if err != nil {
		return nil, err
	}
	latency.Sub(earlier)
	seconds := max(now.At.Sub(before.At).Seconds(), 1e-3)
	rate := func(name string, labels ...string) float64 {
		after, then := now.Sum(name, labels...), before.Sum(name, labels...)
		if after < then { // the node restarted
			then = 0
		}
		return (after - then) / seconds
	}
	u := &usage{
		Orders: rate("orders_total", "outcome", "acknowledged"), Refused: rate("rejects_total"), Reads: rate("reads_total"),
		LagEntries: now.Biggest("replication_lag_entries"),
		LoopCPU:    rate("loop_cpu_seconds_total", "loop", "data"), MemoryUsed: now.Sum("memory_used_bytes"), MemoryLimit: now.Sum("memory_limit_bytes"),
		ordersLatency: latency,
	}
	u.SinkAges = now.BiggestBy("sink_age_seconds", "sink")
	if in := now.Sum("memory_full_in_seconds"); now.Has("memory_full_in_seconds") && !math.IsInf(in, 1) {
		u.FullIn = &in
	}
	u.quantiles()
	return u, nil
}

func (u *usage) quantiles() {
	if u.ordersLatency.Count > 0 {
		u.P50Seconds, u.P99Seconds = u.ordersLatency.Quantile(0.5), u.ordersLatency.Quantile(0.99)
	}
}

// byShard joins the nodes of each shard: rates and histograms are added, of the rest the worst counts.
func byShard(nodes []usage) (rows []usage) {
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b usage) int { return strings.Compare(a.Shard, b.Shard) })
	for _, n := range nodes {
		if len(rows) == 0 || rows[len(rows)-1].Shard != n.Shard {
			rows = append(rows, usage{Name: n.Shard, Shard: n.Shard, ordersLatency: &histogram.Native{}})
		}
		s := &rows[len(rows)-1]
		s.Orders, s.Refused, s.Reads = s.Orders+n.Orders, s.Refused+n.Refused, s.Reads+n.Reads
		s.LagEntries, s.LoopCPU = max(s.LagEntries, n.LagEntries), max(s.LoopCPU, n.LoopCPU)
		s.SinkAges = s.SinkAges.worst(n.SinkAges)
		if n.FullIn != nil && (s.FullIn == nil || *n.FullIn < *s.FullIn) {
			s.FullIn = n.FullIn
		}
		if s.MemoryLimit == 0 || n.MemoryUsed*s.MemoryLimit > s.MemoryUsed*n.MemoryLimit {
			s.MemoryUsed, s.MemoryLimit = n.MemoryUsed, n.MemoryLimit
		}
		_ = s.ordersLatency.Add(n.ordersLatency) // nodes of one version have one schema; during an upgrade to another the first counts
		s.quantiles()
	}
	return rows
}

func writeUsage(w io.Writer, rows []usage) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "NAME\tORDERS/S\tREFUSED/S\tREADS/S\tP50\tP99\tLAG\tSINK\tCPU\tMEMORY\tFULL IN\t")
	for i := range rows {
		u := &rows[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%.0f\t%s\t%.0f%%\t%s\t%s\t\n", u.Name, numtext.Thousands(u.Orders), numtext.Thousands(u.Refused), numtext.Thousands(u.Reads),
			micros(u.P50Seconds), micros(u.P99Seconds), u.LagEntries, u.SinkAges, 100*u.LoopCPU, share(u.MemoryUsed, u.MemoryLimit), fullIn(u.FullIn))
	}
	return t.Flush()
}

func micros(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return fmt.Sprintf("%s us", numtext.Thousands(seconds*1e6))
}

// sinkAges are the ages of the oldest orders that the sinks do not hold, in seconds, by their names.
type sinkAges map[string]float64

// worst merges the ages of two nodes.
func (s sinkAges) worst(of sinkAges) sinkAges {
	both := maps.Clone(s)
	if both == nil {
		both = of
	}
	for name, age := range of {
		both[name] = max(both[name], age)
	}
	return both
}

// String is the greatest age, with the sink's name where there are several.
func (s sinkAges) String() string {
	last := ""
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if last == "" || s[name] > s[last] {
			last = name
		}
	}
	age := time.Duration(s[last] * 1e9).Round(10 * time.Millisecond).String()
	switch len(s) {
	case 0:
		return "-"
	case 1:
		return age
	}
	return last + " " + age
}

// fullIn is a time until a node is full; years count as never.
func fullIn(seconds *float64) string {
	const longest = 100 * 24 * time.Hour
	switch {
	case seconds == nil, *seconds > longest.Seconds():
		return "-"
	case *seconds == 0:
		return "FULL"
	}
	return duration.HumanDuration(time.Duration(*seconds * 1e9))
}

func share(used, limit float64) string {
	if limit == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%% of %.1f GiB", 100*used/limit, limit/(1<<30))
}
