package load

import (
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
)

// stopCheck bounds how long a pacer sleeps without checking its stop flag.
const stopCheck = int64(50 * time.Millisecond)

// Pace creates orders 0..n-1 at start+s.Offset(i), start on the scale of
// clock.Now. create is called once for every order, in order, never early, and
// must neither block nor allocate; its argument t1 is when the order was
// really created.
//
// After a stall the orders that fell due are created at once, one after the other, each keeping its
// intended time: none is skipped and none is moved, so the stall is fully visible in
// intended-to-end latency and in the schedule lag.
//
// Run returns how many orders it created, fewer than n only if stop was set.
// The caller must have called clock.Thread on this goroutine.
func Pace(s Schedule, start, n int64, stop *atomic.Bool, create func(i, t1 int64)) int64 {
	for i := int64(0); i < n; i++ {
		intended := start + s.Offset(i)
		for wait := intended - stopCheck; clock.Now() < wait; {
			clock.SleepUntil(min(wait, clock.Now()+stopCheck))
			if stop.Load() {
				return i
			}
		}
		clock.SleepUntil(intended)
		if stop.Load() {
			return i
		}
		create(i, clock.Now())
	}
	return n
}
