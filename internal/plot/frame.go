package plot

import "slices"

// Frame is a rectangle of a drawing with two scales.
type Frame struct {
	*Drawing
	X, Y                     Scale
	Left, Top, Right, Bottom float64
}

// Frame lays scales over the rectangle. Y grows upwards.
func (d *Drawing) Frame(left, top, right, bottom float64, x, y Scale) *Frame {
	x.From, x.To, y.From, y.To = left, right, bottom, top
	return &Frame{Drawing: d, X: x, Y: y, Left: left, Top: top, Right: right, Bottom: bottom}
}

// At is the place of two values.
func (f *Frame) At(x, y float64) Point { return Point{f.X.At(x), f.Y.At(y)} }

// AxisY draws rules across the frame with a label at the left of each.
func (f *Frame) AxisY(ticks []float64, label func(float64) string) {
	for _, v := range ticks {
		y := f.Y.At(v)
		f.Line(Stroke{Role: Rule, Width: 1}, Point{f.Left, y}, Point{f.Right, y})
		f.Text(Text{At: Point{f.Left - 7, y + 4}, Words: label(v), Role: Muted, Size: 11.5, Anchor: End})
	}
}

// AxisX draws the base line with a tick and a label for each value. Labels that would touch the
// previous one are left out.
func (f *Frame) AxisX(ticks []float64, label func(float64) string) {
	f.Line(Stroke{Role: Muted, Width: 1}, Point{f.Left, f.Bottom}, Point{f.Right, f.Bottom})
	end := -1e9
	for _, v := range ticks {
		x := f.X.At(v)
		f.Line(Stroke{Role: Muted, Width: 1}, Point{x, f.Bottom}, Point{x, f.Bottom + 4})
		words := label(v)
		half := TextWidth(words, 11.5) / 2
		at := min(x, f.Width-2-half) // the last one may not have room on its right
		if at-half < end+6 {
			continue
		}
		end = at + half
		f.Text(Text{At: Point{at, f.Bottom + 17}, Words: words, Role: Muted, Size: 11.5, Anchor: Middle})
	}
}

// Label is a name beside the end of a line.
type Label struct {
	Words string
	Role  Role
	Y     float64 // where the line ends, in pixels
	Bold  bool
}

// LabelRoom is how much of a drawing's width Labels needs for names.
func LabelRoom(names ...string) float64 {
	room := 0.0
	for _, n := range names {
		room = max(room, 1.13*TextWidth(n, 12)) // bold is wider
	}
	return room + 17
}

// Labels writes names at x, one below the other, each as near as possible to its line, with a thin
// leader where it had to move.
func (f *Frame) Labels(x float64, labels []Label) {
	slices.SortStableFunc(labels, func(a, b Label) int {
		switch {
		case a.Y < b.Y:
			return -1
		case a.Y > b.Y:
			return 1
		}
		return 0
	})
	at := make([]float64, len(labels))
	for i, l := range labels {
		at[i] = l.Y
	}
	at = Spread(at, 15, f.Top, f.Bottom+2)
	for i, l := range labels {
		f.Line(Stroke{Role: Rule, Width: 1}, Point{x, l.Y}, Point{x + 8, at[i]})
		f.Text(Text{At: Point{x + 11, at[i] + 4}, Words: l.Words, Role: l.Role, Size: 12, Bold: l.Bold, Halo: true})
	}
}
