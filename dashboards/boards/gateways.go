package boards

import "strings"

// noGateway is the text of panels about processes of order-gateway.
const noGateway = "no process of order-gateway is scraped"

func gatewaysBoard() (board, error) {
	return board{
		uid: "ordergrid-gateways", title: "OrderGrid / Gateways", from: "now-1h",
		description: "Gateways before a grid: sessions, what is refused, how long an order takes from its client and back.",
		variables:   gridVariables(), annotations: marks(),
		sections: []section{
			{"FIX", fixSessions()},
		},
	}, nil
}

// gatewaySeries selects series of order-gateway.
func gatewaySeries(metric string, more ...string) string {
	return "ordergrid_gateway_" + metric + "{" + strings.Join(append([]string{`namespace=~"$namespace",grid=~"$grid"`}, more...), ",") + "}"
}

// fixSessions is what the listeners for FIX export.
func fixSessions() []*panel {
	const page = "metrics.md#gateways"
	return []*panel{
		lines(6, 7, "Sessions", "FIX sessions that are logged on, beside those in the file and those that a pod takes.").
			ask("{{gateway}} {{pod}}", maxBy("gateway, pod", gatewaySeries("fix_sessions"))).
			ask("{{gateway}} in the file", maxBy("gateway", gatewaySeries("fix_sessions_configured"))).
			ask("{{gateway}} taken by a pod", maxBy("gateway", gatewaySeries("fix_sessions_max"))).
			decimals(0).fromZero().empty(noGateway).docs("Gateways", page),
		lines(6, 7, "Logons refused, by reason", "Within five minutes. UnknownSession, NoLogon, Garbled and Timeout may be of strangers; the others are of counterparties.").
			ask("{{gateway}} {{reason}}", sumBy("gateway, reason", increase(gatewaySeries("fix_logons_refused_total", `reason!~"Closed|Stopping"`)))+" > 0").
			decimals(0).fromZero().empty("no logon is refused").docs("Runbook: logons refused", "runbooks/GatewayLogonsRefused.md"),
		lines(6, 7, "Grid not reached", "Partitions whose primary does not answer a gateway.").
			ask("{{gateway}} {{pod}}", maxBy("gateway, pod", gatewaySeries("grid_partitions_unreachable"))).
			decimals(0).fromZero().empty(noGateway).docs("Runbook: grid unreachable", "runbooks/GatewayGridUnreachable.md"),
		lines(6, 7, "Connections without a session", "Not logged on yet, and closed before anything was read of them.").
			ask("{{gateway}} without a logon", maxBy("gateway", gatewaySeries("fix_connections", `state="unknown"`))).
			ask("{{gateway}} turned away", sumBy("gateway", increase(gatewaySeries("fix_connections_refused_total")))).
			decimals(0).fromZero().empty(noGateway).docs("Strangers at the port", "fix.md#strangers-at-the-port"),
		lines(6, 7, "Order to report", "Time from reading an order to writing its report, replication included.").
			ask("{{gateway}} median", quantile(0.5, gatewaySeries("fix_order_seconds", `fate="accepted"`), "gateway")).
			ask("{{gateway}} 99 %", quantile(0.99, gatewaySeries("fix_order_seconds", `fate="accepted"`), "gateway")).
			unit("s").logarithmic().empty(noOrders).docs("Gateways", page),
		lines(6, 7, "Orders by fate", "Unknown: the session ended, since the grid gave no answers.").
			ask("{{gateway}} {{fate}}", sumBy("gateway, fate", rate(gatewaySeries("fix_order_seconds_count")))).
			unit("ops").fromZero().empty(noOrders).docs("Runbook: outcome unknown", "runbooks/GatewayOutcomeUnknown.md"),
		lines(6, 7, "Messages", "By direction and MsgType (35).").
			ask("{{direction}} {{type}}", sumBy("direction, type", rate(gatewaySeries("fix_messages_total")))+" > 0").
			unit("ops").fromZero().empty(noGateway).docs("Gateways", page),
		lines(6, 7, "Under way, and slow readers", "Orders that the grid has not answered, and connections that ended because they did not read.").
			ask("{{gateway}} {{pod}} under way", maxBy("gateway, pod", gatewaySeries("fix_orders_in_flight"))).
			ask("{{gateway}} slow", sumBy("gateway", increase(gatewaySeries("fix_slow_total")))).
			decimals(0).fromZero().empty(noGateway).docs("Gateways", page),
	}
}
