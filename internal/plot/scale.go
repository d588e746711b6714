package plot

import "math"

// Scale maps a value to a position in pixels.
type Scale struct {
	Lo, Hi   float64 // values
	From, To float64 // their positions
	Log      bool
}

// At is the position of a value. Values beyond the ends are clamped.
func (s Scale) At(v float64) float64 {
	v = min(max(v, s.Lo), s.Hi)
	share := 0.0
	switch {
	case s.Hi <= s.Lo:
		share = 0.5
	case s.Log:
		share = math.Log(v/s.Lo) / math.Log(s.Hi/s.Lo)
	default:
		share = (v - s.Lo) / (s.Hi - s.Lo)
	}
	return s.From + share*(s.To-s.From)
}

// Ticks are round values between the ends: about n on a linear scale, the
// decades, or 1, 2 and 5 of each where that are not more than 2n, on a
// logarithmic one.
func (s Scale) Ticks(n int) []float64 {
	if s.Log {
		return s.logTicks(n)
	}
	step := Step((s.Hi - s.Lo) / float64(max(n, 1)))
	if step <= 0 || math.IsInf(step, 0) || math.IsNaN(step) {
		return []float64{s.Lo}
	}
	var out []float64
	for i := math.Ceil(s.Lo/step - 1e-9); i*step <= s.Hi*(1+1e-9); i++ {
		out = append(out, i*step+0) // + 0 turns -0 into 0
	}
	return out
}

func (s Scale) logTicks(n int) []float64 {
	pick := func(factors ...float64) (out []float64) {
		for e := math.Floor(math.Log10(s.Lo)); e <= math.Log10(s.Hi)+1e-9; e++ {
			for _, f := range factors {
				if v := f * math.Pow(10, e); v >= s.Lo*(1-1e-9) && v <= s.Hi*(1+1e-9) {
					out = append(out, v)
				}
			}
		}
		return out
	}
	if t := pick(1, 2, 5); len(t) <= n {
		return t
	}
	return pick(1)
}

// Step is the next of 1, 2, 5 times a power of ten that is v or more.
func Step(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if v <= f*unit*(1+1e-9) {
			return f * unit
		}
	}
	return 10 * unit
}

// LogBounds widens a range to the next 1, 2 or 5 times a power of ten on both
// sides, for a logarithmic scale.
func LogBounds(lo, hi float64) (float64, float64) {
	if lo <= 0 || hi < lo {
		return 1, 10
	}
	top := Step(hi)
	bottom := math.Pow(10, math.Floor(math.Log10(lo)))
	for _, f := range []float64{5, 2} {
		if f*bottom <= lo {
			bottom *= f
			break
		}
	}
	if top <= bottom {
		top = 10 * bottom
	}
	return bottom, top
}

// Spread moves positions apart until neighbours are at least gap from each other, within lo and hi,
// in order. Positions must rise.
func Spread(at []float64, gap, lo, hi float64) []float64 {
	out := make([]float64, len(at))
	for i, v := range at {
		out[i] = max(v, lo)
		if i > 0 {
			out[i] = max(out[i], out[i-1]+gap)
		}
	}
	limit := hi
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = min(out[i], limit)
		limit = out[i] - gap
	}
	return out
}
