package boards

import "strings"

// noOutside is the text of panels about processes of grid-sink.
const noOutside = "no process of grid-sink is scraped"

func downstreamBoard() (board, error) {
	return board{
		uid: "ordergrid-downstream", title: "OrderGrid / Downstream", from: "now-1h",
		description: "Sinks and other readers of the log: how far behind each is, whether it fails, what it writes.",
		variables:   gridVariables(), annotations: marks(),
		sections: []section{
			{"Every sink, as the grid sees it", downstream()},
			{"Sinks outside the grid", outside()},
			{"Another site", links()},
			{"Followers", followers()},
		},
	}, nil
}

// downstream is what the nodes know of sinks, inside and outside the grid.
func downstream() []*panel {
	return []*panel{
		lines(6, 7, "Not downstream yet", "Committed entries that a sink does not hold, by sink, according to its primaries.").
			ask("{{sink}} {{partition}} {{pod}}", maxBy("sink, partition, pod", node("sink_depth_entries"))).
			decimals(0).fromZero().empty(noSink).docs("Memory and sinks", "metrics.md#memory-and-sinks"),
		lines(6, 7, "How old it is", "Age of the oldest committed entry that a sink does not hold, by sink, on the pods that write.").
			ask("{{sink}} {{partition}} {{pod}}", maxBy("sink, partition, pod", node("sink_age_seconds"))).
			unit("s").fromZero().empty(noSink).docs("Memory and sinks", "metrics.md#memory-and-sinks"),
		lines(6, 7, "Writing a batch, 99 %", "Time to write one batch to a sink, and the part of it that is the fsync.").
			ask("{{sink}} write", quantile(0.99, node("sink_write_seconds"), "sink")).
			ask("{{sink}} fsync", quantile(0.99, node("sink_fsync_seconds"), "sink")).
			unit("s").logarithmic().empty("nothing is written: no sink, or no orders").docs("Memory and sinks", "metrics.md#memory-and-sinks"),
		lines(6, 7, "Written and failed", "Entries that a sink holds durably, and writes that failed and are retried.").
			ask("{{sink}} entries", sumBy("sink", rate(node("sink_entries_total")))).
			ask("{{sink}} failed writes", sumBy("sink", rate(node("sink_errors_total")))).
			unit("ops").fromZero().empty(noSink).docs("Memory and sinks", "metrics.md#memory-and-sinks"),
	}
}

// outsideSink selects series of grid-sink.
func outsideSink(metric string, more ...string) string {
	return "ordergrid_sink_" + metric + "{" + strings.Join(append([]string{`namespace=~"$namespace",grid=~"$grid"`}, more...), ",") + "}"
}

// outside is what processes of grid-sink export.
func outside() []*panel {
	const page = "metrics.md#sinks-outside-the-grid"
	return []*panel{
		lines(6, 7, "Failing", "1 from an error until the next batch is written. The error's text is in /status and in the log of grid-sink.").
			ask("{{sink}} {{partition}}", maxBy("sink, partition", outsideSink("failing"))).
			custom("lineInterpolation", "stepAfter").decimals(0).fromZero().to(1).empty(noOutside).docs("Runbook: sink failing", "runbooks/SinkFailing.md"),
		lines(6, 7, "Behind, in entries", "Committed entries that the target does not hold.").
			ask("{{sink}} {{partition}}", maxBy("sink, partition", outsideSink("lag_entries"))).
			decimals(0).fromZero().empty(noOutside).docs("Sinks outside the grid", page),
		lines(6, 7, "Behind, in time", "Age of the oldest committed order that the target does not hold: what would be missing there if all copies were lost.").
			ask("{{sink}} {{partition}}", maxBy("sink, partition", outsideSink("lag_seconds"))).
			unit("s").fromZero().empty(noOutside).docs("Sinks outside the grid", page),
		lines(6, 7, "Orders written", "Per sink, all partitions together.").
			ask("{{sink}}", sumBy("sink", rate(outsideSink("orders_total")))).
			unit("ops").fromZero().empty(noOutside).docs("Sinks outside the grid", page),
		lines(6, 7, "Writing a batch", "Time to make one batch durable at the target.").
			ask("{{sink}} median", quantile(0.5, outsideSink("write_seconds"), "sink")).
			ask("{{sink}} 99 %", quantile(0.99, outsideSink("write_seconds"), "sink")).
			unit("s").logarithmic().empty("nothing is written").docs("Sinks outside the grid", page),
		lines(6, 7, "Entries in a batch", "Mean. A batch grows with the backlog, up to the limit of the sink.").
			ask("{{sink}}", sumBy("sink", rate(outsideSink("entries_total")))+" / "+sumBy("sink", rate(outsideSink("batches_total")))).
			decimals(0).fromZero().empty("nothing is written").docs("Sinks outside the grid", page),
		lines(6, 7, "Errors by kind", "Failures to open, write or follow, each retried; fenced: another writer took over; permanent: an administrator has to act.").
			ask("{{sink}} {{kind}}", sumBy("sink, kind", increase(outsideSink("errors_total")))).
			decimals(0).fromZero().empty(noOutside).docs("Sinks outside the grid", page),
		lines(6, 7, "Read and not written", "Memory of entries that wait for the target; with a slow one it stands at what two batches may hold.").
			ask("{{sink}} {{partition}}", maxBy("sink, partition", outsideSink("buffered_bytes"))).
			unit("bytes").fromZero().empty(noOutside).docs("Sinks outside the grid", page),
	}
}

// noLink is the text of panels about processes of grid-link.
const noLink = "no process of grid-link is scraped"

// linkSeries selects series of grid-link. It has the namespace of the GridLink, and no grid: its target may be elsewhere.
func linkSeries(metric string) string {
	return "ordergrid_link_" + metric + `{namespace=~"$namespace"}`
}

// links are how far the standbys of grids are behind.
func links() []*panel {
	const page = "metrics.md#another-site"
	return []*panel{
		lines(6, 7, "Behind, in time", "How long ago the oldest order was made that the standby has not committed: what a forced promotion would lose.").
			ask("{{gridlink}} {{target}} {{partition}}", maxBy("gridlink, target, partition", linkSeries("lag_seconds"))).
			unit("s").fromZero().empty(noLink).docs("Runbook: link falling behind", "runbooks/GridLinkFallingBehind.md"),
		lines(6, 7, "Behind, in entries", "Entries committed at the source and not at the standby.").
			ask("{{gridlink}} {{target}} {{partition}}", maxBy("gridlink, target, partition", linkSeries("lag_entries"))).
			decimals(0).fromZero().empty(noLink).docs("Another site", page),
		lines(6, 7, "Sent to standbys", "Bytes of entries, all partitions together.").
			ask("{{gridlink}} {{target}}", sumBy("gridlink, target", rate(linkSeries("bytes_total")))).
			unit("Bps").fromZero().empty(noLink).docs("Another site", page),
		lines(6, 7, "Closed and failing", "Partitions that are not open, and those that fail; /status and condition Connected have the reason.").
			ask("{{gridlink}} {{target}} closed", "sum by (gridlink, target) (1 - "+linkSeries("open")+")").
			ask("{{gridlink}} {{target}} failing", sumBy("gridlink, target", linkSeries("failing"))).
			decimals(0).fromZero().empty(noLink).docs("Another site", page),
	}
}

// followers are clients that follow the log, sinks outside the grid among them.
func followers() []*panel {
	const page = "metrics.md#clients-and-connections"
	return []*panel{
		lines(6, 7, "Streams", "Followers of the log, per pod.").
			ask("{{pod}}", maxBy("pod", node("follow_streams"))).
			decimals(0).fromZero().empty(noGrid).docs("Following the log", "follow.md"),
		lines(6, 7, "Sent to followers", "Bytes of the log, per pod.").
			ask("{{pod}}", sumBy("pod", rate(node("follow_sent_bytes_total")))).
			unit("Bps").fromZero().empty(noGrid).docs("Clients and connections", page),
		lines(6, 7, "Windows", "Bytes that all streams may have on their way; beyond a quarter of the memory for clients streams are rejected.").
			ask("{{pod}}", maxBy("pod", node("follow_window_bytes"))).
			unit("bytes").fromZero().empty(noGrid).docs("What it costs a node", "follow.md#what-it-costs-a-node"),
		lines(6, 7, "Ended and rejected", "Streams that ended, by reason, and streams rejected by a bound.").
			ask("{{reason}}", sumBy("reason", increase(node("follow_ends_total")))).
			ask("rejected", sumBy("", increase(node("follow_rejected_total")))).
			decimals(0).fromZero().empty(noGrid).docs("Clients and connections", page),
	}
}
