package plot

import (
	"fmt"
	"image/color"
	"slices"
	"strings"
)

// palette has the colour of every role, on light and on dark. Words and lines have
// a contrast of at least 4.5 and 3 to the surface (TestContrast); the ranks
// differ in brightness, so that they differ on paper too.
var palette = map[Role][2]uint32{
	Surface:   {0xffffff, 0x12161b},
	Ink:       {0x1b1f24, 0xe8ebef},
	Muted:     {0x57606a, 0x9da7b3},
	Rule:      {0xe1e5ea, 0x2b323a},
	Here:      {0x0b5cad, 0x6cb2ff},
	Soft:      {0xb9d4f1, 0x1f4a78},
	Published: {0x6a5a48, 0xc9b79c},
	Good:      {0x1a6b3c, 0x5fc28e},
	Doubt:     {0x8a5a00, 0xe3b341},
	Bad:       {0xb3261e, 0xff8a80},
	Pause:     {0xf3dfc1, 0x4a3a1e},
	"r0":      {0x5c93c9, 0x3f79b5},
	"r1":      {0x3d7cbb, 0x5a94cf},
	"r2":      {0x2364a6, 0x7bb0e4},
	"r3":      {0x124b86, 0xa3cbf3},
	"r4":      {0x06305c, 0xd3e7fb},
	"k0":      {0x0b5cad, 0x6cb2ff},
	"k1":      {0xb4530a, 0xf0a35e},
	"k2":      {0x1f7a4d, 0x5fc28e},
	"k3":      {0x7a3fa8, 0xc39be8},
	"k4":      {0x8a5a00, 0xe3b341},
	"k5":      {0xa3315f, 0xf08db2},
}

const (
	light = 0
	dark  = 1
)

// CSS has the colours of both themes as custom properties and the classes that
// drawings use. On paper it is always the light theme.
func CSS() string {
	roles := make([]string, 0, len(palette))
	for r := range palette {
		roles = append(roles, string(r))
	}
	slices.Sort(roles)
	var b strings.Builder
	properties := func(theme int) {
		for i, r := range roles {
			if i > 0 {
				b.WriteByte(';')
			}
			fmt.Fprintf(&b, "--%s:#%06x", r, palette[Role(r)][theme])
		}
	}
	b.WriteString(":root{color-scheme:light dark;")
	properties(light)
	b.WriteString("}\n@media screen and (prefers-color-scheme:dark){:root{")
	properties(dark)
	b.WriteString("}}\n")
	for _, r := range roles {
		fmt.Fprintf(&b, ".f-%s{fill:var(--%s)}.s-%s{stroke:var(--%s)}\n", r, r, r, r)
	}
	b.WriteString(`.plot path{stroke-linejoin:round;stroke-linecap:butt}.plot path:not([class*="f-"]){fill:none}
.plot text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}
.plot .bold{font-weight:600}.plot .halo{paint-order:stroke;stroke:var(--surface);stroke-width:4px;stroke-linejoin:round}
`)
	return b.String()
}

func rgb(r Role, theme int) color.RGBA {
	v := palette[r][theme]
	return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 255} //nolint:gosec // bytes of it
}
