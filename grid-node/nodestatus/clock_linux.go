package nodestatus

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelClocks reads the wall clock and the monotonic clock by system call, which a change
// to the process's vDSO does not affect.
func kernelClocks() (unixNs, monotonicNs int64) {
	read := func(clock uintptr) int64 {
		var ts unix.Timespec
		if _, _, errno := syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
			return 0
		}
		return ts.Nano()
	}
	return read(unix.CLOCK_REALTIME), read(unix.CLOCK_MONOTONIC)
}
