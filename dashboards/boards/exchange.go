package boards

const (
	// noExchange is the text of panels about grids that match.
	noExchange   = "no grid with spec.execution.mode Match is scraped"
	exchangePage = "metrics.md#the-exchange"
)

func exchangeBoard() (board, error) {
	return board{
		uid: "ordergrid-exchange", title: "OrderGrid / Exchange", from: "now-1h",
		description: "Grids that match: do the books trade, what is executed, what is refused and why, and have all copies executed the same?",
		variables:   gridVariables(), annotations: marks(),
		sections: []section{
			{"Books", booksPanels()},
			{"Trading", tradingPanels()},
			{"Refusals", refusalPanels()},
			{"Limits", limited()},
		},
	}, nil
}

// ofCopies is a gauge of a grid that every copy of a partition has: of each partition once, and these added up.
func ofCopies(metric, labels string) string {
	by := "namespace, grid, partition"
	if labels != "" {
		by += ", " + labels
	}
	return sumBy(labels, maxBy(by, node(metric)))
}

func booksPanels() []*panel {
	return []*panel{
		lines(8, 7, "Orders that rest", "In the books of all partitions, stops included.").
			ask("orders", ofCopies("resting_orders", "")).
			decimals(0).fromZero().empty(noExchange).docs("The exchange", exchangePage),
		lines(8, 7, "Books by state", "Closed and halted ones take cancels only, in a call orders are collected, uncrossing is an auction that is being executed.").
			ask("{{state}}", ofCopies("books", "state")).
			decimals(0).fromZero().stacked().empty(noExchange).docs("States of a book", "exchange.md#an-instrument"),
		lines(8, 7, "Room for orders", "Share of the orders that can rest in the partition that is nearest to it. A book refuses more as full.").
			ask("{{grid}}", maxBy("grid", node("resting_orders")+" / "+node("resting_orders_limit"))).
			unit("percentunit").fromZero().to(1).empty(noExchange).docs("Bounds", "exchange.md#bounds"),
		lamp(8, "Longest halt without an end", "Of a book that trades again when a person resumes it.").
			ask("halted", "max("+node("halt_age_seconds")+")").
			unit("s").decimals(0).goal("green", at(1, "yellow"), at(300, "orange")).empty(noExchange).docs("Runbook: a book is halted", "runbooks/BookHalted.md"),
		lamp(8, "Longest auction", "From the beginning of its call, of a book whose orders are not executed until a person uncrosses it.").
			ask("auction", "max("+node("auction_age_seconds")+")").
			unit("s").decimals(0).goal("green", at(1800, "orange")).empty(noExchange).docs("Runbook: an auction is long", "runbooks/AuctionLong.md"),
		lamp(8, "Partitions whose copies differ", "Partitions in which two copies have executed the same log in different ways: nothing is reported there.").
			ask("differ", ofCopies("executions_diverged", "")).
			decimals(0).goal("green", at(1, "red")).empty(noExchange).docs("Runbook: executions diverged", "runbooks/ExecutionDiverged.md"),
	}
}

func tradingPanels() []*panel {
	return []*panel{
		lines(12, 7, "Trades", "Committed, by phase of their book. Two orders make one.").
			ask("{{phase}}", sumBy("phase", rate(node("trades_total")))).
			unit("ops").fromZero().empty(noExchange).docs("The exchange", exchangePage),
		lines(12, 7, "Traded quantity", "Of all instruments together, a second.").
			ask("quantity", "sum("+rate(node("traded_quantity_total"))+")").
			fromZero().empty(noExchange).docs("The exchange", exchangePage),
		lines(24, 7, "Executions by kind", "What happened to orders, as it was committed. A trade is filled twice, once for each side.").
			ask("{{kind}}", sumBy("kind", rate(node("executions_total")))).
			unit("ops").fromZero().table().empty(noExchange).docs("Output", "exchange.md#output"),
	}
}

func refusalPanels() []*panel {
	return []*panel{
		lines(8, 7, "Refused by books", "New orders, replaces and cancels that reached their book, by reason.").
			ask("{{reason}}", sumBy("reason", rate(node("book_refusals_total")))+" > 0").
			unit("ops").fromZero().empty("no book refuses, or "+noExchange).docs("The exchange", exchangePage),
		lines(8, 7, "Refused for their price", "Share of the orders that a price collar refuses, and the band of a book. The alert is at one in a hundred of both.").
			ask("collar", "sum("+rate(node("limit_refusals_total", `rule="priceCollar"`))+") / sum("+rate(reached())+")").
			ask("band", "sum("+rate(node("book_refusals_total", `reason="outside_band"`))+") / sum("+rate(reached())+")").
			unit("percentunit").fromZero().goal("green", at(0.01, "orange")).limit().empty(noExchange).docs("Runbook: collar hits", "runbooks/CollarHits.md"),
		lines(8, 7, "Self-matches prevented", "Orders cancelled, in full or in part, because they met one of their group.").
			ask("prevented", "sum("+rate(node("self_trades_prevented_total"))+")").
			unit("ops").fromZero().empty(noExchange).docs("Orders", "exchange.md#orders"),
	}
}

// reached are orders and replaces that reached their book.
func reached() string { return node("executions_total", `kind=~"accepted|rejected|replaced"`) }
