// Package boards describes OrderGrid's Grafana dashboards, one file each. `go run ./dashboards/cmd/generate` writes them as
// JSON; queries name the metrics of docs/metrics.md, which a test checks.
package boards

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/ordergrid/ordergrid/dashboards/grafana"
)

// board is a dashboard: sections of panels, filled from left to right into rows of 24 columns.
type board struct {
	uid, title, description string
	from                    string // time shown when opened, such as now-30m
	variables               []grafana.Variable
	annotations             []grafana.Annotation
	sections                []section
}

// section is a headline and its panels. Without a title it has no headline.
type section struct {
	title  string
	panels []*panel
}

const columns = 24

// File is one dashboard as written.
type File struct {
	Name string // overview.json
	Data []byte
}

// Files are all dashboards.
func Files() ([]File, error) {
	var files []File
	for _, b := range []struct {
		name string
		make func() (board, error)
	}{
		{"overview", overview}, {"latency", latency}, {"replication", replication}, {"downstream", downstreamBoard}, {"gateways", gatewaysBoard}, {"queries", queriesBoard}, {"exchange", exchangeBoard}, {"probes", probes}, {"operator", operatorBoard},
	} {
		described, err := b.make()
		if err != nil {
			return nil, fmt.Errorf("dashboard %s: %w", b.name, err)
		}
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(described.dashboard()); err != nil {
			return nil, fmt.Errorf("dashboard %s: %w", b.name, err)
		}
		files = append(files, File{b.name + ".json", out.Bytes()})
	}
	return files, nil
}

func (b *board) dashboard() *grafana.Dashboard {
	d := &grafana.Dashboard{
		UID: b.uid, Title: b.title, Description: b.description, Tags: []string{"ordergrid"}, SchemaVersion: grafana.SchemaVersion,
		Editable: true, GraphTooltip: 1, Refresh: "10s", Time: grafana.TimeRange{From: b.from, To: "now"}, Timezone: "browser",
		Links: []grafana.Link{
			{Title: "OrderGrid", Type: "dashboards", Tags: []string{"ordergrid"}, Icon: "external link", AsDropdown: true, IncludeVars: true, KeepTime: true},
			{Title: "Documentation", Type: "link", Tags: []string{}, URL: docsURL + "dashboards.md", Icon: "doc", Tooltip: "What each dashboard answers", TargetBlank: true},
		},
		Templating:  grafana.Templating{List: b.variables},
		Annotations: grafana.Annotations{List: b.annotations},
	}
	x, y, id := 0, 0, 0
	for _, s := range b.sections {
		if s.title != "" {
			id++
			open := false
			d.Panels = append(d.Panels, grafana.Panel{ID: id, Type: "row", Title: s.title, Collapsed: &open, GridPos: grafana.GridPos{H: 1, W: columns, Y: y}})
			y++
		}
		lowest := 0
		for _, p := range s.panels {
			if x+p.p.GridPos.W > columns {
				x, y, lowest = 0, y+lowest, 0
			}
			id++
			placed := p.p
			placed.ID, placed.GridPos.X, placed.GridPos.Y = id, x, y
			d.Panels = append(d.Panels, placed)
			x, lowest = x+placed.GridPos.W, max(lowest, p.height)
		}
		x, y = 0, y+lowest
	}
	return d
}
