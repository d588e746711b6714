package plot

import (
	"bytes"
	"image/png"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestTicks(t *testing.T) {
	for name, c := range map[string]struct {
		scale Scale
		n     int
		want  []float64
	}{
		"linear":            {Scale{Lo: 0, Hi: 10}, 5, []float64{0, 2, 4, 6, 8, 10}},
		"not from 0":        {Scale{Lo: 4.2, Hi: 5.1}, 4, []float64{4.5, 5}},
		"below 0":           {Scale{Lo: -0.1, Hi: 1}, 2, []float64{0, 1}},
		"logarithmic":       {Scale{Lo: 50, Hi: 2000, Log: true}, 8, []float64{50, 100, 200, 500, 1000, 2000}},
		"many decades":      {Scale{Lo: 1, Hi: 1e5, Log: true}, 8, []float64{1, 10, 100, 1000, 1e4, 1e5}},
		"nothing in it":     {Scale{Lo: 3, Hi: 3}, 4, []float64{3, 4}[:1]},
		"between two ticks": {Scale{Lo: 1.1, Hi: 1.9, Log: true}, 4, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.scale.Ticks(c.n)
			if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9*math.Abs(b)+1e-12 }) {
				t.Errorf("ticks %v, want %v", got, c.want)
			}
			for _, v := range got {
				if math.Signbit(v) && v == 0 {
					t.Error("a tick is -0")
				}
			}
		})
	}
}

func TestScaleStaysInItsFrame(t *testing.T) {
	for _, s := range []Scale{{Lo: 1, Hi: 100, From: 10, To: 20, Log: true}, {Lo: 0, Hi: 1, From: 20, To: 10}, {Lo: 5, Hi: 5, From: 10, To: 20}} {
		for _, v := range []float64{-1, 0, 0.5, 1, 50, 100, 1e9, math.Inf(1)} {
			if at := s.At(v); math.IsNaN(at) || at < 10 || at > 20 {
				t.Errorf("%+v puts %v at %v", s, v, at)
			}
		}
	}
}

func TestLogBounds(t *testing.T) {
	for _, c := range [][4]float64{{84, 1530, 50, 2000}, {100, 1000, 100, 1000}, {0, 5, 1, 10}, {7, 7, 5, 10}, {5, 5, 5, 50}} {
		if lo, hi := LogBounds(c[0], c[1]); math.Abs(lo-c[2]) > 1e-9 || math.Abs(hi-c[3]) > 1e-9 {
			t.Errorf("bounds of %v to %v are %v to %v, want %v to %v", c[0], c[1], lo, hi, c[2], c[3])
		}
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct{ at, want []float64 }{
		{[]float64{10, 50}, []float64{10, 50}},
		{[]float64{10, 12, 14}, []float64{10, 25, 40}},
		{[]float64{95, 99}, []float64{85, 100}},
		{nil, []float64{}},
	} {
		if got := Spread(c.at, 15, 0, 100); !slices.Equal(got, c.want) {
			t.Errorf("spread of %v is %v, want %v", c.at, got, c.want)
		}
	}
}

func sample() *Drawing {
	d := New(200, 100, "a <b> & c")
	f := d.Frame(20, 10, 180, 80, Scale{Lo: 0, Hi: 10}, Scale{Lo: 1, Hi: 100, Log: true})
	f.AxisY(f.Y.Ticks(3), func(float64) string { return "y" })
	f.AxisX(f.X.Ticks(3), func(float64) string { return "x" })
	f.Line(Stroke{Role: Here, Width: 2, Dash: Dash(1)}, f.At(0, 1), f.At(5, 10), f.At(10, 100))
	f.Rect(Soft, "<hint>", 40, 40, 20, 20)
	for s := range shapes {
		d.Mark(Mark{Shape: s, Role: Kind(int(s)), Radius: 4, Hollow: s == Square}, "", Point{30 + 12*float64(s), 20})
	}
	f.Labels(150, []Label{{Words: "\x00\xff<script>", Role: Bad, Y: 30, Bold: true}, {Words: "b", Role: Good, Y: 31}})
	return d
}

func TestSVGEscapes(t *testing.T) {
	var b bytes.Buffer
	if err := sample().SVG(&b); err != nil {
		t.Fatal(err)
	}
	s := b.String()
	for _, bad := range []string{"<script", "<b>", "<hint>", "\x00", "\xff", "NaN"} {
		if strings.Contains(s, bad) {
			t.Errorf("the SVG has %q in it", bad)
		}
	}
	for _, want := range []string{"&lt;script&gt;", `aria-label="a &lt;b&gt; &amp; c"`, "<title>&lt;hint&gt;</title>", `role="img"`} {
		if !strings.Contains(s, want) {
			t.Errorf("the SVG does not have %q", want)
		}
	}
	var again bytes.Buffer
	if err := sample().SVG(&again); err != nil || again.String() != s {
		t.Errorf("the same drawing, another file (%v)", err)
	}
}

func TestPNGHasWhatIsDrawn(t *testing.T) {
	var b bytes.Buffer
	if err := sample().PNG(&b, 2); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if size := img.Bounds().Size(); size.X != 400 || size.Y != 200 {
		t.Errorf("%v pixels, want 400 x 200", size)
	}
	at := func(x, y int) Role {
		r, g, bl, _ := img.At(x, y).RGBA()
		for role := range palette {
			if c := rgb(role, light); uint32(c.R) == r>>8 && uint32(c.G) == g>>8 && uint32(c.B) == bl>>8 {
				return role
			}
		}
		return ""
	}
	if got := at(2, 2); got != Surface {
		t.Errorf("a corner is %q, want the surface", got)
	}
	if got := at(100, 115); got != Soft {
		t.Errorf("the rectangle is %q, want %q", got, Soft)
	}
	ink := 0
	for x := 300; x < 400; x++ {
		for y := 40; y < 100; y++ {
			if at(x, y) == Bad {
				ink++
			}
		}
	}
	if ink < 20 {
		t.Errorf("%d pixels of the label are in its colour: the text is missing", ink)
	}
	for _, scale := range []float64{0, -1, 1000} {
		if err := sample().PNG(&b, scale); err == nil {
			t.Errorf("scale %v was accepted", scale)
		}
	}
}

func TestDashed(t *testing.T) {
	line := []Point{{0, 0}, {10, 0}, {10, 10}}
	total := 0.0
	for _, piece := range dashed(line, []float64{3, 2}) {
		for i := 0; i+1 < len(piece); i++ {
			total += math.Hypot(piece[i+1].X-piece[i].X, piece[i+1].Y-piece[i].Y)
		}
	}
	if math.Abs(total-12) > 1e-9 { // 20 long, 3 of every 5
		t.Errorf("dashes are %v long together, want 12", total)
	}
}

// Text is readable and lines are visible, on light and on dark; ranks differ in brightness, so that
// they differ without colour.
func TestContrast(t *testing.T) {
	luminance := func(r Role, theme int) float64 {
		c := rgb(r, theme)
		part := func(v uint8) float64 {
			s := float64(v) / 255
			if s <= 0.03928 {
				return s / 12.92
			}
			return math.Pow((s+0.055)/1.055, 2.4)
		}
		return 0.2126*part(c.R) + 0.7152*part(c.G) + 0.0722*part(c.B)
	}
	contrast := func(a, b Role, theme int) float64 {
		x, y := luminance(a, theme)+0.05, luminance(b, theme)+0.05
		return max(x, y) / min(x, y)
	}
	words := []Role{Ink, Muted, Here, Published, Good, Doubt, Bad}
	for i := range Kinds {
		words = append(words, Kind(i))
	}
	for theme, name := range []string{light: "light", dark: "dark"} {
		for _, r := range words {
			if c := contrast(r, Surface, theme); c < 4.5 {
				t.Errorf("%s: words in %q have a contrast of %.2f, want 4.5", name, r, c)
			}
		}
		for i := range Ranks {
			r := Rank(i, Ranks)
			if c := contrast(r, Surface, theme); c < 3 {
				t.Errorf("%s: a line in %q has a contrast of %.2f, want 3", name, r, c)
			}
			if i > 0 {
				if c := contrast(r, Rank(i-1, Ranks), theme); c < 1.25 {
					t.Errorf("%s: %q beside the rank before has a contrast of %.2f, want 1.25", name, r, c)
				}
			}
		}
	}
}

func TestFit(t *testing.T) {
	if got := Fit("short", 12, 100); got != "short" {
		t.Errorf("%q", got)
	}
	if got := Fit("a rather long line of words", 12, 60); TextWidth(got, 12) > 60 || !strings.HasSuffix(got, "…") {
		t.Errorf("%q", got)
	}
	if got := Fit("x", 12, 1); got != "" {
		t.Errorf("%q", got)
	}
}
