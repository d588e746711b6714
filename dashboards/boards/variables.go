package boards

import "github.com/ordergrid/ordergrid/dashboards/grafana"

// dataSourceVariable lets the reader choose among several servers.
func dataSourceVariable() grafana.Variable {
	return grafana.Variable{Name: "datasource", Label: "Prometheus", Type: "datasource", Query: "prometheus", Refresh: 1,
		Current: grafana.Current{Text: "default", Value: "default"}}
}

// choice is a variable with the values of a label, several or all of which may be chosen. All matches any value,
// including an absent label, so that a server that lacks a label shows its data.
func choice(name, label, series string) grafana.Variable {
	query := "label_values(" + series + ", " + name + ")"
	return grafana.Variable{
		Name: name, Label: label, Type: "query", Datasource: &dataSource,
		Query:   grafana.VariableQuery{QueryType: 1, Query: query, RefID: "PrometheusVariableQueryEditor-VariableQuery"},
		Refresh: 2, Sort: 3, Multi: true, IncludeAll: true, AllValue: ".*",
		Current: grafana.Current{Text: []string{"All"}, Value: []string{"$__all"}},
	}
}

// gridVariables choose pods of grids, each limited by the choice before it.
func gridVariables() []grafana.Variable {
	const series = "ordergrid_node_memory_used_bytes"
	return []grafana.Variable{
		dataSourceVariable(),
		choice("namespace", "Namespace", series),
		choice("grid", "Grid", series+`{namespace=~"$namespace"}`),
		choice("shard", "Shard", series+`{namespace=~"$namespace",grid=~"$grid"}`),
		choice("pod", "Pod", series+`{namespace=~"$namespace",grid=~"$grid",shard=~"$shard"}`),
	}
}

// marks are the annotations of every dashboard about grids: events that explain the lines.
func marks() []grafana.Annotation {
	return append([]grafana.Annotation{
		{Name: "Take-overs and other changes of a configuration", Datasource: dataSource, Enable: true, IconColor: "orange", Step: "5s",
			Expr:        "sum by (namespace, grid, partition) (changes(" + node("partition_epoch") + "[$__interval])) > 0",
			TitleFormat: "New epoch of {{partition}}", TextFormat: "{{namespace}}/{{grid}}", TagKeys: "grid,partition"},
	}, drillMarks(`namespace=~"$namespace",grid=~"$grid"`)...)
}

// drillMarks are the annotations of a dashboard that is not about single grids.
func drillMarks(selector string) []grafana.Annotation {
	return []grafana.Annotation{
		{Name: "Faults of drills", Datasource: dataSource, Enable: true, IconColor: "purple", Step: "5s",
			Expr:        "ordergrid_drill_fault_active{" + selector + "} > 0",
			TitleFormat: "{{fault}} ({{type}})", TextFormat: "FailoverDrill {{namespace}}/{{drill}}", TagKeys: "grid,type"},
		{Name: "Annotations of this dashboard", Datasource: grafana.Datasource{Type: "grafana", UID: "-- Grafana --"}, Enable: true, IconColor: "blue", Type: "dashboard", BuiltIn: 1},
	}
}
