// Package histogram counts durations in the buckets of a Prometheus native histogram, in plain
// memory, and exports them in both forms.
package histogram

import (
	"math"
	"runtime/metrics"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// Histogram counts durations for one goroutine: no lock, no allocation, a few
// nanoseconds. Its buckets are those of a Prometheus native histogram of schema
// 3 (8 per power of two, error below 9 %) over seconds, so nothing is converted;
// the classic buckets are every eighth of them.
type Histogram struct {
	counts [octaves * perOctave]uint64
	total  uint64
	sum    float64
}

const (
	schema    = 3
	perOctave = 1 << schema
	minExp    = -30 // first octave: up to 2^-29 s, 1.9 ns
	octaves   = 38  // last octave: up to 2^8 s, 256 s

	// Classic buckets: upper bounds 2^-20 s (0.95 µs) to 2^2 s (4 s).
	classicLow, classicHigh = -20, 2
)

// bounds are the upper bounds within one octave, as math.Frexp gives fractions.
var bounds = func() (b [perOctave]float64) {
	for i := range b {
		b[i] = math.Exp2(float64(i)/perOctave - 1)
	}
	return b
}()

// cells is the number of bounds below each 64th of an octave. At most one bound lies in a
// cell, so that one comparison finds the bucket.
var cells = func() (c [64]uint8) {
	for i := range c {
		for _, b := range bounds {
			if b < 0.5+float64(i)/128 {
				c[i]++
			}
		}
	}
	return c
}()

// Observe counts a duration in nanoseconds; a negative one counts as 0.
func (h *Histogram) Observe(ns int64) { h.ObserveN(ns, 1) }

// ObserveN counts n equal durations.
func (h *Histogram) ObserveN(ns int64, n uint64) {
	s := float64(max(ns, 1)) * 1e-9
	h.counts[slot(s)] += n
	h.total += n
	h.sum += s * float64(n)
}

// slot is the place of s seconds in counts.
func slot(s float64) int {
	bits := math.Float64bits(s)
	exp := int(bits>>52) - 1022 // s = frac * 2^exp, frac in [0.5, 1)
	frac := math.Float64frombits(bits&(1<<52-1) | 1022<<52)
	i := int(cells[bits>>46&63])
	if i < perOctave && frac > bounds[i] {
		i++
	}
	return min(max((exp-minExp-1)*perOctave+i, 0), len(Histogram{}.counts)-1)
}

// Count is the number of observations.
func (h *Histogram) Count() uint64 { return h.total }

// AddRuntime adds a histogram of Go's runtime, each bucket at its upper bound, which is at most a
// quarter above the measured value.
func (h *Histogram) AddRuntime(from *metrics.Float64Histogram) {
	for i, n := range from.Counts {
		bound := from.Buckets[i+1]
		if math.IsInf(bound, 1) {
			bound = from.Buckets[i]
		}
		if n > 0 && bound > 0 {
			h.ObserveN(int64(bound*1e9), n)
		}
	}
}

// Metric exports h to Prometheus, with the values of the labels of d. It reads h when Prometheus
// scrapes: h must not change meanwhile.
func Metric(d *prometheus.Desc, h *Histogram, labels ...string) prometheus.Metric {
	return metric{d, h, prometheus.MakeLabelPairs(d, labels)}
}

// metric is one exported histogram.
type metric struct {
	desc   *prometheus.Desc
	h      *Histogram
	labels []*dto.LabelPair
}

func (m metric) Desc() *prometheus.Desc { return m.desc }

// Write implements prometheus.Metric with both representations.
func (m metric) Write(out *dto.Metric) error {
	h := &dto.Histogram{
		SampleCount: proto.Uint64(m.h.total), SampleSum: proto.Float64(m.h.sum),
		Schema: proto.Int32(schema), ZeroThreshold: proto.Float64(prometheus.DefNativeHistogramZeroThreshold), ZeroCount: proto.Uint64(0),
	}
	m.classic(h)
	m.native(h)
	out.Histogram, out.Label = h, m.labels
	return nil
}

func (m metric) classic(h *dto.Histogram) {
	var sum uint64
	i := 0
	for exp := classicLow; exp <= classicHigh; exp++ {
		// Key k of a native bucket has the upper bound 2^(k/8): include k <= 8*exp.
		for ; i < len(m.h.counts) && key(i) <= exp*perOctave; i++ {
			sum += m.h.counts[i]
		}
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: proto.Float64(math.Exp2(float64(exp))), CumulativeCount: proto.Uint64(sum)})
	}
}

// key is the native bucket index of counts[i].
func key(i int) int { return i + minExp*perOctave }

func (m metric) native(h *dto.Histogram) {
	var last int64
	end := math.MinInt // key after the last one written
	for i, n := range m.h.counts {
		if n == 0 {
			continue
		}
		k := key(i)
		switch {
		case end == math.MinInt:
			h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{Offset: proto.Int32(int32(k)), Length: proto.Uint32(0)})
		case k > end:
			h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{Offset: proto.Int32(int32(k - end)), Length: proto.Uint32(0)})
		}
		*h.PositiveSpan[len(h.PositiveSpan)-1].Length++
		h.PositiveDelta = append(h.PositiveDelta, int64(n)-last)
		last, end = int64(n), k+1
	}
	if len(h.PositiveSpan) == 0 { // marks it as native while it is empty
		h.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}}
	}
}
