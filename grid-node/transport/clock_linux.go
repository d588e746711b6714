package transport

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CountsSuspension reports whether Clock counts the time for which the machine was
// suspended. Otherwise a suspension extends a lease.
func CountsSuspension() bool {
	var ts unix.Timespec
	return unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) == nil
}

// bootNanos returns CLOCK_BOOTTIME, or elapsed where the kernel has none. The system call
// is raw: during an ordinary one the runtime's monitor would retake the loop's P, and then
// poll every 20 us for a while.
func bootNanos(elapsed time.Duration) int64 {
	var ts unix.Timespec
	if _, _, errno := syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return int64(elapsed)
	}
	return ts.Nano()
}
