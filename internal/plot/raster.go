package plot

import (
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io"
	"math"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// maxPixels bounds each side of the PNG.
const maxPixels = 8192

// PNG writes the drawing as pixels, scale of them for each of the drawing's, in the light theme. It
// needs no browser: the drawing has only lines, areas and text, in the Go fonts.
func (d *Drawing) PNG(w io.Writer, scale float64) error {
	width, height := int(math.Ceil(d.Width*scale)), int(math.Ceil(d.Height*scale))
	if width < 1 || height < 1 || width > maxPixels || height > maxPixels {
		return fmt.Errorf("plot: PNG of %d x %d pixels, each side must be 1 to %d", width, height, maxPixels)
	}
	c := &canvas{image: image.NewRGBA(image.Rect(0, 0, width, height)), scale: scale}
	draw.Draw(c.image, c.image.Bounds(), image.NewUniform(rgb(Surface, light)), image.Point{}, draw.Src)
	for i := range d.items {
		it := &d.items[i]
		switch {
		case it.text != nil:
			if err := c.text(it.text); err != nil {
				return err
			}
		default:
			if it.fill != "" {
				c.fill(it.fill, it.points)
			}
			if it.stroke != nil {
				c.stroke(*it.stroke, it.points)
			}
		}
	}
	return png.Encode(w, c.image)
}

// canvas is a picture being filled.
type canvas struct {
	image *image.RGBA
	scale float64
	// origin is the corner of the part being painted: only the surroundings of a shape are painted,
	// otherwise a drawing of thousands would take minutes.
	origin image.Point
}

// paint fills what trace draws, all of it within reach pixels of the points.
func (c *canvas) paint(role Role, points []Point, reach float64, trace func(*vector.Rasterizer)) {
	if len(points) == 0 {
		return
	}
	low, high := points[0], points[0]
	for _, p := range points {
		low, high = Point{min(low.X, p.X), min(low.Y, p.Y)}, Point{max(high.X, p.X), max(high.Y, p.Y)}
	}
	part := image.Rect(int((low.X-reach)*c.scale)-1, int((low.Y-reach)*c.scale)-1, int((high.X+reach)*c.scale)+2, int((high.Y+reach)*c.scale)+2).Intersect(c.image.Bounds())
	if part.Empty() {
		return
	}
	c.origin = part.Min
	z := vector.NewRasterizer(part.Dx(), part.Dy())
	trace(z)
	z.Draw(c.image, part, image.NewUniform(rgb(role, light)), image.Point{})
}

func (c *canvas) fill(role Role, points []Point) {
	c.paint(role, points, 0, func(z *vector.Rasterizer) { c.polygon(z, points) })
}

func (c *canvas) polygon(z *vector.Rasterizer, points []Point) {
	for i, p := range points {
		x, y := float32(p.X*c.scale-float64(c.origin.X)), float32(p.Y*c.scale-float64(c.origin.Y))
		if i == 0 {
			z.MoveTo(x, y)
		} else {
			z.LineTo(x, y)
		}
	}
	z.ClosePath()
}

// stroke fills a rectangle for each piece of the line and a disc at each joint. All have the same
// orientation: opposite orientations would cut holes into each other.
func (c *canvas) stroke(s Stroke, points []Point) {
	c.paint(s.Role, points, s.Width, func(z *vector.Rasterizer) {
		for _, line := range dashed(points, s.Dash) {
			for i := 0; i+1 < len(line); i++ {
				a, b := line[i], line[i+1]
				dx, dy := b.X-a.X, b.Y-a.Y
				length := math.Hypot(dx, dy)
				if length == 0 {
					continue
				}
				nx, ny := -dy/length*s.Width/2, dx/length*s.Width/2
				c.polygon(z, []Point{{a.X - nx, a.Y - ny}, {b.X - nx, b.Y - ny}, {b.X + nx, b.Y + ny}, {a.X + nx, a.Y + ny}})
				if i > 0 && s.Width > 1 {
					c.polygon(z, Mark{Radius: s.Width / 2}.outline(a))
				}
			}
		}
	})
}

// dashed cuts a line into the pieces that are drawn.
func dashed(points []Point, pattern []float64) [][]Point {
	if len(pattern) == 0 {
		return [][]Point{points}
	}
	var out [][]Point
	on, index, left := true, 0, pattern[0]
	piece := []Point{points[0]}
	for i := 0; i+1 < len(points); i++ {
		a, b := points[i], points[i+1]
		for length := math.Hypot(b.X-a.X, b.Y-a.Y); length > 0; length = math.Hypot(b.X-a.X, b.Y-a.Y) {
			if length <= left {
				left -= length
				piece = append(piece, b)
				break
			}
			a = Point{a.X + (b.X-a.X)*left/length, a.Y + (b.Y-a.Y)*left/length}
			if piece = append(piece, a); on {
				out = append(out, piece)
			}
			on, index = !on, index+1
			piece, left = []Point{a}, max(pattern[index%len(pattern)], 0.5)
		}
	}
	if on && len(piece) > 1 {
		out = append(out, piece)
	}
	return out
}

var fonts = sync.OnceValues(func() ([2]*opentype.Font, error) {
	regular, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return [2]*opentype.Font{}, err
	}
	bold, err := opentype.Parse(gobold.TTF)
	return [2]*opentype.Font{regular, bold}, err
})

func (c *canvas) text(t *Text) error {
	both, err := fonts()
	if err != nil {
		return fmt.Errorf("plot: fonts: %w", err)
	}
	f := both[0]
	if t.Bold {
		f = both[1]
	}
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: t.Size * c.scale, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		return fmt.Errorf("plot: font of size %g: %w", t.Size, err)
	}
	defer func() { _ = face.Close() }() // frees memory only
	x, y := fixed26(t.At.X*c.scale), fixed26(t.At.Y*c.scale)
	switch wide := font.MeasureString(face, t.Words); t.Anchor {
	case Middle:
		x -= wide / 2
	case End:
		x -= wide
	}
	write := func(role Role, dx, dy fixed.Int26_6) {
		pen := font.Drawer{Dst: c.image, Src: image.NewUniform(rgb(role, light)), Face: face, Dot: fixed.Point26_6{X: x + dx, Y: y + dy}}
		pen.DrawString(t.Words)
	}
	if t.Halo {
		for _, step := range [][2]float64{{-1, -1}, {0, -1.5}, {1, -1}, {1.5, 0}, {1, 1}, {0, 1.5}, {-1, 1}, {-1.5, 0}} {
			write(Surface, fixed26(step[0]*c.scale), fixed26(step[1]*c.scale))
		}
	}
	write(t.Role, 0, 0)
	return nil
}

func fixed26(v float64) fixed.Int26_6 { return fixed.Int26_6(math.Round(v * 64)) }
