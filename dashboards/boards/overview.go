package boards

const (
	noGrid     = "no grid node is scraped"
	noOrders   = "no orders"
	noOperator = "the operator is not scraped"
	noSink     = "nothing is written: no sink"

	// partition identifies a partition among all grids.
	partition = "namespace, grid, partition"
)

// overview is one screen: available, redundant, fast?
func overview() (board, error) {
	return board{
		uid: "ordergrid-overview", title: "OrderGrid / Grid overview", from: "now-30m",
		description: "Is it up, is every order held twice, is it fast: one screen.",
		variables:   gridVariables(), annotations: marks(),
		sections: []section{{panels: []*panel{
			lamp(3, "Grids available", "Share of OrderGrids all of whose partitions have a primary that serves, as the operator sees it.").
				ask("available", "avg("+operator("grid_condition", `condition="Available"`)+")").
				unit("percentunit").decimals(0).goal("red", at(1, "green")).empty(noOperator).docs("Conditions of an OrderGrid", "spec/ordergrid.md#conditions"),
			lamp(3, "Without a primary", "Partitions of which no scraped node is primary and takes orders. A take-over lasts some tens of milliseconds: a lasting value does not resolve itself.").
				ask("without", "count(count by ("+partition+") ("+role("")+")) - sum("+serving()+")").
				decimals(0).goal("green", at(1, "red")).empty(noGrid).docs("When things are unavailable", "replication.md#when-things-are-unavailable"),
			lamp(3, "Fewest copies in sync", "Of the partition that has the fewest: copies that hold every acknowledged order. One copy survives no failure.").
				ask("copies", "min("+copies()+")").
				decimals(0).goal("red", at(1, "orange"), at(2, "green")).empty(noGrid).docs("Runbook: not redundant", "runbooks/NotRedundant.md"),
			number(3, "Orders acknowledged", "Orders a second that every copy holds.").
				ask("orders/s", "sum("+rate(node("orders_total", `outcome="acknowledged"`))+")").
				unit("ops").decimals(0).empty(noGrid).docs("Latency and throughput", "metrics.md#latency-and-throughput"),
			latencyNumber("Median", 0.5, 0.0005, 0.005),
			latencyNumber("99 %", 0.99, 0.002, 0.02),
			latencyNumber("99.9 %", 0.999, 0.01, 0.1),
			lamp(3, "Alerts firing", "Alerts of OrderGrid's rules that fire now, in all grids. 0 too where the rules are not loaded.").
				ask("firing", orZero(`count(ALERTS{service="ordergrid",alertstate="firing"})`)).
				decimals(0).goal("green", at(1, "red")).docs("Runbooks", "runbooks/README.md"),

			lines(12, 7, "Orders by outcome", "Orders a second that primaries answered: acknowledged by every copy, refused, or a repetition.").
				ask("{{outcome}}", sumBy("outcome", rate(node("orders_total")))).
				unit("ops").fromZero().stacked().empty(noGrid).
				colour("acknowledged", "green").colour("rejected", "red").colour("duplicate", "yellow").
				docs("Latency and throughput", "metrics.md#latency-and-throughput"),
			percentiles(12, 7, "Order latency", "From receiving an order on the primary until every copy has it."),

			roles(12, 7),
			lines(6, 7, "Refused, by reason", "Requests a second that were refused. A steady rate of one reason is a client's mistake or a full grid.").
				ask("{{reason}}", orZero(sumBy("reason", rate(node("rejects_total")))+" > 0")).
				unit("ops").fromZero().empty(noGrid).override(nameless, named("none")).docs("Reject codes", "protocol.md#reject-codes"),
			lines(6, 7, "Entries not yet on every copy", "Stored and not yet known to be committed, per partition. It is the work in flight; it grows without end only while a copy does not answer.").
				ask("{{partition}}", maxBy("partition", node("replication_lag_entries"))).
				fromZero().empty(noGrid).docs("Partitions and replication", "metrics.md#partitions-and-replication"),

			lines(5, 6, "Memory for orders", "Share of the memory that orders may take. At 100 % they are refused.").
				ask("{{pod}}", maxBy("pod", node("memory_used_bytes")+" / "+node("memory_refuse_bytes"))).
				unit("percentunit").fromZero().to(1).goal("green", at(0.8, "orange"), at(0.95, "red")).limit().empty(noGrid).docs("Runbook: grid full", "runbooks/GridFull.md"),
			lines(5, 6, "Time until full", "Until orders are refused, at the rate of the last half minute; what may be freed does not count. No line: nothing grows, or it takes more than a day.").
				ask("{{pod}}", aggregate("min", "pod", node("memory_full_in_seconds"))+" < 86400").
				unit("s").fromZero().empty("no grid is full within a day").docs("Runbook: grid full", "runbooks/GridFull.md"),
			lines(5, 6, "Age of what is not downstream", "Age of the oldest committed order that a sink does not hold yet, by sink, of the pods that write. Without sinks nothing goes downstream.").
				ask("{{sink}} {{pod}}", maxBy("sink, pod", node("sink_age_seconds"))).
				unit("s").fromZero().empty(noSink).docs("Memory and sinks", "metrics.md#memory-and-sinks"),
			lines(4, 6, "Stalls of a loop", "Stalls of a loop for more than half of the lease; each is a line in the log of the node with its likely cause.").
				ask("{{pod}} {{loop}}", sumBy("pod, loop", increase(node("loop_stalls_total")))).
				fromZero().empty(noGrid).docs("Explaining a spike", "metrics.md#explaining-a-spike"),
			lines(5, 6, "Alerts, pending and firing", "Alerts of OrderGrid's rules over time, in all grids; pending ones fire when their condition holds for long enough.").
				ask("{{alertname}} {{alertstate}}", orZero(`count by (alertname, alertstate) (ALERTS{service="ordergrid"})`)).
				decimals(0).fromZero().custom("lineInterpolation", "stepAfter").override(nameless, named("none")).docs("Runbooks", "runbooks/README.md"),
		}}},
	}, nil
}

// role selects a node's role in a partition; "" selects all roles.
func role(name string) string {
	if name == "" {
		return node("partition_role")
	}
	return node("partition_role", `role="`+name+`"`)
}

// serving is 1 per partition with a primary that acknowledges, else 0.
func serving() string {
	return maxBy(partition, role("primary")+" unless on (namespace, grid, partition, pod) "+node("partition_suspended")+" == 1")
}

// copies in sync per partition, according to its primary.
func copies() string {
	return maxBy(partition, node("in_sync_members")+" and on (namespace, grid, partition, pod) "+role("primary")+" == 1")
}

func latencyNumber(title string, q, slow, bad float64) *panel {
	return number(3, "Order latency, "+title, "From receiving an order on the primary until every copy has it; without the network to the client.").
		ask(title, quantile(q, node("order_latency_seconds"), "")).
		unit("s").goal("green", at(slow, "orange"), at(bad, "red")).empty(noOrders).docs("Explaining a spike", "metrics.md#explaining-a-spike")
}

// roles shows the role of each pod in each partition.
func roles(width, height int) *panel {
	var expr string
	for i, r := range roleWords {
		if i > 0 {
			expr += " or "
		}
		expr += role(r.text) + " * " + r.value
	}
	return states(width, height, "Roles by partition", "The role of each pod in each partition. Gaps are pods that were not scraped.").
		ask("{{partition}} {{pod}}", maxBy("partition, pod", expr)).
		words(roleWords...).empty(noGrid).docs("Words", "replication.md#words")
}

// roleWords number the roles of a node so that one series can show them.
var roleWords = []word{
	{"6", "primary", "green"}, {"5", "backup", "blue"}, {"4", "learner", "yellow"}, {"3", "claiming", "orange"},
	{"2", "fenced", "red"}, {"1", "stopped", "dark-red"}, {"0.5", "idle", "gray"},
}
