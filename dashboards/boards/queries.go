package boards

// noViews is the text of panels of grids that keep no views, or are asked nothing.
const noViews = "no grid with spec.views is scraped"

func queriesBoard() (board, error) {
	return board{
		uid: "ordergrid-queries", title: "OrderGrid / Queries", from: "now-1h",
		description: "Questions about orders: how many, how long they take, what they read; the views that they are asked of; and regions.",
		variables:   gridVariables(), annotations: marks(),
		sections: []section{
			{"Questions", questions()},
			{"Views", viewsPanels()},
			{"Regions", regionsPanels()},
		},
	}, nil
}

const questionsPage = "metrics.md#questions-and-views"

func questions() []*panel {
	return []*panel{
		lines(8, 7, "Questions by result", "Questions that ended. Done is answered; the others are refused, or not answered, with the reason.").
			ask("{{result}}", sumBy("result", rate(node("questions_total")))).
			ask("rejected: too many open", "sum("+rate(node("questions_rejected_total"))+")").
			unit("ops").fromZero().empty(noViews).docs("Questions", questionsPage),
		lines(8, 7, "Time to answer", "From a question received to its answer made, by how it finds rows: an index, a scan, or groups.").
			ask("{{way}} median", quantile(0.5, node("question_seconds"), "way")).
			ask("{{way}} 99 %", quantile(0.99, node("question_seconds"), "way")).
			unit("s").logarithmic().empty(noViews).docs("Runbook: questions are slow", "runbooks/QuestionsSlow.md"),
		lines(8, 7, "Rows looked at and returned", "Far more looked at than returned: an index would help (spec.orderIndex), or a narrower filter.").
			ask("looked at", "sum("+rate(node("question_rows_scanned_total"))+")").
			ask("returned", "sum("+rate(node("question_rows_returned_total"))+")").
			logarithmic().empty(noViews).docs("Questions", questionsPage),
		lines(8, 7, "Open questions", "That wait, run, or have an answer that the client has not read; 64 on a node at most.").
			ask("{{pod}}", maxBy("pod", node("questions"))).
			decimals(0).fromZero().empty(noViews).docs("Questions", questionsPage),
	}
}

func viewsPanels() []*panel {
	return []*panel{
		lines(8, 7, "Entries that views lack", "Committed entries that are not in a view yet.").
			ask("{{partition}} {{pod}}", maxBy("partition, pod", node("view_lag_entries"))).
			decimals(0).fromZero().empty(noViews).docs("Runbook: a view lags", "runbooks/ViewLagging.md"),
		lines(8, 7, "Memory of views", "In use, without sorted runs, by pod.").
			ask("{{pod}}", sumBy("pod", node("view_bytes"))).
			unit("bytes").fromZero().empty(noViews).docs("Questions", questionsPage),
		lamp(8, "Views that are not whole", "Views that ended before the log does, or that found no room: questions about later orders are refused there.").
			ask("not whole", "sum("+node("view_incomplete")+")").
			decimals(0).goal("green", at(1, "red")).empty(noViews).docs("Runbook: a view is incomplete", "runbooks/ViewIncomplete.md"),
	}
}

// noRegions is the text of panels of grids without regions.
const (
	noRegions   = "no grid with spec.regions is scraped"
	regionsPage = "metrics.md#regions"
)

func regionsPanels() []*panel {
	return []*panel{
		lines(8, 7, "Entries of regions", "Of all partitions; each copy has them.").
			ask("{{region}}", "sum by (region) ("+maxBy("partition, region", node("region_entries"))+")").
			decimals(0).fromZero().empty(noRegions).docs("Regions", regionsPage),
		lines(8, 7, "Memory of regions", "Share of the bound in the partition that is nearest to it: of each region that has one, and of all regions together.").
			ask("{{region}}", maxBy("region", node("region_bytes")+" / "+node("region_limit_bytes"))).
			ask("all regions", "max("+node("regions_bytes")+" / "+node("regions_limit_bytes")+")").
			unit("percentunit").fromZero().empty(noRegions).docs("Runbook: regions are nearly full", "runbooks/RegionNearlyFull.md"),
		lamp(8, "Regions that refuse changes", "Regions and partitions in which a change was refused for want of memory, and would be refused still.").
			ask("refuse", "sum("+node("region_full")+")").
			decimals(0).goal("green", at(1, "red")).empty(noRegions).docs("Runbook: a region is full", "runbooks/RegionFull.md"),
		lines(12, 7, "Operations on regions", "Decided by primaries, or read.").
			ask("{{operation}} {{outcome}}", sumBy("operation, outcome", rate(node("region_operations_total")))).
			unit("ops").fromZero().empty(noRegions).docs("Regions", regionsPage),
		lines(12, 7, "Changes refused because a region is full", "Puts, patches and calls of functions that need more memory than the region, or all of them, have left, by region.").
			ask("{{region}}", sumBy("region", rate(node("region_operations_total", `outcome="full"`)))).
			unit("ops").fromZero().empty(noRegions).docs("Runbook: a region is full", "runbooks/RegionFull.md"),
	}
}
