package order

import (
	"fmt"
	"strings"
	"testing"
)

// message is one of the fields of a body.
func message(version string, fields []string) []byte {
	body := strings.Join(fields, "\x01") + "\x01"
	m := fmt.Appendf(nil, "8=%s\x019=%d\x01%s", version, len(body), body)
	return fmt.Appendf(m, "10=%03d\x01", CheckSum(m))
}

// TestSmallestOrder shows how short a valid order can be: every value has one byte where
// the type of the field allows that, and no field can be left out. So benchmarks cannot
// have orders of 64 bytes; docs/performance.md quotes the sizes.
func TestSmallestOrder(t *testing.T) {
	common := []string{"35=D", "49=A", "56=B", "34=1", "52=20261121-09:30:00", "11=1", "55=A", "54=1", "60=20261121-09:30:00", "38=1", "40=1"}
	for _, c := range []struct {
		version string
		fields  []string
		size    int
	}{
		{"FIX.4.2", append(common[:len(common):len(common)], "21=1"), smallest42},
		{"FIX.4.4", common, smallest44},
		{"FIXT.1.1", common, smallest44 + 1},
	} {
		var o Order
		m := message(c.version, c.fields)
		if err := Parse(m, &o); err != nil || len(m) != c.size {
			t.Errorf("%s: %d bytes, want %d; %v", c.version, len(m), c.size, err)
		}
		for i, f := range c.fields {
			without := append(append([]string(nil), c.fields[:i]...), c.fields[i+1:]...)
			if err := Parse(message(c.version, without), &o); err == nil {
				t.Errorf("%s: %s can be left out", c.version, f)
			}
			tag, value, _ := strings.Cut(f, "=")
			shorter := append([]string(nil), c.fields...)
			shorter[i] = tag + "=" + value[:len(value)-1]
			if err := Parse(message(c.version, shorter), &o); err == nil {
				t.Errorf("%s: %s can be shorter", c.version, f)
			}
		}
	}
}

const (
	smallest42 = 114
	smallest44 = 109
)
