package preview

import (
	"bytes"
	"image/png"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/dashboards/grafana"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// answers gives every query of a dashboard the same series.
func answers(d *grafana.Dashboard, samples ...Sample) (out []Answer) {
	for i := range d.Panels {
		p := &d.Panels[i]
		for _, q := range p.Targets {
			a := Answer{Dashboard: d, Panel: p, Title: p.Title, Legend: q.LegendFormat}
			if len(samples) > 0 {
				a.Series = []Series{{Labels: map[string]string{"pod": "rtd-s0-0", "partition": "p0"}, Samples: samples}}
			}
			out = append(out, a)
		}
	}
	return out
}

// TestPages: every dashboard can be drawn with figures, without any, and with NaN; the texts of empty panels are
// present.
func TestPages(t *testing.T) {
	boards, err := Load(filepath.Join(envtest.Root(), "dashboards"))
	if err != nil {
		t.Fatal(err)
	}
	w := Window{From: time.Unix(1000, 0), To: time.Unix(1060, 0), Step: 2 * time.Second, Scrape: time.Second}
	buckets := []Bucket{{Low: -1, High: 0, Count: 1}, {Low: 1e-5, High: 2e-5, Count: 10}, {Low: 2e-5, High: 4e-5, Count: 0}}
	for name, samples := range map[string][]Sample{
		"figures": {{At: time.Unix(1010, 0), Value: 1, Histogram: buckets}, {At: time.Unix(1012, 0), Value: 2, Histogram: buckets}},
		"nothing": nil, "no numbers": {{At: time.Unix(1010, 0), Value: math.NaN()}, {At: time.Unix(1012, 0), Value: math.Inf(1)}},
		"zero": {{At: time.Unix(1010, 0), Value: 0}},
	} {
		for _, d := range boards {
			var svg, picture bytes.Buffer
			page := Page(d, answers(d, samples...), w)
			if err := page.SVG(&svg); err != nil {
				t.Fatalf("%s, %s: %v", d.Title, name, err)
			}
			if err := page.PNG(&picture, 0.5); err != nil {
				t.Fatalf("%s, %s: %v", d.Title, name, err)
			}
			if _, err := png.Decode(&picture); err != nil {
				t.Fatalf("%s, %s: %v", d.Title, name, err)
			}
			if strings.Contains(svg.String(), "NaN") || strings.Contains(svg.String(), "Inf") {
				t.Errorf("%s, %s: a position that is not a number", d.Title, name)
			}
			for _, p := range d.Panels {
				if text := p.FieldConfig; name == "nothing" && text != nil && text.Defaults.NoValue != "" && !strings.Contains(svg.String(), text.Defaults.NoValue) {
					t.Errorf("%s: %q does not contain %q", d.Title, p.Title, text.Defaults.NoValue)
				}
			}
		}
	}
}

func TestUnits(t *testing.T) {
	none := 0
	for _, test := range []struct {
		unit     string
		decimals *int
		value    float64
		want     string
	}{
		{"s", nil, 0.000245, "245 us"}, {"s", nil, 0, "0 s"}, {"s", nil, 1.5, "1.5 s"}, {"s", nil, 3e-10, "0.3 ns"}, {"ops", &none, 12345.6, "12,346/s"},
		{"percentunit", &none, 0.995, "100%"}, {"percentunit", nil, 0.123, "12.3%"}, {"bytes", nil, 1 << 20, "1 MiB"}, {"Bps", nil, 0, "0 B/s"},
		{"short", nil, -1234, "-1,234"}, {"", nil, 0.5, "0.5"}, {"s", nil, math.NaN(), "-"},
	} {
		if got := inUnit(test.unit, test.decimals, test.value); got != test.want {
			t.Errorf("%v in %q: %q, want %q", test.value, test.unit, got, test.want)
		}
	}
}
