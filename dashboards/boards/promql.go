package boards

import (
	"fmt"
	"strings"
)

// gridSelector uses the variables of a dashboard. None of these labels is a node's own: they are set by the scrape
// configuration (the relabelling rules of the chart's PodMonitor). An absent label matches All.
const gridSelector = `namespace=~"$namespace",grid=~"$grid",shard=~"$shard",pod=~"$pod"`

// node selects series of a grid node's metric, with optional further matchers.
func node(metric string, more ...string) string {
	return "ordergrid_node_" + metric + "{" + strings.Join(append([]string{gridSelector}, more...), ",") + "}"
}

// operator selects series about grids that the operator exports.
func operator(metric string, more ...string) string {
	return "ordergrid_operator_" + metric + "{" + strings.Join(append([]string{`namespace=~"$namespace",grid=~"$grid"`}, more...), ",") + "}"
}

// probe selects series of the probes themselves.
func probe(metric string) string { return "ordergrid_probe_" + metric + `{namespace=~"$namespace"}` }

func rate(series string) string     { return "rate(" + series + "[$__rate_interval])" }
func increase(series string) string { return "increase(" + series + "[$__rate_interval])" }

// sumBy sums by labels; without labels everything.
func sumBy(labels, expr string) string { return aggregate("sum", labels, expr) }
func maxBy(labels, expr string) string { return aggregate("max", labels, expr) }

func aggregate(how, labels, expr string) string {
	if labels == "" {
		return how + "(" + expr + ")"
	}
	return how + " by (" + labels + ") (" + expr + ")"
}

// orZero returns 0 where there is no series, for counts without events.
func orZero(expr string) string { return expr + " or vector(0)" }

// orZeroPer returns 0 for every scraped pod without such a series: the kernel does not count what did not happen.
func orZeroPer(expr string) string {
	return expr + " or 0 * " + maxBy("pod", node("memory_used_bytes"))
}

// quantile of a histogram: of its native buckets, or of the classic ones where Prometheus keeps no native ones.
func quantile(q float64, series, labels string) string {
	le := "le"
	if labels != "" {
		le += ", " + labels
	}
	return fmt.Sprintf("histogram_quantile(%v, sum by (%s) (%s)) or on (%s) histogram_quantile(%v, sum by (%s) (%s))",
		q, labels, rate(series), labels, q, le, rate(buckets(series)))
}

// spread is a histogram over time, for a heat map.
func spread(series string) string {
	return "sum(" + rate(series) + ") or on () sum by (le) (" + rate(buckets(series)) + ")"
}

// mean of what a histogram counted.
func mean(series, labels string) string {
	return fmt.Sprintf("histogram_avg(sum by (%s) (%s)) or on (%s) sum by (%s) (%s) / sum by (%s) (%s)", labels, rate(series), labels,
		labels, rate(part(series, "_sum")), labels, rate(part(series, "_count")))
}

func buckets(series string) string { return part(series, "_bucket") }

// part names a classic part of a histogram.
func part(series, suffix string) string {
	name, selector, _ := strings.Cut(series, "{")
	return name + suffix + "{" + selector
}
