package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"hash/fnv"
	"io"
)

// Measures of the picture, in pixels.
const (
	width     = 1200
	margin    = 8
	rowHeight = 17
	titleRow  = 26
	charWidth = 6.6 // of the font below, about
	minWidth  = 0.4 // a narrower box is not drawn, nor what it called
)

// draw writes the tree with its root at the bottom.
func draw(w io.Writer, root *callNode, title string) error {
	rows := depth(root, scale(root))
	height := titleRow + rows*rowHeight + margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="monospace" font-size="11">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/><text x="%d" y="17" font-size="13">%s</text>`+"\n", width, height, margin, escape(title))
	p := painter{out: &b, total: root.Value, scale: scale(root), bottom: height - margin - rowHeight}
	p.box(root, margin, 0)
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// scale is pixels per unit of the profile.
func scale(root *callNode) float64 {
	return float64(width-2*margin) / float64(max(root.Value, 1))
}

func depth(n *callNode, scale float64) int {
	if float64(n.Value)*scale < minWidth {
		return 0
	}
	d := 0
	for _, c := range n.Children {
		d = max(d, depth(c, scale))
	}
	return d + 1
}

type painter struct {
	out    *bytes.Buffer
	total  int64
	scale  float64
	bottom int
}

func (p *painter) box(n *callNode, x float64, row int) {
	w := float64(n.Value) * p.scale
	if w < minWidth {
		return
	}
	y := p.bottom - row*rowHeight
	fmt.Fprintf(p.out, `<g><title>%s: %.2f %%</title><rect x="%.1f" y="%d" width="%.1f" height="%d" rx="1" fill="%s"/>`,
		escape(n.Name), 100*float64(n.Value)/float64(max(p.total, 1)), x, y, max(w-0.5, 0.3), rowHeight-1, colour(n.Name))
	if text := fit(n.Name, w); text != "" {
		fmt.Fprintf(p.out, `<text x="%.1f" y="%d">%s</text>`, x+2, y+12, escape(text))
	}
	p.out.WriteString("</g>\n")
	for _, c := range n.Children {
		p.box(c, x, row+1)
		x += float64(c.Value) * p.scale
	}
}

// fit cuts a name to what a box of w pixels has room for.
func fit(name string, w float64) string {
	n := int((w - 4) / charWidth)
	switch {
	case n < 3:
		return ""
	case len(name) <= n:
		return name
	}
	return name[:n-2] + ".."
}

// colour is the same for the same function in every graph.
func colour(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	v := h.Sum32()
	return fmt.Sprintf("#%02x%02x%02x", 215+v%40, 120+v>>8%90, 60+v>>16%60)
}

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes everything
	return b.String()
}
