package boards

import "github.com/ordergrid/ordergrid/dashboards/grafana"

// own selects the metrics of the operator's libraries.
func own(metric string, more ...string) string {
	s := metric + `{job="ordergrid-operator"`
	for _, m := range more {
		s += "," + m
	}
	return s + "}"
}

func operatorBoard() (board, error) {
	return board{
		uid: "ordergrid-operator", title: "OrderGrid / Operator", from: "now-1h",
		description: "State of the grids as observed by the operator, and its load. Orders do not depend on it.",
		variables: []grafana.Variable{
			dataSourceVariable(),
			choice("namespace", "Namespace", "ordergrid_operator_grid_condition"),
			choice("grid", "Grid", `ordergrid_operator_grid_condition{namespace=~"$namespace"}`),
		},
		annotations: drillMarks(`namespace=~"$namespace"`),
		sections: []section{
			{"Grids as the operator sees them", gridsSeen()},
			{"Rebalancing", rebalancing()},
			{"Work", work()},
			{"The process", process()},
		},
	}, nil
}

func gridsSeen() []*panel {
	var expr string
	for i, c := range conditionWords {
		if i > 0 {
			expr += " or "
		}
		expr += operator("grid_condition", `condition=~"`+c.conditions+`"`) + c.number
	}
	words := []word{{"-1", "not so", "orange"}, {"0", "no", "gray"}}
	for _, c := range conditionWords {
		words = append(words, word{c.value, c.text, c.colour})
	}
	return []*panel{
		lamp(4, "Operators up", "Processes that answer a scrape; one is active, the others stand by.").
			ask("up", "sum("+own("up")+")").
			decimals(0).goal("red", at(1, "green")).empty(noOperator).docs("Operator", "metrics.md#operator"),
		lamp(4, "Grids", "OrderGrids that it manages.").
			ask("grids", orZero("count("+operator("grid_condition", `condition="Available"`)+")")).
			decimals(0).goal("blue").docs("OrderGrid", "spec/ordergrid.md"),
		lamp(4, "Not available", "OrderGrids with a partition that takes no orders.").
			ask("not available", orZero("count("+operator("grid_condition", `condition="Available"`)+" == 0)")).
			decimals(0).goal("green", at(1, "red")).docs("Conditions", "spec/ordergrid.md#conditions"),
		lamp(4, "Not redundant", "OrderGrids with a partition that lacks a copy.").
			ask("not redundant", orZero("count("+operator("grid_condition", `condition="Redundant"`)+" == 0)")).
			decimals(0).goal("green", at(1, "orange")).docs("Runbook: not redundant", "runbooks/NotRedundant.md"),
		lamp(4, "Action required", "OrderGrids that wait for manual action: stalled, data loss suspected, configuration regressed.").
			ask("asked", orZero("count("+operator("grid_condition", `condition=~"Stalled|DataLossSuspected|ConfigurationRegressed"`)+" == 1)")).
			decimals(0).goal("green", at(1, "red")).docs("Runbooks", "runbooks/README.md"),
		lamp(4, "Errors of reconciling", "In the time shown. Each is retried.").
			ask("errors", "sum(increase("+own("controller_runtime_reconcile_errors_total")+"[$__range]))").
			decimals(0).goal("green", at(1, "orange")).empty(noOperator).docs("Operator", "metrics.md#operator"),
		states(16, 8, "Conditions", "Available, AcceptingOrders, Redundant, Schedulable, Secure, and where they apply FabricReady, TLSReady, ExternalAccessReady and FunctionsLoaded should hold: green, else orange. The others should not: gray, else in the colour of their severity.").
			ask("{{namespace}}/{{grid}} {{condition}}", maxBy("namespace, grid, condition", expr)).
			words(words...).empty("no OrderGrid").docs("Conditions", "spec/ordergrid.md#conditions"),
		lines(8, 8, "Partitions", "Of each grid: with a primary (claimed), and with every copy in sync.").
			ask("{{namespace}}/{{grid}} {{state}}", maxBy("namespace, grid, state", operator("grid_partitions", `state=~"claimed|fully_in_sync"`))).
			custom("lineInterpolation", "stepAfter").decimals(0).fromZero().empty("no OrderGrid").docs("Operator", "metrics.md#operator"),
	}
}

// conditionWords number conditions by meaning: those that should hold are 1 or -1, the others 0 or their own number.
var conditionWords = []struct{ conditions, number, value, text, colour string }{
	{"Available|AcceptingOrders|Redundant|Schedulable|FabricReady|TLSReady|Secure|ExternalAccessReady|FunctionsLoaded", " * 2 - 1", "1", "well", "green"},
	{"Progressing", " * 2", "2", "on its way", "blue"},
	{"Stalled", " * 3", "3", "action required", "orange"},
	{"DataLossSuspected|ConfigurationRegressed", " * 4", "4", "data in doubt", "red"},
}

func rebalancing() []*panel {
	return []*panel{
		lines(6, 7, "Partitions of each shard", "Desired shards of partitions, from their records. Shards differ by one at most when none has to move.").
			ask("{{namespace}}/{{grid}} shard {{shard}}", maxBy("namespace, grid, shard", operator("shard_partitions"))).
			custom("lineInterpolation", "stepAfter").decimals(0).fromZero().empty("no OrderGrid").docs("Rebalancing", "rebalance.md"),
		lines(6, 7, "Partitions that move", "Moving to another shard (moving), to move after those (queued), and those of them that wait for the window (held).").
			ask("{{namespace}}/{{grid}} {{state}}", maxBy("namespace, grid, state", operator("grid_partitions", `state=~"moving|queued|held"`))).
			custom("lineInterpolation", "stepAfter").decimals(0).fromZero().empty("no OrderGrid").docs("How it is seen", "rebalance.md#how-it-is-seen"),
		lines(6, 7, "Time of the oldest move", "Since the record of a moving partition named its new shard.").
			ask("{{namespace}}/{{grid}}", orZero(maxBy("namespace, grid", "time() - "+operator("oldest_move_started_seconds")))).
			unit("s").fromZero().override(nameless, named("none")).docs("Runbook: a move is stuck", "runbooks/PartitionMoveStuck.md"),
		lines(6, 7, "Copied to pods that catch up", "Bytes of logs that all pods of a grid send to others, for moves, lost copies and updates.").
			ask("{{namespace}}/{{grid}}", sumBy("namespace, grid", rate(`ordergrid_node_learner_sent_bytes_total{namespace=~"$namespace",grid=~"$grid"}`))).
			unit("Bps").fromZero().empty(noGrid).docs("Bandwidth", "rebalance.md#specrebalance"),
	}
}

func work() []*panel {
	const controllers = `controller=~"ordergrid|orderprobe"`
	return []*panel{
		lines(8, 7, "Reconciles by result", "Rate of reconciles. A healthy grid is reconciled when something changes.").
			ask("{{controller}} {{result}}", sumBy("controller, result", rate(own("controller_runtime_reconcile_total", controllers)))).
			unit("ops").fromZero().empty(noOperator).docs("Operator", "metrics.md#operator"),
		lines(8, 7, "Time to reconcile", "99 % took no longer, per kind.").
			ask("{{controller}}", quantile(0.99, own("controller_runtime_reconcile_time_seconds", controllers), "controller")).
			unit("s").fromZero().empty("nothing was reconciled").docs("Operator", "metrics.md#operator"),
		lines(8, 7, "Waiting objects", "Length of the queues. Above 0 for long, --workers is too small or the API server is slow.").
			ask("{{name}}", maxBy("name", own("workqueue_depth", `name=~"ordergrid|orderprobe"`))).
			fromZero().empty(noOperator).docs("Operator", "metrics.md#operator"),
		lines(8, 7, "Writes to the API server", "By kind of object. None while nothing changes: an operator that writes all the time conflicts with another client.").
			ask("{{kind}} {{outcome}}", sumBy("kind, outcome", rate("ordergrid_operator_writes_total"))).
			ask("of probes: {{kind}} {{outcome}}", sumBy("kind, outcome", rate("ordergrid_operator_probe_writes_total"))).
			unit("ops").fromZero().empty("it wrote nothing").docs("Operator", "metrics.md#operator"),
		lines(8, 7, "Requests to the API server", "By status code.").
			ask("{{code}}", sumBy("code", rate(own("rest_client_requests_total")))).
			unit("reqps").fromZero().empty(noOperator).docs("Operator", "metrics.md#operator"),
		lines(8, 7, "Queries to grid nodes", "How often a node was queried for its status: only while a grid is degraded.").
			ask("{{outcome}}", orZero(sumBy("outcome", rate("ordergrid_operator_node_questions_total")))).
			unit("ops").fromZero().override(nameless, named("none")).docs("Operator", "metrics.md#operator"),
	}
}

func process() []*panel {
	return []*panel{
		lines(8, 6, "CPU", "Cores that the operator uses.").
			ask("{{pod}}", sumBy("pod", rate(own("process_cpu_seconds_total")))).
			fromZero().empty(noOperator).docs("Go's runtime and the process", "metrics.md#gos-runtime-and-the-process"),
		lines(8, 6, "Memory", "Memory present of each operator.").
			ask("{{pod}}", maxBy("pod", own("process_resident_memory_bytes"))).
			unit("bytes").fromZero().empty(noOperator).docs("Go's runtime and the process", "metrics.md#gos-runtime-and-the-process"),
		lines(8, 6, "Leader", "1 for the operator that holds the Lease.").
			ask("{{pod}}", maxBy("pod", own("leader_election_master_status"))).
			decimals(0).fromZero().to(1).custom("lineInterpolation", "stepAfter").empty("no leader election: one operator only").docs("Operator", "metrics.md#operator"),
	}
}
