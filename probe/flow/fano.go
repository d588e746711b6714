package flow

import (
	"math"
	"time"
)

// Fano measures burstiness: the variance of the number of events in a window
// of time over its mean. Evenly spaced events have 0, a Poisson process 1 at
// every window, bursts more, and the more the longer the window if bursts
// cluster again. Times must not fall.
type Fano struct {
	window    int64
	end       int64 // of the present window
	count     int64
	n         int64 // whole windows
	sum, sum2 float64
	peak      int64
}

// NewFano begins at from with windows of the given length.
func NewFano(from int64, window time.Duration) Fano {
	return Fano{window: int64(window), end: from + int64(window)}
}

// Add adds the time of the next event; one before the start is ignored.
func (f *Fano) Add(at int64) {
	if at < f.end-f.window {
		return
	}
	f.Close(at)
	f.count++
}

// Close ends all windows that end by to.
func (f *Fano) Close(to int64) {
	for f.end <= to {
		f.n++
		f.sum += float64(f.count)
		f.sum2 += float64(f.count) * float64(f.count)
		f.peak = max(f.peak, f.count)
		f.count = 0
		f.end += f.window
	}
}

// minWindows is the least number for a meaningful factor.
const minWindows = 20

// Value is the factor over all whole windows; false with fewer than 20.
func (f *Fano) Value() (float64, bool) {
	if f.n < minWindows || f.sum == 0 {
		return 0, false
	}
	mean := f.sum / float64(f.n)
	return math.Max(0, f.sum2/float64(f.n)/mean-mean), true
}

// Peak is the largest number of events in a whole window.
func (f *Fano) Peak() int64 { return f.peak }
