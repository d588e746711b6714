package boards

func replication() (board, error) {
	return board{
		uid: "ordergrid-replication", title: "OrderGrid / Replication and failover", from: "now-30m",
		description: "Primaries, in-sync copies, and the effects of failovers. Orange marks are new epochs, purple ones drills.",
		variables:   gridVariables(), annotations: marks(),
		sections: []section{
			{"Roles", rolesNow()},
			{"Copies", copiesPanels()},
			{"Effects of a failover on orders", failover()},
			{"Connections between nodes", between()},
			{"Heartbeats and errors", trouble()},
			{"Client authentication", askedWho()},
			{"Functions", functions()},
			{"Limits", limited()},
		},
	}, nil
}

func rolesNow() []*panel {
	return []*panel{
		roles(16, 8),
		lines(8, 8, "Epoch", "Number of the configuration of each partition: every change of its members or its primary raises it by one.").
			ask("{{grid}} {{partition}}", maxBy("grid, partition", node("partition_epoch"))).
			custom("lineInterpolation", "stepAfter").decimals(0).fromZero().empty(noGrid).docs("Who may change the configuration", "replication.md#who-may-change-the-configuration"),
		lamp(4, "Partitions without a primary", "Partitions of which no scraped node is primary and takes orders.").
			ask("without", "count(count by ("+partition+") ("+role("")+")) - sum("+serving()+")").
			decimals(0).goal("green", at(1, "red")).empty(noGrid).docs("When things are unavailable", "replication.md#when-things-are-unavailable"),
		lamp(4, "Fewest copies in sync", "Of the partition that has the fewest.").
			ask("copies", "min("+copies()+")").
			decimals(0).goal("red", at(1, "orange"), at(2, "green")).empty(noGrid).docs("Runbook: not redundant", "runbooks/NotRedundant.md"),
		lamp(4, "Most primaries on one pod", "Number of partitions of the pod that is primary of the most: after a failover more than one, until they are handed back.").
			ask("primaries", "max("+sumBy("namespace, grid, pod", role("primary"))+")").
			decimals(0).goal("green", at(2, "orange")).empty(noGrid).docs("A planned stop", "spec/ordergrid.md#a-planned-stop"),
		lamp(4, "Changes in this range", "Configurations adopted in the time shown: take-overs, hand-overs, members lost and joined.").
			ask("changes", "sum(increase("+node("configuration_changes_total")+"[$__range]))").
			decimals(0).goal("green", at(1, "blue")).empty(noGrid).docs("Who may change the configuration", "replication.md#who-may-change-the-configuration"),
		lamp(4, "Lineage", "Highest of all partitions. It rises when a loss of data is accepted; 1 is as created.").
			ask("lineage", "max("+node("partition_lineage")+")").
			decimals(0).goal("green", at(2, "red")).empty(noGrid).docs("Runbook: data loss suspected", "runbooks/DataLossSuspected.md"),
		lamp(4, "Replicas discarded", "Replicas that were reset and joined anew, in the time shown.").
			ask("discarded", "sum(increase("+node("replica_restarts_total")+"[$__range]))").
			decimals(0).goal("green", at(1, "orange")).empty(noGrid).docs("Partitions and replication", "metrics.md#partitions-and-replication"),
	}
}

func copiesPanels() []*panel {
	return []*panel{
		lines(8, 7, "Copies in sync", "Members that hold every acknowledged order, per partition, according to its primary.").
			ask("{{grid}} {{partition}}", maxBy("grid, partition", copies())).
			custom("lineInterpolation", "stepAfter").decimals(0).fromZero().empty(noGrid).docs("Words", "replication.md#words"),
		lines(8, 7, "Entries not yet on every copy", "Stored on the primary and not yet known to be committed.").
			ask("{{grid}} {{partition}}", maxBy("grid, partition", node("replication_lag_entries"))).
			fromZero().empty(noGrid).docs("Partitions and replication", "metrics.md#partitions-and-replication"),
		lines(8, 7, "Age of what is not on every copy", "Age of the oldest entry that is not known to be committed: how long the oldest waiting order has waited.").
			ask("{{grid}} {{partition}}", maxBy("grid, partition", node("replication_lag_seconds"))).
			unit("s").fromZero().empty(noGrid).docs("Partitions and replication", "metrics.md#partitions-and-replication"),
		lines(8, 7, "Replication round trip", "From sending entries to another copy until its acknowledgement.").
			ask("median", quantile(0.5, node("replication_round_trip_seconds"), "")).
			ask("99 %", quantile(0.99, node("replication_round_trip_seconds"), "")).
			ask("max", quantile(1, node("replication_round_trip_seconds"), "")).
			unit("s").logarithmic().empty("nothing is replicated").docs("Latency and throughput", "metrics.md#latency-and-throughput"),
		lines(8, 7, "Log position", "Last entry stored, per partition and pod. Diverging lines are a copy that falls behind.").
			ask("{{partition}} {{pod}}", maxBy("partition, pod", node("last_sequence"))).
			decimals(0).empty(noGrid).docs("Partitions and replication", "metrics.md#partitions-and-replication"),
		lines(8, 7, "Catching up", "Bytes of the log sent to members that catch up, per sending pod.").
			ask("{{pod}}", sumBy("pod", rate(node("learner_sent_bytes_total")))).
			unit("Bps").fromZero().empty(noGrid).docs("Signs of life", "replication.md#signs-of-life"),
	}
}

// between is the kernel's view of the connections that carry the log.
func between() []*panel {
	const page = "metrics.md#the-way-between-two-nodes"
	return []*panel{
		lines(6, 7, "Round trip of the network", "Smoothed, as the kernel of each pod measures it, without the time that a node takes to answer.").
			ask("{{pod}} to {{peer}}", maxBy("pod, peer", node("peer_rtt_seconds"))).
			unit("s").logarithmic().empty(noGrid).docs("The way between two nodes", page),
		lines(6, 7, "Segments sent again", "Lost, or presumed lost: an order waits for each of them.").
			ask("{{pod}} to {{peer}}", sumBy("pod, peer", rate(node("peer_retransmits_total")))).
			fromZero().empty(noGrid).docs("The way between two nodes", page),
		lines(6, 7, "Sent and not acknowledged", "Segments in flight to another node: more than a few for longer than a moment mean a link that is cut or full.").
			ask("{{pod}} to {{peer}}", maxBy("pod, peer", node("peer_unacknowledged_segments"))).
			decimals(0).fromZero().empty(noGrid).docs("The way between two nodes", page),
		lines(6, 7, "Connections between nodes by protection", "tls: certificates; key: the grid's peer key; none: the other end is not authenticated, and may not be a node of the grid.").
			ask("{{protection}}", sumBy("protection", node("peer_connections"))).
			decimals(0).fromZero().empty(noGrid).docs("Runbook: peers not proved", "runbooks/PeersNotProved.md"),
	}
}

func failover() []*panel {
	return []*panel{
		lines(8, 7, "Orders acknowledged", "Per partition. The notch is the cost of a failover.").
			ask("{{partition}}", sumBy("partition", rate(node("orders_total", `outcome="acknowledged"`)))).
			unit("ops").fromZero().empty(noGrid).docs("Measured", "robustness.md#measured"),
		lines(8, 7, "Order latency", "Orders that waited for the new primary are the slow ones right after a mark.").
			ask("median", quantile(0.5, node("order_latency_seconds"), "")).
			ask("max", quantile(1, node("order_latency_seconds"), "")).
			unit("s").logarithmic().empty(noOrders).docs("Latency and throughput", "metrics.md#latency-and-throughput"),
		lines(8, 7, "Repetitions and redirects", "Orders sent again after a lost connection and recognised (duplicates), and requests that went to a pod which is not primary.").
			ask("repetitions", sumBy("", rate(node("orders_total", `outcome="duplicate"`)))).
			ask("redirects", sumBy("", rate(node("redirects_total")))).
			unit("ops").fromZero().empty(noGrid).docs("How once is once", "client.md#how-once-is-once"),
	}
}

func trouble() []*panel {
	return []*panel{
		rowsOf(24, 4, "Fabric in use", "Network of the data port of each pod: the network (namespace/name, or pods), the network interface that has the address others use, the kind of its link, and the transport.").
			ask("in use", "max by (namespace, grid, pod, network, interface, address, link, transport) ("+node("fabric_info")+")").
			join().hide("in use").empty(noGrid).docs("Clients and connections", "metrics.md#clients-and-connections"),
		lines(6, 7, "Late heartbeats", "Heartbeats answered more than three intervals after the previous one. A member silent for --lease is dropped.").
			ask("{{pod}}", sumBy("pod", increase(node("beacons_total", `event="late"`)))).
			fromZero().empty(noGrid).docs("Signs of life", "replication.md#signs-of-life"),
		lines(6, 7, "Sent again, dropped", "Entries sent again to a member, frames for a node without a connection, frames of another epoch.").
			ask("sent again", sumBy("", rate(node("resends_total")))).
			ask("no connection", sumBy("", rate(node("peer_frames_dropped_total")))).
			ask("another epoch", sumBy("", rate(node("stale_frames_total")))).
			unit("ops").fromZero().empty(noGrid).docs("Partitions and replication", "metrics.md#partitions-and-replication"),
		lines(6, 7, "Gaps found", "Gaps in a sequence: a client that skipped a number, entries a copy missed. Each is repaired or refused, none is ignored.").
			ask("{{side}}", sumBy("side", increase(node("gaps_total")))).
			fromZero().empty(noGrid).docs("Partitions and replication", "metrics.md#partitions-and-replication"),
		lines(6, 7, "Requests to the API server", "Changes of a configuration proposed, and reads and watches that failed. Orders do not need it; a change of members does.").
			ask("proposed", sumBy("", increase(node("arbiter_proposals_total")))).
			ask("failed", sumBy("", increase(node("arbiter_errors_total")))).
			fromZero().empty(noGrid).docs("When things are unavailable", "replication.md#when-things-are-unavailable"),
	}
}

// functions are those of users; none in a grid without.
func functions() []*panel {
	const none, page = "the grid calls no functions", "functions.md#what-a-grid-does-with-it"
	const noCompute, compute = "the nodes have no functions of kind Compute", "functions.md#functions-that-clients-call"
	const noPost, post = "no log has functions of kind Post", "functions.md#functions-that-every-copy-calls"
	return []*panel{
		lines(8, 7, "Functions, calls by result", "Calls of functions of spec.callbacks, by result. Failed ones are out_of_fuel, calls_too_deep, trap and bad_result.").
			ask("{{function}} {{result}}", sumBy("function, result", rate(node("function_calls_total")))+" > 0").
			unit("ops").fromZero().empty(none).docs("Runbook: function failing", "runbooks/FunctionFailing.md").docs("Runbook: functions refuse many orders", "runbooks/FunctionRefusalsHigh.md"),
		lines(8, 7, "Functions, fuel of a call", "Mean fuel that a call takes, and the most that it may take.").
			ask("{{function}}", sumBy("function", rate(node("function_fuel_total")))+" / "+sumBy("function", rate(node("function_calls_total")))).
			ask("{{function}} limit", maxBy("function", node("function_fuel_limit"))).
			decimals(0).fromZero().empty(none).docs("Runbook: calls take most of their fuel", "runbooks/FunctionFuelHigh.md").docs("What a grid does with functions", page),
		rowsOf(8, 7, "Functions, modules", "Modules that the nodes have loaded. During a roll there are two of a function.").
			ask("loaded", "max by (namespace, grid, pod, function, sha256, on_error) ("+node("function_info")+")").
			join().hide("loaded").empty(none).docs("Runbook: functions differ", "runbooks/FunctionsDiffer.md"),
		lines(8, 7, "Post functions, calls by result", "Calls of functions of kind Post by all copies: each order is called for when it is stored and when it is freed. Failed ones are out_of_fuel, calls_too_deep, trap and bad_result.").
			ask("{{function}} {{result}}", sumBy("function, result", rate(node("post_function_calls_total")))+" > 0").
			unit("ops").fromZero().empty(noPost).docs("Runbook: function failing", "runbooks/FunctionFailing.md"),
		lines(8, 7, "Post functions, fuel of a call", "Mean fuel that a call of a function of kind Post takes, and the most that it may take.").
			ask("{{function}}", sumBy("function", rate(node("post_function_fuel_total")))+" / "+sumBy("function", rate(node("post_function_calls_total")))).
			ask("{{function}} limit", maxBy("function", node("post_function_fuel_limit"))).
			decimals(0).fromZero().empty(noPost).docs("Functions that every copy calls", post),
		lines(8, 7, "Post functions, copies", "Copies of partitions whose log has a function of kind Post in force, by the digest of its module. A change moves them one partition at a time.").
			ask("{{function}} {{sha256}}", sumBy("function, sha256", node("post_function_partitions"))).
			decimals(0).fromZero().empty(noPost).docs("Functions that every copy calls", post),
		lines(8, 7, "Compute functions, calls by result", "Calls of functions of kind Compute by clients. Failed ones are out_of_fuel, calls_too_deep, trap and bad_result; error is the function's own.").
			ask("{{function}} {{result}}", sumBy("function, result", rate(node("compute_function_calls_total")))+" > 0").
			unit("ops").fromZero().empty(noCompute).docs("Runbook: function failing", "runbooks/FunctionFailing.md"),
		lines(8, 7, "Compute functions, fuel a second", "Fuel that calls of functions of kind Compute take, about an instruction each: of the thread that serves the orders of a node.").
			ask("{{function}} on {{pod}}", sumBy("function, pod", rate(node("compute_function_fuel_total")))+" > 0").
			decimals(0).fromZero().empty(noCompute).docs("Functions that clients call", compute),
		lines(8, 7, "Compute functions, fuel of a call", "Mean fuel that a call of a function of kind Compute takes.").
			ask("{{function}}", sumBy("function", rate(node("compute_function_fuel_total")))+" / "+sumBy("function", rate(node("compute_function_calls_total")))).
			decimals(0).fromZero().empty(noCompute).docs("Functions that clients call", compute),
	}
}

// limited has panels for grids with a RiskProfile.
func limited() []*panel {
	const none = "no log has limits"
	return []*panel{
		lines(12, 7, "Orders refused by limits", "By the rule of the RiskProfile that refused them; killSwitch: by a kill.").
			ask("{{rule}}", sumBy("rule", rate(node("limit_refusals_total")))+" > 0").
			unit("ops").fromZero().empty(none).docs("Runbook: limits refuse many orders", "runbooks/LimitRefusalsHigh.md"),
		lamp(12, "Kills in effect", "Sessions, traders, desks, algorithms, clients, or all, whose new orders are refused because a person wanted it.").
			ask("kills", "max("+node("limit_kills")+")").
			decimals(0).goal("green", at(1, "red")).empty(none).docs("Runbook: a kill is active", "runbooks/KillActive.md"),
	}
}

// askedWho is 0 in a grid without client authentication.
func askedWho() []*panel {
	const page = "security.md#who-may-do-what"
	return []*panel{
		lines(8, 7, "Clients refused, by reason", "Connections closed because of the client's identity: not authenticated, no rule for it, or its token could not be reviewed.").
			ask("{{reason}}", orZero(sumBy("reason", increase(node("clients_refused_total")))+" > 0")).
			fromZero().override(nameless, named("none")).docs("Who may do what", page),
		lines(8, 7, "Token reviews, by result", "Failed: the API server did not answer, or does not permit the node to review. Turned away: too many waited.").
			ask("{{result}}", orZero(sumBy("result", increase(node("token_reviews_total")))+" > 0")).
			fromZero().override(nameless, named("none")).docs("Runbook: tokens not reviewed", "runbooks/TokensNotReviewed.md"),
		lamp(4, "Rules not readable", "Nodes that cannot read the authorization rules that are mounted. They use the last ones they could read.").
			ask("unread", orZero("count("+node("authorization_rules_unread")+" == 1)")).
			decimals(0).goal("green", at(1, "orange")).docs("Runbook: rules unread", "runbooks/AuthorizationRulesUnread.md"),
		lamp(4, "Without any rules", "Nodes that have read none since they started: they refuse all clients.").
			ask("without", orZero("count("+node("authorization_rules_read_seconds")+" == 0)")).
			decimals(0).goal("green", at(1, "red")).docs("Runbook: rules unread", "runbooks/AuthorizationRulesUnread.md"),
	}
}
