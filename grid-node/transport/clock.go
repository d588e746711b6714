package transport

import "time"

// Clock gives the time of the current wake-up. Mono counts suspended time too
// (CLOCK_BOOTTIME on Linux), so a lease cannot outlive a suspended machine.
//
// Reading CLOCK_BOOTTIME costs a real system call in Go, reading the monotonic clock does
// not. So a wake-up reads the monotonic clock and adds the suspended time seen at the last
// Tick; Exact asks the kernel, for decisions that must not miss a suspension.
type Clock struct {
	start time.Time
	off   int64 // CLOCK_BOOTTIME minus time since start
	mono  int64
	wall  int64
	woke  time.Time // start of the current wake-up
}

func newClock() *Clock {
	c := &Clock{start: time.Now()}
	c.Exact()
	return c
}

// Mono returns the time of the current wake-up in nanoseconds since boot; it never goes
// back.
func (c *Clock) Mono() int64 { return c.mono }

// Wall returns the wall clock of the current wake-up in Unix nanoseconds.
func (c *Clock) Wall() int64 { return c.wall }

// Exact rereads the clocks, suspended time included, and returns Mono.
func (c *Clock) Exact() int64 {
	now := time.Now()
	c.off = bootNanos(now.Sub(c.start)) - int64(now.Sub(c.start))
	return c.set(now)
}

// fine returns the current Mono, within a wake-up.
func (c *Clock) fine() int64 { return int64(time.Since(c.start)) + c.off }

// update reads the clocks at the start of a wake-up.
func (c *Clock) update() {
	c.woke = time.Now()
	c.set(c.woke)
}

func (c *Clock) set(now time.Time) int64 {
	c.wall = now.UnixNano()
	// The offset is sampled between two clock reads: its jitter must not turn time back.
	c.mono = max(c.mono, int64(now.Sub(c.start))+c.off)
	return c.mono
}
