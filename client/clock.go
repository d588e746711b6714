package client

import "time"

// All deadlines and outage figures are nanoseconds since base, read from the
// monotonic clock: an int64 in a slot costs nothing to compare and to store.
var base = time.Now()

func nanotime() int64 { return int64(time.Since(base)) }

func nanosOf(t time.Time) int64 { return int64(t.Sub(base)) }

func timeOf(nanos int64) time.Time { return base.Add(time.Duration(nanos)) }
