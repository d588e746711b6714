package numtext_test

import (
	"testing"

	"github.com/ordergrid/ordergrid/internal/numtext"
)

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999.4: "999", 999.5: "1,000", 6000: "6,000", 1234567: "1,234,567", -0.4: "0", -1000: "-1,000"} {
		if got := numtext.Thousands(v); got != want {
			t.Errorf("Thousands(%v) = %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{8.314: "8.31", 9.996: "10.0", 83.14: "83.1", 99.96: "100", 831.4: "831", 8314: "8,314"} {
		if got := numtext.Short(v); got != want {
			t.Errorf("Short(%v) = %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 0.25: "0.25 µs", 50: "50 µs", 999.4: "999 µs", 1000: "1 ms", 12345: "12.3 ms", 2e6: "2 s"} {
		if got := numtext.Micros(v); got != want {
			t.Errorf("Micros(%v) = %q, want %q", v, got, want)
		}
	}
}
