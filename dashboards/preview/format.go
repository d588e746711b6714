package preview

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ordergrid/ordergrid/dashboards/grafana"
)

// text of a value in the panel's unit.
func text(p *grafana.Panel, v float64) string {
	for _, m := range p.FieldConfig.Defaults.Mappings {
		if w, ok := m.Options[strconv.FormatFloat(v, 'f', -1, 64)]; ok {
			return w.Text
		}
	}
	return inUnit(p.FieldConfig.Defaults.Unit, p.FieldConfig.Defaults.Decimals, v)
}

func inUnit(unit string, decimals *int, v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	fixed := func(v float64) string {
		if decimals != nil {
			return thousands(strconv.FormatFloat(v, 'f', *decimals, 64))
		}
		return significant(v)
	}
	switch unit {
	case "s":
		return scaled(v, []string{"ns", "us", "ms", "s"}, []float64{1e-9, 1e-6, 1e-3, 1})
	case "percentunit":
		return fixed(v*100) + "%"
	case "bytes", "Bps":
		t := scaled(v, []string{"B", "KiB", "MiB", "GiB"}, []float64{1, 1 << 10, 1 << 20, 1 << 30})
		if unit == "Bps" {
			t += "/s"
		}
		return t
	case "ops", "reqps":
		return fixed(v) + "/s"
	}
	return fixed(v)
}

// scaled writes v in the largest unit that is not above it. Units rise.
func scaled(v float64, names []string, of []float64) string {
	if v == 0 {
		if names[0] == "B" {
			return "0 B"
		}
		return "0 s"
	}
	i := len(of) - 1
	for i > 0 && math.Abs(v) < of[i] {
		i--
	}
	return significant(v/of[i]) + " " + names[i]
}

// significant has three digits and no trailing zeros.
func significant(v float64) string {
	if math.Abs(v) >= 1000 {
		return thousands(strconv.FormatFloat(v, 'f', 0, 64))
	}
	t := fmt.Sprintf("%.3g", v)
	if strings.Contains(t, "e") {
		return t
	}
	if strings.Contains(t, ".") {
		t = strings.TrimRight(strings.TrimRight(t, "0"), ".")
	}
	return t
}

func thousands(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	whole := strings.IndexByte(digits+".", '.')
	for i := whole - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
