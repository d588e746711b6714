package htmlreport

import "slices"

func least(v []float64) float64 { return slices.Min(v) }

func most(v []float64) float64 { return slices.Max(v) }

// unique values, rising.
func unique(v []float64) []float64 {
	out := slices.Clone(v)
	slices.Sort(out)
	return slices.Compact(out)
}
