package preview

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/dashboards/grafana"
	"github.com/ordergrid/ordergrid/internal/plot"
)

// table joins the answers as Grafana's transformation "merge" does: one row per set of labels, one column per query.
func (pg *page) table(p *grafana.Panel, answers []Answer, in box) {
	var labels, heads []string
	rows := map[string]map[string]string{}
	var order []string
	for _, a := range answers {
		if !hidden(p, a.Legend) {
			heads = append(heads, a.Legend)
		}
		for _, s := range a.Series {
			key := keyOf(s.Labels)
			if rows[key] == nil {
				rows[key] = map[string]string{}
				order = append(order, key)
			}
			for name, v := range s.Labels {
				if name == "__name__" {
					continue
				}
				if !slices.Contains(labels, name) {
					labels = append(labels, name)
				}
				rows[key][name] = v
			}
			if !strings.HasSuffix(a.Legend, "here/published") {
				rows[key][a.Legend] = text(p, last(s))
			} else {
				rows[key][a.Legend] = inUnit("short", nil, last(s))
			}
		}
	}
	slices.Sort(labels)
	slices.Sort(order)
	heads = append(labels, heads...)
	widths := make([]float64, len(heads))
	total := 0.0
	for i, h := range heads {
		widths[i] = plot.TextWidth(h, 11.5)
		for _, r := range rows {
			widths[i] = max(widths[i], plot.TextWidth(r[h], 11.5))
		}
		widths[i] += 16
		total += widths[i]
	}
	for i := range widths {
		widths[i] *= min(1.6, in.w/total)
	}
	pg.tableRow(heads, widths, in.x, in.y+10, plot.Muted)
	for i, key := range order {
		y := in.y + 10 + float64(i+1)*20
		if y > in.y+in.h {
			break
		}
		pg.Line(plot.Stroke{Role: plot.Rule, Width: 1}, plot.Point{X: in.x, Y: y - 14}, plot.Point{X: in.x + in.w, Y: y - 14})
		cells := make([]string, len(heads))
		for j, h := range heads {
			cells[j] = rows[key][h]
		}
		pg.tableRow(cells, widths, in.x, y, plot.Ink)
	}
}

func (pg *page) tableRow(cells []string, widths []float64, x, y float64, colour plot.Role) {
	for i, c := range cells {
		pg.Text(plot.Text{At: plot.Point{X: x, Y: y}, Words: fit(c, widths[i]-6, 11.5), Role: colour, Size: 11.5})
		x += widths[i]
	}
}

func keyOf(labels map[string]string) string {
	var parts []string
	for k, v := range labels {
		if k != "__name__" {
			parts = append(parts, k+"="+v)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// hidden columns carry no information, such as a 1 in every row.
func hidden(p *grafana.Panel, column string) bool {
	for _, o := range p.FieldConfig.Overrides {
		if ok, err := regexp.MatchString(o.Matcher.Options, column); err != nil || !ok {
			continue
		}
		for _, set := range o.Properties {
			if set.ID == "custom.hidden" && set.Value == true {
				return true
			}
		}
	}
	return false
}
