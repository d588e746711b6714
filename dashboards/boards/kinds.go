package boards

import "github.com/ordergrid/ordergrid/dashboards/grafana"

// lastValue reduces a series to a number.
var lastValue = map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}

// number is one large figure over the line of its history.
func number(width int, title, description string) *panel {
	p := newPanel("stat", width, 4, title, description)
	p.p.FieldConfig.Defaults.Color = map[string]any{"mode": "thresholds"}
	p.goal("blue")
	for name, value := range map[string]any{
		"reduceOptions": lastValue, "colorMode": "value", "graphMode": "area", "textMode": "auto", "justifyMode": "auto", "orientation": "auto",
		"wideLayout": true, "showPercentChange": false, "percentChangeColorMode": "standard",
	} {
		p.option(name, value)
	}
	return p
}

// lamp is a figure on a coloured background: green, or a warning.
func lamp(width int, title, description string) *panel {
	p := number(width, title, description)
	p.once = true
	return p.option("colorMode", "background").option("graphMode", "none")
}

// lines are values over time.
func lines(width, height int, title, description string) *panel {
	p := newPanel("timeseries", width, height, title, description)
	for name, value := range map[string]any{
		"drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 1, "fillOpacity": 8, "gradientMode": "none", "showPoints": "never",
		"spanNulls": false, "axisPlacement": "auto", "axisLabel": "", "scaleDistribution": map[string]any{"type": "linear"},
		"stacking": map[string]any{"mode": "none", "group": "A"}, "thresholdsStyle": map[string]any{"mode": "off"},
	} {
		p.custom(name, value)
	}
	p.option("tooltip", map[string]any{"mode": "multi", "sort": "desc"})
	p.option("legend", map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}})
	return p
}

// logarithmic draws the y axis in powers of ten.
func (p *panel) logarithmic() *panel {
	return p.custom("scaleDistribution", map[string]any{"type": "log", "log": 10}).custom("fillOpacity", 0)
}

// stacked puts the series on top of each other.
func (p *panel) stacked() *panel {
	return p.custom("stacking", map[string]any{"mode": "normal", "group": "A"}).custom("fillOpacity", 40)
}

// table lists the series beside their last and greatest value.
func (p *panel) table() *panel {
	return p.option("legend", map[string]any{"displayMode": "table", "placement": "right", "showLegend": true, "calcs": []string{"lastNotNull", "max"}})
}

// limit draws the thresholds of goal as dashed lines.
func (p *panel) limit() *panel {
	return p.custom("thresholdsStyle", map[string]any{"mode": "dashed"})
}

// heatmap draws a histogram over time: native buckets, or classic ones with the label le.
func heatmap(width, height int, title, description string) *panel {
	p := newPanel("heatmap", width, height, title, description)
	p.format = "heatmap"
	p.custom("scaleDistribution", map[string]any{"type": "linear"}).custom("hideFrom", map[string]any{"legend": false, "tooltip": false, "viz": false})
	for name, value := range map[string]any{
		"calculate": false, "cellGap": 0, "showValue": "never",
		"color":        map[string]any{"mode": "scheme", "scheme": "Turbo", "steps": 64, "exponent": 0.5, "fill": "dark-orange", "scale": "exponential", "reverse": false},
		"yAxis":        map[string]any{"axisPlacement": "left", "unit": "s", "reverse": false},
		"rowsFrame":    map[string]any{"layout": "auto"},
		"filterValues": map[string]any{"le": 1e-9},
		"exemplars":    map[string]any{"color": "rgba(255,0,255,0.7)"},
		"legend":       map[string]any{"show": true},
		"tooltip":      map[string]any{"mode": "single", "yHistogram": true, "showColorScale": true},
	} {
		p.option(name, value)
	}
	return p
}

// states draws one bar over time per series, with the texts and colours of its values.
func states(width, height int, title, description string) *panel {
	p := newPanel("state-timeline", width, height, title, description)
	p.p.FieldConfig.Defaults.Color = map[string]any{"mode": "thresholds"}
	p.goal("text").custom("fillOpacity", 80).custom("lineWidth", 0)
	for name, value := range map[string]any{
		"showValue": "never", "rowHeight": 0.85, "mergeValues": true, "alignValue": "left",
		"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
		"tooltip": map[string]any{"mode": "single", "sort": "none"},
	} {
		p.option(name, value)
	}
	return p
}

// rowsOf is a table of present values: one row per label set, one column per query, headed by the query's legend.
func rowsOf(width, height int, title, description string) *panel {
	p := newPanel("table", width, height, title, description)
	p.format, p.once = "table", true
	p.p.FieldConfig.Defaults.Color = map[string]any{"mode": "thresholds"}
	p.goal("text").custom("align", "auto").custom("cellOptions", map[string]any{"type": "auto"}).custom("filterable", true)
	p.option("showHeader", true).option("cellHeight", "sm")
	return p
}

// join makes one table of the queries' answers and heads each column with its query's legend.
func (p *panel) join() *panel {
	names := map[string]any{}
	for _, t := range p.p.Targets {
		names["Value #"+t.RefID] = t.LegendFormat
	}
	if len(p.p.Targets) == 1 {
		names = map[string]any{"Value": p.p.Targets[0].LegendFormat}
	}
	p.p.Transformations = []grafana.Transformation{
		{ID: "merge", Options: map[string]any{}},
		{ID: "organize", Options: map[string]any{"excludeByName": map[string]any{"Time": true}, "indexByName": map[string]any{}, "renameByName": names}},
	}
	return p
}
