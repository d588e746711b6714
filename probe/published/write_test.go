package published

import (
	"slices"
	"testing"
)

// The four figures of the report, and what stands around them.
func TestWriteFigures(t *testing.T) {
	d := load(t)
	for _, c := range []struct {
		fields, replicated bool
		us                 float64
	}{{true, false, 290}, {false, false, 270}, {true, true, 690}, {false, true, 630}} {
		if got := d.WriteLatency(c.fields, c.replicated); got.Value != c.us || got.Unit != "us" || got.Table != "prose-1" {
			t.Errorf("fields %t, replicated %t: %+v, want %v us", c.fields, c.replicated, got, c.us)
		}
	}
	if got := d.WriteRoundTrip(); got != 208 {
		t.Errorf("round trip %v us, want 208", got)
	}
	s, _ := d.Scenario(WriteScenario)
	w, err := s.Write()
	if err != nil || w.Clients != 1 || w.Outstanding != 1 || !slices.Equal(w.Rates, []int{100, 500, 1000, 2000}) || w.WarmupS != 1 || w.MeasureS != 4 {
		t.Errorf("%+v, %v", w, err)
	}
	other, _ := d.Scenario("stac-pair")
	if _, err := other.Write(); err == nil {
		t.Error("stac-pair has parameters of a write")
	}
}
