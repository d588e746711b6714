package histogram

import (
	"fmt"
	"maps"
	"math"

	dto "github.com/prometheus/client_model/go"
)

// Native is a scraped native histogram: positive observations only, as durations are.
type Native struct {
	Schema int32
	Count  uint64
	Sum    float64
	counts map[int]uint64 // by key: a bucket's upper bound is 2^(key / 2^Schema)
}

// FromScrape reads a native histogram. It refuses one with buckets of another kind.
func FromScrape(h *dto.Histogram) (*Native, error) {
	if h.GetSchema() < -4 || h.GetSchema() > 8 {
		return nil, fmt.Errorf("histogram: schema is %d, allowed: -4 to 8", h.GetSchema())
	}
	n := &Native{Schema: h.GetSchema(), Count: h.GetSampleCount(), Sum: h.GetSampleSum(), counts: map[int]uint64{}}
	key, at, count := 0, 0, int64(0)
	deltas := h.GetPositiveDelta()
	for _, span := range h.GetPositiveSpan() {
		key += int(span.GetOffset())
		for range span.GetLength() {
			if at >= len(deltas) {
				return nil, fmt.Errorf("histogram: %d buckets, its spans need more", len(deltas))
			}
			if count += deltas[at]; count < 0 {
				return nil, fmt.Errorf("histogram: bucket %d is %d, allowed: 0 or more", at, count)
			}
			n.counts[key] += uint64(count)
			key, at = key+1, at+1
		}
	}
	return n, nil
}

// Clone is an independent copy.
func (n *Native) Clone() *Native {
	c := *n
	c.counts = maps.Clone(n.counts)
	return &c
}

// Sub subtracts an earlier reading of the same histogram. After a restart there is nothing in
// common: it then does not change.
func (n *Native) Sub(before *Native) {
	if before == nil || before.Schema != n.Schema || before.Count > n.Count {
		return
	}
	for k, c := range before.counts {
		n.counts[k] -= min(c, n.counts[k])
	}
	n.Count -= before.Count
	n.Sum -= before.Sum
}

// Add adds another histogram of the same schema.
func (n *Native) Add(other *Native) error {
	if n.counts == nil {
		n.Schema, n.counts = other.Schema, map[int]uint64{}
	}
	if n.Schema != other.Schema {
		return fmt.Errorf("histogram: schema is %d, allowed: %d, of the one it is added to", other.Schema, n.Schema)
	}
	for k, c := range other.counts {
		n.counts[k] += c
	}
	n.Count += other.Count
	n.Sum += other.Sum
	return nil
}

// Quantile is the value below which the share q of observations lies, interpolated
// within its bucket as Prometheus does; NaN without observations.
func (n *Native) Quantile(q float64) float64 {
	total, low, high := uint64(0), math.MaxInt, math.MinInt
	for k, c := range n.counts {
		if c > 0 {
			total, low, high = total+c, min(low, k), max(high, k)
		}
	}
	if total == 0 {
		return math.NaN()
	}
	rank, below := q*float64(total), 0.0
	perOctave := math.Exp2(float64(n.Schema))
	for k := low; k < high; k++ {
		c := float64(n.counts[k])
		if c > 0 && below+c >= rank {
			return math.Exp2((float64(k-1) + (rank-below)/c) / perOctave)
		}
		below += c
	}
	return math.Exp2((float64(high-1) + (rank-below)/float64(n.counts[high])) / perOctave)
}
