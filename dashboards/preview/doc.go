// Package preview sends the queries of dashboards to a Prometheus as Grafana would, and renders a dashboard with the
// answers, similar to Grafana: without a Grafana, and for documentation. It draws only what the dashboards use.
package preview
