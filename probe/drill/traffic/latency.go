package traffic

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Sixteen buckets for every power of two: a quantile is at most a sixteenth too high. This is for
// display; judges use the records.
const (
	perOctave = 16
	buckets   = 40 * perOctave // up to a quarter of an hour
)

// latencies counts without a lock.
type latencies [buckets]atomic.Int64

// Latencies are counts by bucket at one moment.
type Latencies [buckets]int64

func bucketOf(ns int64) int {
	if ns < perOctave {
		return int(max(ns, 0))
	}
	octave := bits.Len64(uint64(ns)) - 5 // of the leading five bits the first is 1
	return min((octave+1)*perOctave+int(ns>>octave)-perOctave, buckets-1)
}

// bound is the highest value of a bucket.
func bound(i int) int64 {
	if i < perOctave {
		return int64(i)
	}
	octave := i/perOctave - 1
	return int64(i%perOctave+perOctave+1)<<octave - 1
}

func (l *latencies) observe(ns int64) { l[bucketOf(ns)].Add(1) }

func (l *latencies) read() (out Latencies) {
	for i := range l {
		out[i] = l[i].Load()
	}
	return out
}

// Since is the difference to an earlier reading.
func (l *Latencies) Since(before *Latencies) (out Latencies) {
	for i := range l {
		out[i] = l[i] - before[i]
	}
	return out
}

// Quantile is at least the q-quantile and at most a sixteenth more; 0 without observations.
func (l *Latencies) Quantile(q float64) time.Duration {
	all := int64(0)
	for _, n := range l {
		all += n
	}
	rank, seen := int64(q*float64(all)+0.999999), int64(0)
	for i, n := range l {
		if seen += n; n > 0 && seen >= rank {
			return time.Duration(bound(i))
		}
	}
	return 0
}
