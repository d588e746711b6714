package plot

import (
	"bytes"
	"encoding/xml"
	"io"
	"strconv"
	"strings"
)

// SVG writes the drawing as a file of its own, with its colours.
func (d *Drawing) SVG(w io.Writer) error {
	var b bytes.Buffer
	d.open(&b, ` xmlns="http://www.w3.org/2000/svg" width="`+number(d.Width)+`" height="`+number(d.Height)+`"`)
	b.WriteString("<style>" + CSS() + "</style>\n")
	b.WriteString(`<rect class="f-surface" width="` + number(d.Width) + `" height="` + number(d.Height) + `"/>` + "\n")
	d.body(&b)
	_, err := w.Write(b.Bytes())
	return err
}

// Inline is the drawing as an element of a page that has CSS() in its style sheet. All text in it
// is escaped.
func (d *Drawing) Inline() string {
	var b bytes.Buffer
	d.open(&b, "")
	d.body(&b)
	return b.String()
}

func (d *Drawing) open(b *bytes.Buffer, attributes string) {
	b.WriteString(`<svg class="plot" viewBox="0 0 ` + number(d.Width) + " " + number(d.Height) + `" role="img" aria-label="` + escape(d.label()) + `"` + attributes + ">\n")
}

func (d *Drawing) label() string {
	if d.Desc == "" {
		return d.Title
	}
	return d.Title + ". " + d.Desc
}

func (d *Drawing) body(b *bytes.Buffer) {
	for i := range d.items {
		d.items[i].svg(b)
	}
	b.WriteString("</svg>\n")
}

func (it *item) svg(b *bytes.Buffer) {
	if it.text != nil {
		it.text.svg(b)
		return
	}
	var classes []string
	if it.fill != "" {
		classes = append(classes, "f-"+string(it.fill))
	}
	if it.stroke != nil {
		classes = append(classes, "s-"+string(it.stroke.Role))
	}
	b.WriteString(`<path class="` + strings.Join(classes, " ") + `" d="`)
	path(b, it.points, it.fill != "")
	b.WriteByte('"')
	if s := it.stroke; s != nil {
		b.WriteString(` stroke-width="` + number(s.Width) + `"`)
		if len(s.Dash) > 0 {
			b.WriteString(` stroke-dasharray="`)
			for i, v := range s.Dash {
				if i > 0 {
					b.WriteByte(' ')
				}
				b.WriteString(number(v))
			}
			b.WriteByte('"')
		}
	}
	if it.hint == "" {
		b.WriteString("/>\n")
		return
	}
	b.WriteString("><title>" + escape(it.hint) + "</title></path>\n")
}

func path(b *bytes.Buffer, points []Point, closed bool) {
	for i, p := range points {
		switch i {
		case 0:
			b.WriteByte('M')
		case 1:
			b.WriteByte('L')
		default:
			b.WriteByte(' ')
		}
		b.WriteString(number(p.X) + "," + number(p.Y))
	}
	if closed {
		b.WriteByte('Z')
	}
}

func (t *Text) svg(b *bytes.Buffer) {
	b.WriteString(`<text class="f-` + string(t.Role))
	if t.Bold {
		b.WriteString(" bold")
	}
	if t.Halo {
		b.WriteString(" halo")
	}
	b.WriteString(`" x="` + number(t.At.X) + `" y="` + number(t.At.Y) + `" font-size="` + number(t.Size) + `"`)
	if t.Anchor != Start {
		b.WriteString(` text-anchor="` + string(t.Anchor) + `"`)
	}
	b.WriteString(">" + escape(t.Words) + "</text>\n")
}

// number is short: a tenth of a pixel is enough.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	if s = strings.TrimSuffix(s, ".0"); s == "-0" {
		return "0"
	}
	return s
}

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer accepts everything
	return b.String()
}
