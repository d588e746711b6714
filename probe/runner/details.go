package runner

import (
	"math"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/probe/load"
	"github.com/ordergrid/ordergrid/probe/report"
)

// measured is the records of the measured part of a step, selected by intended time.
type measured struct {
	orders   []load.Order
	first    int64             // index in the run of orders[0]
	intended func(i int) int64 // of orders[i], on the scale of clock.Now
	begin    int64             // of the measured part, on the same scale
	length   time.Duration     // of the measured part
}

// The latencies of a record.
const (
	lag = iota
	intendedToEnd
	createToEnd
	sendToEnd
	latencyCount
)

// moment sums latencies exactly: a histogram rounds to three digits.
type moment struct {
	n        int64
	mean, m2 float64
	min, max int64
}

func (m *moment) add(ns int64) {
	if m.n == 0 || ns < m.min {
		m.min = ns
	}
	m.max = max(m.max, ns)
	m.n++
	d := float64(ns) - m.mean
	m.mean += d / float64(m.n)
	m.m2 += d * (float64(ns) - m.mean)
}

func (m *moment) stdDev() float64 {
	if m.n == 0 {
		return 0
	}
	return math.Sqrt(m.m2 / float64(m.n))
}

func (m *moment) stats(h report.Histogram) report.Stats {
	s := h.Stats()
	s.MeanUs, s.StdDevUs = micro(m.mean), micro(m.stdDev())
	s.MinUs, s.MaxUs = micro(float64(m.min)), micro(float64(m.max))
	return s
}

// micro is microseconds with one decimal: a result has a size limit, and clocks are not more
// precise.
func micro(ns float64) float64 { return math.Round(ns/100) / 10 }

// milli is milliseconds with three decimals.
func milli(ns int64) float64 { return math.Round(float64(ns)/1000) / 1000 }

const (
	// firstPart is the range of the published time plots, in firstBucket.
	firstPart   = 3 * time.Second
	firstBucket = 50 * time.Millisecond
	// wholeBuckets is how many buckets the whole measured part has at most.
	wholeBuckets = 120
)

// wholeWidth is the narrowest of the usual widths that gives few enough buckets.
func wholeWidth(length time.Duration) time.Duration {
	widths := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 12 * time.Minute}
	for _, w := range widths {
		if length <= wholeBuckets*w {
			return w
		}
	}
	return (length + wholeBuckets - 1) / wholeBuckets
}

// series puts the records into buckets of intended time.
func (m *measured) series() *report.Series {
	whole := wholeWidth(m.length)
	return &report.Series{
		FirstBucketMs: milli(int64(firstBucket)), WholeBucketMs: milli(int64(whole)),
		First: m.buckets(firstBucket, firstPart), Whole: m.buckets(whole, m.length),
	}
}

func (m *measured) buckets(width, until time.Duration) (out []report.Bucket) {
	var c2e, s2e []int64
	at := int64(0) // index of the bucket being filled
	flush := func() {
		if len(c2e) > 0 {
			out = append(out, report.Bucket{AtMs: milli(at * int64(width)), Orders: int64(len(c2e)), CreateToEnd: moments(c2e), SendToEnd: moments(s2e)})
		}
		c2e, s2e = c2e[:0], s2e[:0]
	}
	for i := range m.orders {
		o := &m.orders[i]
		since := m.intended(i) - m.begin
		if since >= int64(until) {
			break
		}
		if o.Fate != load.Acked {
			continue
		}
		if n := since / int64(width); n != at {
			flush()
			at = n
		}
		c2e, s2e = append(c2e, o.T3-o.T1), append(s2e, o.T3-o.T2)
	}
	flush()
	return out
}

// moments of the values, which are sorted.
func moments(ns []int64) report.Moments {
	slices.Sort(ns)
	sum := 0.0
	for _, v := range ns {
		sum += float64(v)
	}
	at := func(p float64) float64 { // nearest rank, as the histograms have it
		return micro(float64(ns[max(0, int(math.Ceil(p*float64(len(ns))))-1)]))
	}
	return report.Moments{MeanUs: micro(sum / float64(len(ns))), P50Us: at(0.5), P99Us: at(0.99), MaxUs: micro(float64(ns[len(ns)-1]))}
}
