// Package grafana has the part of Grafana's dashboard JSON that OrderGrid's dashboards use, as Go types. Field names
// and values are Grafana's own, from schema version 39 (Grafana 10.4) on; missing fields take Grafana's defaults.
package grafana

// SchemaVersion of the JSON. Grafana migrates older dashboards when it loads them, and refuses none.
const SchemaVersion = 39

// Dashboard is one file.
type Dashboard struct {
	UID           string      `json:"uid"`
	Title         string      `json:"title"`
	Description   string      `json:"description"`
	Tags          []string    `json:"tags"`
	SchemaVersion int         `json:"schemaVersion"`
	Editable      bool        `json:"editable"`
	GraphTooltip  int         `json:"graphTooltip"` // 1: the crosshair is shared by all panels
	Refresh       string      `json:"refresh"`
	Time          TimeRange   `json:"time"`
	Timezone      string      `json:"timezone"`
	Links         []Link      `json:"links"`
	Templating    Templating  `json:"templating"`
	Annotations   Annotations `json:"annotations"`
	Panels        []Panel     `json:"panels"`
}

// TimeRange as Grafana writes it, such as now-1h.
type TimeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Link stands in the head of a dashboard or of a panel: a drop-down of the dashboards with Tags, or a URL.
type Link struct {
	Title       string   `json:"title"`
	Type        string   `json:"type"` // dashboards or link
	Tags        []string `json:"tags"`
	URL         string   `json:"url"`
	Icon        string   `json:"icon"`
	Tooltip     string   `json:"tooltip"`
	AsDropdown  bool     `json:"asDropdown"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
	TargetBlank bool     `json:"targetBlank"`
}

// Templating holds the variables.
type Templating struct {
	List []Variable `json:"list"`
}

// Variable is a choice in the head of a dashboard.
type Variable struct {
	Name       string      `json:"name"`
	Label      string      `json:"label"`
	Type       string      `json:"type"` // datasource or query
	Datasource *Datasource `json:"datasource,omitempty"`
	Query      any         `json:"query"` // the plugin's name, or a VariableQuery
	Regex      string      `json:"regex,omitempty"`
	Refresh    int         `json:"refresh"` // 1: when loaded, 2: when the time range changes
	Sort       int         `json:"sort,omitempty"`
	Multi      bool        `json:"multi"`
	IncludeAll bool        `json:"includeAll"`
	AllValue   string      `json:"allValue,omitempty"`
	Current    Current     `json:"current"`
	Hide       int         `json:"hide"`
}

// VariableQuery asks Prometheus for the values of a label.
type VariableQuery struct {
	QueryType int    `json:"qryType"` // 1: label_values
	Query     string `json:"query"`
	RefID     string `json:"refId"`
}

// Current value of a variable. Text and Value are a string, or a list where several may be chosen.
type Current struct {
	Text  any `json:"text"`
	Value any `json:"value"`
}

// Datasource names where a query goes.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Annotations are the vertical marks in all panels over time.
type Annotations struct {
	List []Annotation `json:"list"`
}

// Annotation is one kind of mark: from a query of Prometheus (Expr), or those posted to Grafana with Tags.
type Annotation struct {
	Name        string     `json:"name"`
	Datasource  Datasource `json:"datasource"`
	Enable      bool       `json:"enable"`
	Hide        bool       `json:"hide"`
	IconColor   string     `json:"iconColor"`
	Type        string     `json:"type,omitempty"`
	BuiltIn     int        `json:"builtIn,omitempty"`
	Expr        string     `json:"expr,omitempty"`
	Step        string     `json:"step,omitempty"`
	TitleFormat string     `json:"titleFormat,omitempty"`
	TextFormat  string     `json:"textFormat,omitempty"`
	TagKeys     string     `json:"tagKeys,omitempty"`
}
