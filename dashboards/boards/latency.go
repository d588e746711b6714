package boards

import (
	"fmt"

	"github.com/ordergrid/ordergrid/dashboards/grafana"
	"github.com/ordergrid/ordergrid/probe/published"
)

func latency() (board, error) {
	lines, err := publishedLines()
	if err != nil {
		return board{}, err
	}
	return board{
		uid: "ordergrid-latency", title: "OrderGrid / Latency", from: "now-30m",
		description: "Latency of orders, its parts, and the causes of delays.",
		variables:   gridVariables(), annotations: marks(),
		sections: []section{
			{"What an order takes on the grid", onTheGrid()},
			{"Where the time goes", stages()},
			{"What a client sees: probes", atTheClient(lines)},
			{"Explaining a spike: the first that changed is the cause", causes()},
		},
	}, nil
}

func onTheGrid() []*panel {
	return []*panel{
		heatmap(12, 9, "Order latency", "All orders of the chosen pods: the brighter, the more. From receiving an order on the primary until every copy has it.").
			ask("{{le}}", spread(node("order_latency_seconds"))).
			unit("s").empty(noOrders).docs("Latency and throughput", "metrics.md#latency-and-throughput"),
		percentiles(12, 9, "Order latency, percentiles", "From receiving an order on the primary until every copy has it. The highest line is the upper bound of the slowest bucket."),
	}
}

func stages() []*panel {
	stage := func(title string, q float64) *panel {
		return lines(8, 8, title, "The whole, and the parts of it: replication is the way to another copy and back; parsing and storing is the work of the primary before that, committing after it. A wake-up serves all that has arrived.").
			ask("whole", quantile(q, node("order_latency_seconds"), "")).
			ask("replication round trip", quantile(q, node("replication_round_trip_seconds"), "")).
			ask("parse, check, store", quantile(q, node("preprocess_seconds"), "")).
			ask("commit, write the answers", quantile(q, node("postprocess_seconds"), "")).
			ask("one wake-up of a loop", quantile(q, node("loop_wakeup_seconds"), "")).
			unit("s").logarithmic().empty(noOrders).docs("Latency and throughput", "metrics.md#latency-and-throughput")
	}
	return []*panel{
		stage("Median by stage", 0.5), stage("99 % by stage", 0.99),
		heatmap(8, 8, "Replication round trip", "From sending entries to another copy until its acknowledgement. If this is slow, the backup or the network to it is slow.").
			ask("{{le}}", spread(node("replication_round_trip_seconds"))).
			unit("s").empty(noOrders).docs("Explaining a spike", "metrics.md#explaining-a-spike"),
	}
}

func atTheClient(reference []publishedLine) []*panel {
	p := lines(12, 9, "Create-to-end and published figures", "From the moment an order was created until its acknowledgement was read, waiting in the probe included. Dashed: what STAC published in 2007 for GemFire on two servers, create-to-end.").
		ask("median", quantile(0.5, probe("create_to_end_seconds"), "")).
		ask("99 %", quantile(0.99, probe("create_to_end_seconds"), "")).
		ask("99.9 %", quantile(0.999, probe("create_to_end_seconds"), ""))
	for _, r := range reference {
		p.ask(r.name, fmt.Sprintf("vector(%g)", r.seconds))
	}
	p.unit("s").logarithmic().table().empty(noProbe).docs("What is measured", "probe.md#what-is-measured").
		override("^STAC", grafana.Property{ID: "custom.lineStyle", Value: map[string]any{"fill": "dash", "dash": []int{8, 8}}})
	return []*panel{
		heatmap(12, 9, "Create-to-end", "Every order of every probe. A stall of the grid shows as a slope: the orders that waited for its end.").
			ask("{{le}}", spread(probe("create_to_end_seconds"))).
			unit("s").empty(noProbe).docs("What is measured", "probe.md#what-is-measured"),
		p,
	}
}

// causes are the questions of docs/metrics.md, in their order.
func causes() []*panel {
	spike := func(title, description string) *panel {
		return lines(6, 6, title, description).fromZero().empty(noGrid).docs("Explaining a spike", "metrics.md#explaining-a-spike")
	}
	return []*panel{
		spike("Longest wake-ups", "99.99 % of the wake-ups of a loop took no longer: work of the loop, or of the kernel for it.").
			ask("{{pod}}", quantile(0.9999, node("loop_wakeup_seconds"), "pod")).unit("s"),
		spike("Longest time between ticks", "Half of --beacon and as much more as something held the loop up. Long without a long wake-up: the thread was not run.").
			ask("{{pod}}", quantile(1, node("loop_tick_interval_seconds"), "pod")).unit("s"),
		spike("Ready and no core", "Share of time in which a loop's thread could have run and had no core.").
			ask("{{pod}} {{loop}}", sumBy("pod, loop", rate(node("loop_run_queue_seconds_total")))).unit("percentunit"),
		spike("Stopped for its CPU quota", "Share of time, all cores together, in which the pod was stopped for having used its quota; 0 without a quota.").
			ask("{{pod}}", orZeroPer(sumBy("pod", rate(node("cgroup_cpu_throttled_seconds_total"))))).unit("percentunit"),
		spike("Page faults of a loop", "Minor: pages not mapped in time. Major: read from a disk.").
			ask("{{pod}} {{kind}}", sumBy("pod, kind", rate(node("loop_page_faults_total", `loop="data"`)))).unit("ops"),
		spike("Short of memory", "Share of time in which some task of the pod waited for memory; 0 where the kernel does not count it.").
			ask("{{pod}}", orZeroPer(sumBy("pod", rate(node("cgroup_pressure_seconds_total", `resource="memory"`, `kind="some"`))))).unit("percentunit"),
		spike("Longest GC pause", "Longest stop-the-world pause of the garbage collector. Orders are not on the heap: collections are rare.").
			ask("{{pod}}", orZeroPer("("+quantile(1, node("runtime_gc_pause_seconds"), "pod")+") > 0")).unit("s"),
		spike("Preempted", "Involuntary context switches of a loop: another thread took the core.").
			ask("{{pod}} {{loop}}", sumBy("pod, loop", rate(node("loop_context_switches_total", `kind="involuntary"`)))).unit("ops"),
		spike("Changes of membership", "Configurations adopted: take-over, hand-over, a member lost or joined.").
			ask("{{pod}}", sumBy("pod", increase(node("configuration_changes_total")))),
		spike("Catching up", "Bytes of the log sent to members that catch up.").
			ask("{{pod}}", sumBy("pod", rate(node("learner_sent_bytes_total")))).unit("Bps"),
		spike("Entries in one wake-up", "How many orders shared a wake-up, on average: the queue in front of the loop.").
			ask("{{pod}}", sumBy("pod", rate(node("entries_stored_total")))+" / on (pod) "+sumBy("pod", rate(node("loop_wakeups_total")))),
		spike("Clients held back", "Times reading a connection was stopped until its replies were read.").
			ask("{{pod}}", sumBy("pod", increase(node("connections_paused_total")))),
	}
}

// percentiles of the order latency, with the mean, which outliers affect.
func percentiles(width, height int, title, description string) *panel {
	series := node("order_latency_seconds")
	return lines(width, height, title, description).
		ask("median", quantile(0.5, series, "")).
		ask("90 %", quantile(0.9, series, "")).
		ask("99 %", quantile(0.99, series, "")).
		ask("99.9 %", quantile(0.999, series, "")).
		ask("max", quantile(1, series, "")).
		ask("mean", mean(series, "")).
		unit("s").logarithmic().table().empty(noOrders).
		colour("^median$", "green").colour("^90 %$", "blue").colour("^99 %$", "yellow").colour("^99.9 %$", "orange").colour("^max$", "red").colour("^mean$", "text").
		docs("Latency and throughput", "metrics.md#latency-and-throughput")
}

// publishedLine is a figure of a report, to draw beside the measured ones.
type publishedLine struct {
	name    string
	seconds float64
}

// publishedLines are the two-server figures at the lowest and the highest rate of STAC's table 3-1.
func publishedLines() ([]publishedLine, error) {
	data, err := published.Load()
	if err != nil {
		return nil, err
	}
	var out []publishedLine
	for _, want := range []struct {
		rate   float64
		column string
		name   string
	}{
		{200, "median_us", "STAC 2007, median at 200/s"}, {6000, "median_us", "STAC 2007, median at 6,000/s"}, {6000, "mean_us", "STAC 2007, mean at 6,000/s"},
	} {
		cell, ok := data.Cell("stac", "3-1", want.rate, want.column)
		if !ok || cell.Unit != "us" {
			return nil, fmt.Errorf("STAC table 3-1 has no %s at %v/s in microseconds (%q)", want.column, want.rate, cell.Unit)
		}
		out = append(out, publishedLine{want.name, cell.Value / 1e6})
	}
	return out, nil
}

// nameless matches the series that "or vector(0)" adds.
const nameless = `^(Value|vector\(0\)|\{\}|\s*)$`

func named(text string) grafana.Property { return grafana.Property{ID: "displayName", Value: text} }
