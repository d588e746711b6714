// Package plot draws charts as vectors: one Drawing, written as SVG, which follows the reader's
// light or dark theme, or as PNG where SVG is not supported. The output is deterministic.
//
// Colours are roles, not values: the meaning of a mark determines its look.
package plot

// Point is a place in a drawing, in pixels from its top left corner.
type Point struct{ X, Y float64 }

// Role is the meaning of a mark.
type Role string

// Roles.
const (
	Surface   Role = "surface" // background
	Ink       Role = "ink"
	Muted     Role = "muted" // axes, secondary text
	Rule      Role = "rule"  // grid lines
	Here      Role = "here"  // measured here
	Soft      Role = "soft"  // the same, as an area
	Published Role = "pub"   // published elsewhere
	Good      Role = "good"
	Doubt     Role = "doubt" // not valid
	Bad       Role = "bad"
	Pause     Role = "pause" // a period of standstill
)

// Ranks is how many steps Rank has, Kinds how many roles Kind.
const (
	Ranks = 5
	Kinds = 6
)

// Rank is step i of n of a scale from weak to strong: the same thing at rising rates.
func Rank(i, n int) Role {
	if n > 1 {
		i = (i*(Ranks-1) + (n-1)/2) / (n - 1)
	} else {
		i = Ranks - 1
	}
	return Role("r" + string(rune('0'+min(max(i, 0), Ranks-1))))
}

// Kind is the role of the i-th of several categories.
func Kind(i int) Role { return Role("k" + string(rune('0'+i%Kinds))) }

// dashes distinguish lines where colours cannot, as on paper.
var dashes = [][]float64{nil, {7, 3}, {2, 2.5}, {9, 3, 2, 3}, {4, 4}, {1, 3}}

// Dash is the i-th pattern of a line; the first is solid.
func Dash(i int) []float64 { return dashes[i%len(dashes)] }

// Stroke is how a line is drawn. The width is in pixels.
type Stroke struct {
	Role  Role
	Width float64
	Dash  []float64
}

// Shape of a mark.
type Shape int

// Shapes.
const (
	Circle Shape = iota
	Square
	Triangle
	Diamond
	Cross
	shapes
)

// ShapeOf is the i-th shape that can be filled.
func ShapeOf(i int) Shape { return Shape(i % int(Cross)) }

// Mark is a point with a shape.
type Mark struct {
	Shape  Shape
	Role   Role
	Radius float64
	Hollow bool
}

// Anchor is the side of a text that stands at its place.
type Anchor string

// Anchors.
const (
	Start  Anchor = "start"
	Middle Anchor = "middle"
	End    Anchor = "end"
)

// Text is one line of words. Its place is on the base line.
type Text struct {
	At     Point
	Words  string
	Role   Role // Ink if empty
	Size   float64
	Bold   bool
	Anchor Anchor
	// Halo keeps the words readable over lines.
	Halo bool
}

// Drawing is a picture. Title and Desc are for readers who do not see it.
type Drawing struct {
	Width, Height float64
	Title, Desc   string

	items []item
}

// New begins a drawing.
func New(width, height float64, title string) *Drawing {
	return &Drawing{Width: width, Height: height, Title: title}
}

// item is a line, an area, a mark or a text. Hint is shown when the reader points at it.
type item struct {
	points []Point
	stroke *Stroke
	fill   Role
	text   *Text
	hint   string
}

// Line draws a line through points.
func (d *Drawing) Line(s Stroke, points ...Point) {
	if len(points) > 1 {
		d.items = append(d.items, item{points: points, stroke: &s})
	}
}

// Area fills what points enclose.
func (d *Drawing) Area(fill Role, hint string, points ...Point) {
	if len(points) > 2 {
		d.items = append(d.items, item{points: points, fill: fill, hint: hint})
	}
}

// Rect fills a rectangle.
func (d *Drawing) Rect(fill Role, hint string, x, y, width, height float64) {
	d.Area(fill, hint, Point{x, y}, Point{x + width, y}, Point{x + width, y + height}, Point{x, y + height})
}

// Mark draws a mark.
func (d *Drawing) Mark(m Mark, hint string, at Point) {
	outline := m.outline(at)
	switch {
	case m.Shape == Cross:
		d.Line(Stroke{Role: m.Role, Width: 2}, outline[0], outline[1])
		d.Line(Stroke{Role: m.Role, Width: 2}, outline[2], outline[3])
	case m.Hollow:
		closed := append(outline, outline[0]) //nolint:gocritic // outline is not used again
		d.items = append(d.items, item{points: closed, stroke: &Stroke{Role: m.Role, Width: 1.5}, fill: Surface, hint: hint})
	default:
		d.items = append(d.items, item{points: outline, fill: m.Role, hint: hint})
	}
}

func (m Mark) outline(at Point) []Point {
	r := m.Radius
	corner := func(xy ...float64) (out []Point) {
		for i := 0; i < len(xy); i += 2 {
			out = append(out, Point{at.X + r*xy[i], at.Y + r*xy[i+1]})
		}
		return out
	}
	switch m.Shape {
	case Square:
		return corner(-.9, -.9, .9, -.9, .9, .9, -.9, .9)
	case Triangle:
		return corner(0, -1.15, 1.1, .85, -1.1, .85)
	case Diamond:
		return corner(0, -1.25, 1.25, 0, 0, 1.25, -1.25, 0)
	case Cross:
		return corner(-1, -1, 1, 1, -1, 1, 1, -1)
	default: // a circle, as twelve sides: at this size they are invisible
		const c, s = 0.866, 0.5
		return corner(1, 0, c, s, s, c, 0, 1, -s, c, -c, s, -1, 0, -c, -s, -s, -c, 0, -1, s, -c, c, -s)
	}
}

// Text writes words.
func (d *Drawing) Text(t Text) {
	if t.Words == "" {
		return
	}
	if t.Role == "" {
		t.Role = Ink
	}
	if t.Size == 0 {
		t.Size = 12
	}
	if t.Anchor == "" {
		t.Anchor = Start
	}
	d.items = append(d.items, item{text: &t})
}

// Titled moves everything down and adds a title and a subtitle.
func (d *Drawing) Titled(title, below string) *Drawing {
	const room = 54
	out := &Drawing{Width: d.Width, Height: d.Height + room + 8, Title: d.Title, Desc: d.Desc}
	out.Text(Text{At: Point{8, 22}, Words: title, Size: 17, Bold: true})
	out.Text(Text{At: Point{8, 40}, Words: below, Role: Muted})
	for _, it := range d.items {
		points := make([]Point, len(it.points))
		for i, p := range it.points {
			points[i] = Point{p.X, p.Y + room}
		}
		it.points = points
		if it.text != nil {
			t := *it.text
			t.At.Y += room
			it.text = &t
		}
		out.items = append(out.items, it)
	}
	return out
}

// TextWidth is the approximate width of text in pixels: of the widest common system font.
func TextWidth(words string, size float64) float64 {
	n := 0.0
	for _, r := range words {
		switch r {
		case ' ', '.', ',', ':', 'i', 'l', 'j', '|', '\'':
			n += 0.36
		case 'm', 'M', 'w', 'W', '%':
			n += 0.95
		default:
			n += 0.63
		}
	}
	return n * size
}

// Fit cuts words that are wider than width.
func Fit(words string, size, width float64) string {
	r := []rune(words)
	for n := len(r); n > 0; n-- {
		s := string(r[:n])
		if n < len(r) {
			s += "…"
		}
		if TextWidth(s, size) <= width {
			return s
		}
	}
	return ""
}
