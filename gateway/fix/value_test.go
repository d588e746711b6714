package fix

import (
	"testing"
	"time"
)

// Each time that is formatted reads as itself, to the millisecond.
func TestTimestamps(t *testing.T) {
	var s stamper
	for _, ms := range []int64{0, 1, 9, 10, 99, 100, 999, 1000, 59_999, 951_782_399_999, 951_782_400_000, 1_795_442_400_987, 4_102_444_800_001} {
		at := ms*int64(time.Millisecond) + 999_999
		text := s.append(nil, at)
		if want := time.Unix(0, at).UTC().Format("20060102-15:04:05.000"); string(text) != want {
			t.Errorf("%d ms is formatted as %q, expected %q", ms, text, want)
		}
		if got, ok := timestamp(text); !ok || got != ms*int64(time.Millisecond) {
			t.Errorf("%q is read as %d, %t, expected %d ms", text, got, ok, ms)
		}
	}
	for text, want := range map[string]int64{
		"20260228-23:59:60": 1_772_323_200_000_000_000, "20260101-00:00:00.000001": 1_767_225_600_000_001_000,
		"20260101-00:00:00.000000001": 1_767_225_600_000_000_001,
	} {
		if got, ok := timestamp([]byte(text)); !ok || got != want {
			t.Errorf("%q is read as %d, %t, expected %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "20260101", "20260101-24:00:00", "20260101-00:60:00", "20260101-00:00:61", "20260229-00:00:00", "20261301-00:00:00", "20260100-00:00:00",
		"20260101-00:00:00.", "20260101-00:00:00.00", "20260101 00:00:00", "20260101-00.00:00", "2026010a-00:00:00", "20260101-00:00:00.00a", "00000101-00:00:00"} {
		if got, ok := timestamp([]byte(text)); ok {
			t.Errorf("%q is read as %d, expected a refusal", text, got)
		}
	}
}
