package transport

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootNanos returns CLOCK_BOOTTIME, or elapsed where the kernel has none.
func bootNanos(elapsed time.Duration) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return int64(elapsed)
	}
	return ts.Nano()
}
