package boards

import "github.com/ordergrid/ordergrid/dashboards/grafana"

// docsURL is the base of the pages that panels link to; a test checks every link against the tree.
const docsURL = "https://github.com/ordergrid/ordergrid/blob/main/docs/"

// dataSource is the Prometheus chosen by the reader.
var dataSource = grafana.Datasource{Type: "prometheus", UID: "${datasource}"}

// panel builds one panel. Its constructors are in kinds.go; the methods here apply to all kinds.
type panel struct {
	p      grafana.Panel
	height int
	format string // of the targets
	once   bool   // query the present value only
}

func newPanel(kind string, width, height int, title, description string) *panel {
	return &panel{height: height, format: "time_series", p: grafana.Panel{
		Type: kind, Title: title, Description: description, Datasource: &dataSource,
		GridPos: grafana.GridPos{W: width, H: height},
		FieldConfig: &grafana.FieldConfig{
			Defaults:  grafana.Field{Custom: map[string]any{}, Color: map[string]any{"mode": "palette-classic"}},
			Overrides: []grafana.Override{},
		},
		Options: map[string]any{},
	}}
}

// ask adds a query. The legend is Grafana's: text with {{label}}.
func (p *panel) ask(legend, expr string) *panel {
	p.p.Targets = append(p.p.Targets, grafana.Target{
		Datasource: dataSource, RefID: string(rune('A' + len(p.p.Targets))), Expr: expr, LegendFormat: legend,
		Format: p.format, Range: !p.once, Instant: p.once, EditorMode: "code",
	})
	return p
}

// unit is Grafana's id: s, bytes, reqps, percentunit, short.
func (p *panel) unit(id string) *panel {
	p.p.FieldConfig.Defaults.Unit = id
	return p
}

func (p *panel) decimals(n int) *panel {
	p.p.FieldConfig.Defaults.Decimals = &n
	return p
}

// fromZero begins the y axis at 0.
func (p *panel) fromZero() *panel {
	p.p.FieldConfig.Defaults.Min = new(float64)
	return p
}

func (p *panel) to(highest float64) *panel {
	p.p.FieldConfig.Defaults.Max = &highest
	return p
}

// empty is the text of the panel where there is nothing to show.
func (p *panel) empty(text string) *panel {
	p.p.FieldConfig.Defaults.NoValue = text
	return p
}

// docs links to a page below docs/, such as metrics.md#node.
func (p *panel) docs(title, page string) *panel {
	p.p.Links = append(p.p.Links, grafana.Link{Title: title, Type: "link", Tags: []string{}, URL: docsURL + page, Icon: "doc", TargetBlank: true})
	return p
}

// goal colours values: the first colour up to the first value, and so on.
func (p *panel) goal(first string, rest ...grafana.Step) *panel {
	p.p.FieldConfig.Defaults.Thresholds = &grafana.Thresholds{Mode: "absolute", Steps: append([]grafana.Step{{Color: first}}, rest...)}
	return p
}

// at is a step of goal.
func at(value float64, colour string) grafana.Step { return grafana.Step{Color: colour, Value: &value} }

// words maps values to texts, in the order of the legend.
func (p *panel) words(values ...word) *panel {
	m := grafana.Mapping{Type: "value", Options: map[string]grafana.Mapped{}}
	for i, w := range values {
		m.Options[w.value] = grafana.Mapped{Text: w.text, Color: w.colour, Index: i}
	}
	p.p.FieldConfig.Defaults.Mappings = []grafana.Mapping{m}
	return p
}

type word struct{ value, text, colour string }

// override changes the look of the series whose legend matches a regular expression.
func (p *panel) override(legend string, set ...grafana.Property) *panel {
	p.p.FieldConfig.Overrides = append(p.p.FieldConfig.Overrides, grafana.Override{
		Matcher: grafana.Matcher{ID: "byRegexp", Options: legend}, Properties: set,
	})
	return p
}

// colour fixes the colour of the series whose legend matches.
func (p *panel) colour(legend, colour string) *panel {
	return p.override(legend, grafana.Property{ID: "color", Value: map[string]any{"mode": "fixed", "fixedColor": colour}})
}

// custom sets a property of the kind of panel.
func (p *panel) custom(name string, value any) *panel {
	p.p.FieldConfig.Defaults.Custom[name] = value
	return p
}

func (p *panel) option(name string, value any) *panel {
	p.p.Options[name] = value
	return p
}
