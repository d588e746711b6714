package htmlreport

import (
	"slices"
	"strings"
	"testing"
)

// The page of stac-timeplot has a plot of each rate and its worst moment, and no curve over rates of different grids.
func TestTimeplotFigures(t *testing.T) {
	rep := build(t, fixture(t, "stac-timeplot", quick()))
	var names []string
	for _, f := range Figures(rep) {
		names = append(names, f.Name)
		if f.Name != "first-seconds" && f.Name != "spikes" {
			continue
		}
		drawn := f.Draw(Wide).Inline()
		for _, want := range []string{"500 orders/s, 2 servers", "2,000 orders/s, 2 servers", "1,000 orders/s, 1 server"} {
			if !strings.Contains(drawn, want) {
				t.Errorf("figure %s has no %q", f.Name, want)
			}
		}
	}
	for name, want := range map[string]bool{"first-seconds": true, "spikes": true, "rates": false, "whole-run": false} {
		if slices.Contains(names, name) != want {
			t.Errorf("figure %s is there: %t, want %t", name, !want, want)
		}
	}
}
