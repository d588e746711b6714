package boards

import "github.com/ordergrid/ordergrid/dashboards/grafana"

const (
	noProbe  = "no probe runs: apply an OrderProbe"
	noResult = "no OrderProbe has a result yet"
)

// probes compares published figures with those measured here, and shows a run while it lasts.
func probes() (board, error) {
	const verdicts = "ordergrid_orderprobe_verdict"
	return board{
		uid: "ordergrid-probes", title: "OrderGrid / Probe runs", from: "now-1h",
		description: "Published and measured figures, with a verdict, and the run under way.",
		variables: []grafana.Variable{
			dataSourceVariable(),
			choice("namespace", "Namespace", `{__name__=~"`+verdicts+`|ordergrid_probe_step"}`),
			choice("orderprobe", "OrderProbe", verdicts+`{namespace=~"$namespace"}`),
			choice("scenario", "Scenario", `{__name__=~"`+verdicts+`|ordergrid_probe_step",namespace=~"$namespace"}`),
		},
		annotations: drillMarks(`namespace=~"$namespace"`),
		sections: []section{
			{"Published against here", results()},
			{"The run under way", underWay()},
			{"Is the probe itself on time?", onTime()},
		},
	}, nil
}

// result selects create-to-end figures of OrderProbes.
func result(metric, source string) string {
	return `max by (namespace, orderprobe, scenario, pairs, rate) (ordergrid_orderprobe_result_seconds{namespace=~"$namespace",orderprobe=~"$orderprobe",scenario=~"$scenario",latency="create_to_end",metric="` + metric + `",source="` + source + `"})`
}

func results() []*panel {
	ratio := func(metric string) string {
		return result(metric, "here") + " / " + result(metric, "published")
	}
	return []*panel{
		rowsOf(7, 8, "Verdicts", "Whether a run's figures are valid, and whether every order was found.").
			ask("holds", `max by (namespace, orderprobe, scenario, verdict) (ordergrid_orderprobe_verdict{namespace=~"$namespace",orderprobe=~"$orderprobe",scenario=~"$scenario"} == 1)`).
			join().hide("holds").empty(noResult).docs("When a run is valid", "probe.md#when-a-run-is-valid"),
		rowsOf(17, 8, "Create-to-end, published and here", "One row per rate of one probe. A figure is missing where none was published for that rate, or where the guards reject it.").
			ask("mean, published", result("mean", "published")).
			ask("mean, here", result("mean", "here")).
			ask("mean, here/published", ratio("mean")).
			ask("p50, published", result("p50", "published")).
			ask("p50, here", result("p50", "here")).
			ask("p50, here/published", ratio("p50")).
			ask("p99, here", result("p99", "here")).
			join().unit("s").empty(noResult).ratioColumns().docs("The table", "probe.md#the-table"),
		bars(12, 6, "Median here over median published", "Below 1 is faster than what was published at the same rate.").
			ask("{{orderprobe}} {{rate}}/s", ratio("p50")).
			unit("short").decimals(2).fromZero().goal("green", at(1, "orange"), at(2, "red")).empty(noResult).docs("The table", "probe.md#the-table"),
		bars(12, 6, "Mean here over mean published", "The mean includes outliers; the published means rise steeply with the rate.").
			ask("{{orderprobe}} {{rate}}/s", ratio("mean")).
			unit("short").decimals(2).fromZero().goal("green", at(1, "orange"), at(2, "red")).empty(noResult).docs("The table", "probe.md#the-table"),
	}
}

func underWay() []*panel {
	at := func(q float64, metric string) string { return quantile(q, probe(metric), "") }
	return []*panel{
		lines(8, 8, "Orders offered and answered", "Offered: the rate of the schedule, all probes together. Acknowledged and the rest: the outcomes of orders.").
			ask("offered", sumBy("", probe("rate_orders_per_second"))).
			ask("{{outcome}}", sumBy("outcome", rate(probe("orders_total")))).
			unit("ops").fromZero().empty(noProbe).docs("What is measured", "probe.md#what-is-measured"),
		lines(8, 8, "Step of the run", "Which rate of the scenario is under way, and how many there are.").
			ask("step {{scenario}}", maxBy("scenario", probe("step"))).
			ask("of {{scenario}}", maxBy("scenario", probe("steps"))).
			decimals(0).fromZero().custom("lineInterpolation", "stepAfter").empty(noProbe).docs("The probe", "probe.md"),
		lines(8, 8, "Created and not yet sent", "Orders that wait for a publishing thread: the grid, or the threads, cannot keep up.").
			ask("{{probe}}", maxBy("probe", probe("backlog_orders"))).
			fromZero().empty(noProbe).docs("What is measured", "probe.md#what-is-measured"),
		lines(12, 9, "Three clocks, median and 99 %", "Send-to-end is the grid alone; create-to-end has the wait in the probe; intended-to-end also the creator's own lateness. Far apart means orders wait before they are sent.").
			ask("intended-to-end, median", at(0.5, "intended_to_end_seconds")).
			ask("create-to-end, median", at(0.5, "create_to_end_seconds")).
			ask("send-to-end, median", at(0.5, "send_to_end_seconds")).
			ask("intended-to-end, 99 %", at(0.99, "intended_to_end_seconds")).
			ask("create-to-end, 99 %", at(0.99, "create_to_end_seconds")).
			ask("send-to-end, 99 %", at(0.99, "send_to_end_seconds")).
			unit("s").logarithmic().table().empty(noProbe).docs("What is measured", "probe.md#what-is-measured"),
		heatmap(12, 9, "Create-to-end", "Every measured order.").
			ask("{{le}}", spread(probe("create_to_end_seconds"))).
			unit("s").empty(noProbe).docs("What is measured", "probe.md#what-is-measured"),
	}
}

func onTime() []*panel {
	return []*panel{
		lines(12, 7, "How late orders were created", "Against the schedule. A late probe distorts create-to-end; a guard checks the same figures.").
			ask("median", quantile(0.5, probe("schedule_lag_seconds"), "")).
			ask("99 %", quantile(0.99, probe("schedule_lag_seconds"), "")).
			ask("max", quantile(1, probe("schedule_lag_seconds"), "")).
			unit("s").logarithmic().empty(noProbe).docs("When a run is valid", "probe.md#when-a-run-is-valid"),
		lines(12, 7, "Retries of the client", "Orders sent again, requests redirected to another pod, connections made: near zero while nothing fails.").
			ask("sent again", sumBy("", rate(probe("client_retries_total")))).
			ask("redirected", sumBy("", rate(probe("client_redirects_total")))).
			ask("connected", sumBy("", rate(probe("client_connects_total")))).
			unit("ops").fromZero().empty(noProbe).docs("Failover", "client.md#failover"),
	}
}

// bars are horizontal bars of present values.
func bars(width, height int, title, description string) *panel {
	p := newPanel("bargauge", width, height, title, description)
	p.once = true
	p.p.FieldConfig.Defaults.Color = map[string]any{"mode": "thresholds"}
	for name, value := range map[string]any{
		"reduceOptions": lastValue, "displayMode": "basic", "orientation": "horizontal", "valueMode": "color", "showUnfilled": true, "namePlacement": "auto",
		"sizing": "auto", "minVizWidth": 8, "minVizHeight": 16,
	} {
		p.option(name, value)
	}
	return p
}

// hide removes a column.
func (p *panel) hide(column string) *panel {
	return p.override("^"+column+"$", grafana.Property{ID: "custom.hidden", Value: true})
}

// ratioColumns are plain numbers, green below 1.
func (p *panel) ratioColumns() *panel {
	one, two := 1.0, 2.0
	return p.override("here/published$", grafana.Property{ID: "unit", Value: "short"}, grafana.Property{ID: "decimals", Value: 2},
		grafana.Property{ID: "custom.cellOptions", Value: map[string]any{"type": "color-text"}},
		grafana.Property{ID: "thresholds", Value: grafana.Thresholds{Mode: "absolute", Steps: []grafana.Step{{Color: "green"}, {Color: "orange", Value: &one}, {Color: "red", Value: &two}}}})
}
