package sim

import "github.com/ordergrid/ordergrid/grid-node/replica"

// clock is the clock of one machine. Its monotonic clock has a constant drift; it never
// jumps (a paused process sees a jump). Its wall clock may be anything.
type clock struct {
	base int64 // Mono at the true time 0
	ppm  int64 // how much too fast, in millionths
	wall int64 // error of the wall clock, changed by jumps
}

const wallStart = int64(1195137000) * second

// mono is the monotonic clock at the true time now.
func (c *clock) mono(now int64) int64 { return c.base + now + now/1000*c.ppm/1000 }

func (c *clock) time(now int64) replica.Time {
	return replica.Time{Mono: c.mono(now), Wall: wallStart + now + c.wall}
}
