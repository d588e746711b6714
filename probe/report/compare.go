package report

import (
	"fmt"
	"math"

	"github.com/ordergrid/ordergrid/probe/published"
)

const stac = "stac"

// table is the place of the published figures of a latency. The reports key their rows by total
// rate in some tables and by rate per probe in others.
type table struct {
	name  string
	total bool // rows are keyed by the total rate of the pair's two probes
}

// tables of merged figures, by scenario, pairs and latency. There are no
// published send-to-end figures but those of two servers.
func publishedTable(scenario string, pairs int, latency string) (table, bool) {
	type key struct {
		scenario string
		pairs    int
		latency  string
	}
	t, ok := map[key]table{
		{"stac-single", 0, "c2e"}: {"3-2", false}, // one probe: total is per probe
		{"stac-pair", 0, "c2e"}:   {"3-5", true},
		{"stac-knee", 0, "c2e"}:   {"3-5", true},
		{"stac-knee", 0, "s2e"}:   {"A-2srv-S2E", true},
		{"stac-pair", 0, "s2e"}:   {"A-2srv-S2E", true},
		{"stac-scale", 1, "c2e"}:  {"A-2srv-C2E", true},
		{"stac-scale", 1, "s2e"}:  {"A-2srv-S2E", true},
		{"stac-scale", 2, "c2e"}:  {"A-4srv-C2E", false},
		{"stac-scale", 3, "c2e"}:  {"A-6srv-C2E", false},
	}[key{scenario, pairs, latency}]
	return t, ok
}

// runTable is the table of figures of single probes and runs.
func runTable(scenario string, pairs int, probe string) (string, bool) {
	if len(probe) != 1 || probe[0] < 'A' || probe[0] > 'F' {
		return "", false
	}
	pair := []string{"AB", "CD", "EF"}[(probe[0]-'A')/2]
	switch {
	case scenario == "stac-single" && probe == "A":
		return "A-1srv-C2E-runs", true
	case scenario == "stac-pair" && pair == "AB", scenario == "stac-scale" && pairs == 1 && pair == "AB":
		return "A-2srv-C2E-AB", true
	case scenario == "stac-scale" && (pairs == 2 && pair != "EF" || pairs == 3):
		return fmt.Sprintf("A-%dsrv-C2E-%s", 2*pairs, pair), true
	}
	return "", false
}

// Published is a figure of a report next to one of ours.
type Published struct {
	Value float64 `json:"value"`
	Table string  `json:"table"`
	Row   string  `json:"row"`
	// SameRate is false when the report has no row at this rate: the figure is
	// that of the nearest rate, shown for orientation and never compared. A report
	// that names no rate has the same row at all.
	SameRate bool `json:"sameRate"`

	doNotJudge bool
	differs    bool // it is of something else, or a quotient already: no ratio
	notes      []string
}

// lookup finds the published figure at a rate, or at the nearest one.
func lookup(d *published.Data, t table, column string, ratePerProbe int) *Published {
	tab, ok := d.Table(stac, t.name)
	if !ok || column == "" {
		return nil
	}
	want := float64(ratePerProbe)
	if t.total {
		want *= 2
	}
	best, distance := 0.0, math.Inf(1)
	for _, row := range tab.Rows {
		key := row[tab.Columns[0]]
		if !key.IsNumber() || key.Number <= 0 {
			continue
		}
		if d := math.Abs(math.Log(key.Number / want)); d < distance {
			best, distance = key.Number, d
		}
	}
	c, ok := d.Cell(stac, t.name, best, column)
	if !ok {
		return nil
	}
	p := &Published{Value: c.Value, Table: c.Table, Row: c.Row, SameRate: best == want, doNotJudge: c.DoNotJudge}
	for _, n := range c.Notes {
		p.notes = append(p.notes, n.Finding+" (here: "+n.Action+")")
	}
	if !p.SameRate {
		p.notes = append(p.notes, fmt.Sprintf("no published row at this rate; table %s's nearest, %s orders/s, is shown and not compared", t.name, thousands(best)))
	}
	return p
}
