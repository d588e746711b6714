package growth

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Size of a plot and of the frame within it, in pixels.
const (
	width, height         = 720, 400
	left, right, top, bot = 78, 150, 44, 52
)

// Readable on white and on black: text takes the reader's colours, the lines are of
// middle brightness and differ in dashes too.
const style = `<style>
text{font:12px system-ui,sans-serif;fill:#24292f}.t{font-size:14px;font-weight:600}.g{stroke:#8886;stroke-width:1}.b{fill:#fff}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.b{fill:#0d1117}}
</style>`

var (
	colours = []string{"#2f81d7", "#d9730d", "#3fa34d", "#c2410c", "#8957e5", "#b5476b"}
	dashes  = []string{"", "6 3", "2 3", "8 3 2 3", "4 4", "1 4"}
)

// SVG writes the curve as a plot: a logarithmic x axis, a y axis from 0, the range
// over the rounds as a bar at each point.
func (c *Curve) SVG(w io.Writer) error {
	lo, hi, most := math.Inf(1), 0.0, 0.0
	for _, s := range c.Series {
		for i := range s.Points {
			lo, hi = min(lo, s.Points[i].X), max(hi, s.Points[i].X)
			_, upper := c.span(&s.Points[i])
			most = max(most, upper, c.Value(&s.Points[i]))
		}
	}
	if hi == 0 {
		return fmt.Errorf("growth/%s has no point", c.Name)
	}
	most = ceiling(most)
	px := func(v float64) float64 {
		if hi == lo {
			return left
		}
		return left + math.Log(v/lo)/math.Log(hi/lo)*(width-left-right)
	}
	py := func(v float64) float64 { return top + (1-v/most)*(height-top-bot) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n", width, height, width, height, html.EscapeString(c.Title))
	b.WriteString(style)
	fmt.Fprintf(&b, "\n"+`<rect class="b" width="%d" height="%d"/><text class="t" x="%d" y="22">%s</text>`+"\n", width, height, left, html.EscapeString(c.Title))
	for i := range 5 {
		v := most * float64(i) / 4
		fmt.Fprintf(&b, `<line class="g" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, py(v), width-right, py(v), left-8, py(v)+4, short(v))
	}
	for _, x := range c.xs() {
		fmt.Fprintf(&b, `<line class="g" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", px(x), top, px(x), height-bot, px(x), height-bot+18, short(x))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text><text x="%d" y="38">%s</text>`+"\n", (left+width-right)/2, height-12, c.Grows, left, c.Unit())
	for n, s := range c.Series {
		c.line(&b, n, &s, px, py)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Curve) line(b *strings.Builder, n int, s *Series, px, py func(float64) float64) {
	colour, dash := colours[n%len(colours)], dashes[n%len(dashes)]
	var path []string
	for i := range s.Points {
		p := &s.Points[i]
		x, y := px(p.X), py(c.Value(p))
		lower, upper := c.span(p)
		path = append(path, fmt.Sprintf("%.1f,%.1f", x, y))
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/><circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x, py(lower), x, py(upper), colour, x, y, colour)
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", strings.Join(path, " "), colour, dash)
	y := top + 16 + 20*n
	fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="2" stroke-dasharray="%s"/><text x="%d" y="%d">%s</text>`+"\n",
		width-right+12, y, width-right+36, y, colour, dash, width-right+42, y+4, html.EscapeString(s.System))
}

// span of a point over the rounds.
func (c *Curve) span(p *Point) (lower, upper float64) {
	if c.Unit() == "orders/s" {
		return p.Row.Min.OrdersPerS, p.Row.Max.OrdersPerS
	}
	return p.Row.Min.P50, p.Row.Max.P50
}

// xs are all values on the x axis, once each.
func (c *Curve) xs() (out []float64) {
	seen := map[float64]bool{}
	for _, s := range c.Series {
		for i := range s.Points {
			if x := s.Points[i].X; !seen[x] {
				seen[x] = true
				out = append(out, x)
			}
		}
	}
	return out
}

// ceiling is the next number of 1, 2, 4, 6, 8 times a power of ten.
func ceiling(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 4, 6, 8} {
		if v <= m*unit {
			return m * unit
		}
	}
	return 10 * unit
}
