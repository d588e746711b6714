package results

import (
	"fmt"
	"math"
)

// GrowthVerdict reports whether a cost grows faster than the logarithm of n.
//
// Two questions, both with the measured points (n, cost):
//
//  1. Did it grow at all? No, if the cost at the largest n is at most 15 % above
//     that at the smallest: less is within the noise.
//  2. Is a curve that grows faster a better description? Lines cost = a + b*f(n) are
//     fitted by least squares, with f the logarithm, and with f = n^(1/4), n^(1/2) and
//     n. It is worse than logarithmic if one of the powers leaves less than half the
//     squared error of the logarithm, and the largest n costs over 5 % more than
//     the logarithm's line says.
//
// Fewer than four points prove nothing.
type GrowthVerdict struct {
	Worse  bool
	Points int
	Grown  float64 // cost at the largest n : cost at the smallest
	Above  float64 // cost at the largest n : what the logarithm's line says
	Best   string  // description with the least error
}

const (
	minPoints   = 4
	noise       = 1.15 // growth that is none
	missed      = 1.05 // above the logarithm's line at the largest n
	clearlyLess = 0.5  // of the squared error
)

// JudgeGrowth looks at costs at growing n.
func JudgeGrowth(n, cost []float64) (GrowthVerdict, error) {
	if len(n) != len(cost) || len(n) < minPoints {
		return GrowthVerdict{Points: len(n)}, fmt.Errorf("%d points, needed: %d or more", len(n), minPoints)
	}
	last := len(n) - 1
	v := GrowthVerdict{Points: len(n), Grown: cost[last] / cost[0], Best: "log n"}
	line, least := fit(n, cost, math.Log)
	logarithm := least
	v.Above = cost[last] / line(n[last])
	for _, p := range []struct {
		name string
		of   float64
	}{{"n^(1/4)", 0.25}, {"n^(1/2)", 0.5}, {"n", 1}} {
		if _, e := fit(n, cost, func(x float64) float64 { return math.Pow(x, p.of) }); e < least {
			least, v.Best = e, p.name
		}
	}
	v.Worse = v.Grown > noise && v.Above > missed && least < clearlyLess*logarithm
	return v, nil
}

// fit is the line a + b*f(n) through the points with the least squared error.
func fit(n, y []float64, f func(float64) float64) (line func(float64) float64, squares float64) {
	var sx, sy, sxx, sxy float64
	k := float64(len(n))
	for i := range n {
		x := f(n[i])
		sx, sy, sxx, sxy = sx+x, sy+y[i], sxx+x*x, sxy+x*y[i]
	}
	b := 0.0
	if d := k*sxx - sx*sx; d != 0 {
		b = (k*sxy - sx*sy) / d
	}
	a := (sy - b*sx) / k
	line = func(x float64) float64 { return a + b*f(x) }
	for i := range n {
		e := y[i] - line(n[i])
		squares += e * e
	}
	return line, squares
}

// String is one line.
func (v GrowthVerdict) String() string {
	if v.Worse {
		return fmt.Sprintf("WORSE than logarithmic: cost %.2fx from the smallest to the largest, %.2fx what a line in log n says; %s fits best", v.Grown, v.Above, v.Best)
	}
	if v.Grown <= noise {
		return fmt.Sprintf("does not grow: cost %.2fx from the smallest to the largest", v.Grown)
	}
	return fmt.Sprintf("no worse than logarithmic: cost %.2fx from the smallest to the largest, %.2fx what a line in log n says", v.Grown, v.Above)
}

// Verdicts of a curve of orders held, by system; empty for other curves.
func (c *Curve) Verdicts() (out map[string]GrowthVerdict, err error) {
	if c.Grows != grows["held"] {
		return nil, nil
	}
	out = map[string]GrowthVerdict{}
	for _, s := range c.Series {
		var n, cost []float64
		for i := range s.Points {
			n, cost = append(n, s.Points[i].X), append(cost, c.Cost(&s.Points[i]))
		}
		if out[s.System], err = JudgeGrowth(n, cost); err != nil {
			return out, fmt.Errorf("growth/%s, %s: %w", c.Name, s.System, err)
		}
	}
	return out, nil
}
