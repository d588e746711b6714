package report

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Range and resolution of every histogram: 1 ns to one hour with three significant digits. An hour
// is beyond any possible backlog of a run, so no value is ever clipped.
const (
	histogramMin    = 1
	histogramMax    = 3_600_000_000_000
	histogramDigits = 3
	// maxEncoded bounds what is decoded from a result, in bytes of base64.
	maxEncoded = 1 << 20
)

// Histogram holds latencies in nanoseconds. Histograms of threads, probes and
// repeats are merged, count by count; percentiles are never averaged. The zero
// value is empty and ready to use.
type Histogram struct{ h *hdrhistogram.Histogram }

func (h *Histogram) hdr() *hdrhistogram.Histogram {
	if h.h == nil {
		h.h = hdrhistogram.New(histogramMin, histogramMax, histogramDigits)
	}
	return h.h
}

// Record adds a latency in nanoseconds. Values out of range count as the
// nearest one in range.
func (h *Histogram) Record(ns int64) {
	// In range it cannot fail.
	_ = h.hdr().RecordValue(min(max(ns, histogramMin), histogramMax))
}

// Merge adds all values of o.
func (h *Histogram) Merge(o Histogram) {
	if o.h != nil {
		h.hdr().Merge(o.h)
	}
}

// Count is the number of values.
func (h Histogram) Count() int64 {
	if h.h == nil {
		return 0
	}
	return h.h.TotalCount()
}

// Mean is in nanoseconds; 0 if empty.
func (h Histogram) Mean() float64 {
	if h.Count() == 0 {
		return 0
	}
	return h.h.Mean()
}

// StdDev is the standard deviation, in nanoseconds; 0 if empty.
func (h Histogram) StdDev() float64 {
	if h.Count() == 0 {
		return 0
	}
	return h.h.StdDev()
}

// BestMean is the mean of the lowest values, share of all of them, in nanoseconds; 0 if empty. It
// ignores the rest.
func (h Histogram) BestMean(share float64) float64 {
	take := int64(share * float64(h.Count()))
	if take < 1 {
		return 0
	}
	sum, left := 0.0, take
	for _, b := range h.h.Distribution() {
		n := min(b.Count, left)
		sum += float64(n) * (float64(b.From) + float64(b.To)) / 2
		if left -= n; left == 0 {
			break
		}
	}
	return sum / float64(take)
}

// Max is the largest value in nanoseconds, to three digits; 0 if empty.
func (h Histogram) Max() int64 {
	if h.Count() == 0 {
		return 0
	}
	return h.h.Max()
}

// Min is the smallest value in nanoseconds, to three digits; 0 if empty.
func (h Histogram) Min() int64 {
	if h.Count() == 0 {
		return 0
	}
	return h.h.Min()
}

// Percentile is in nanoseconds, p from 0 to 100; 0 if empty.
func (h Histogram) Percentile(p float64) int64 {
	if h.Count() == 0 {
		return 0
	}
	return h.h.ValueAtPercentile(p)
}

// Each calls fn for every non-empty range of values, rising; the bounds, in nanoseconds, are
// inclusive.
func (h Histogram) Each(fn func(fromNs, toNs, count int64)) {
	if h.Count() == 0 {
		return
	}
	for _, bar := range h.h.Distribution() {
		if bar.Count > 0 {
			fn(bar.From, bar.To, bar.Count)
		}
	}
}

// MarshalJSON writes the HDR V2 compressed encoding in base64, which every HDR
// histogram tool reads; "" if empty.
func (h Histogram) MarshalJSON() ([]byte, error) {
	if h.Count() == 0 {
		return []byte(`""`), nil
	}
	b, err := h.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encode histogram: %w", err)
	}
	return json.Marshal(string(b)) // Encode answers in base64
}

// UnmarshalJSON reads what MarshalJSON wrote. A histogram of another range or
// resolution is refused: merging it would lose digits.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	if s == "" {
		h.h = nil
		return nil
	}
	if len(s) > maxEncoded {
		return fmt.Errorf("histogram: %d bytes, at most %d are read", len(s), maxEncoded)
	}
	d, err := hdrhistogram.Decode([]byte(s))
	if err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	// The bytes may be anything: take the counts only, range checked.
	if d.SignificantFigures() != histogramDigits || d.LowestTrackableValue() != histogramMin || d.HighestTrackableValue() != histogramMax {
		return fmt.Errorf("histogram: range %d to %d with %d digits, want %d to %d with %d",
			d.LowestTrackableValue(), d.HighestTrackableValue(), d.SignificantFigures(), histogramMin, int64(histogramMax), histogramDigits)
	}
	if d.TotalCount() < 0 {
		return errors.New("histogram: negative count")
	}
	h.h = d
	return nil
}
