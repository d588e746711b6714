package limits

// The time of an operation is that of its log entry, which is the clock of the primary that
// made it. It may be earlier than that of the entry before: a clock was set back, or another
// node's is behind. Limits that waited for the later time would refuse orders until then. So
// a window is over when the present time is further from its beginning than it is long, on
// either side; a clock that was set back by less delays its end by as much.

// tick sets the time, unless there is none.
func (l *Limits) tick(t int64) {
	if t != 0 {
		l.now = clock(t)
	}
}

// over reports whether a window that began then is over.
func over(then, now, window int64) bool { return distance(then, now) >= uint64(window) }
