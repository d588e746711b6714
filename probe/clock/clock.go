// Package clock is the one clock of a probe: monotonic nanoseconds for every latency, tied once to
// wall time for display, and a precise sleep.
//
// All timestamps of a run come from one process on one machine, so clocks of different machines are
// never compared.
package clock

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// base anchors Now. time.Since of a time that carries a monotonic reading
// costs one vDSO call and allocates nothing.
var base = time.Now()

// kernelOffset is CLOCK_MONOTONIC minus Now, in nanoseconds.
var kernelOffset = measureOffset()

// Now is the monotonic time in nanoseconds since the process started.
func Now() int64 { return int64(time.Since(base)) }

// Wall converts a value of Now to wall time as it was set when the process
// started; later steps of the system clock do not move it.
func Wall(ns int64) time.Time { return base.Add(time.Duration(ns)).Round(0) }

// At converts a wall time to the scale of Now, using the system clock as it is
// set at this moment.
func At(t time.Time) int64 { return Now() + int64(time.Until(t)) }

// measureOffset reads the kernel clock between two readings of ours and keeps
// the tightest of several: the error is below the width of that bracket.
func measureOffset() int64 {
	best, offset := int64(1)<<62, int64(0)
	for range 32 {
		var ts unix.Timespec
		before := Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			panic(fmt.Sprintf("clock_gettime(CLOCK_MONOTONIC): %v", err)) // no Linux lacks it
		}
		after := Now()
		if width := after - before; width < best {
			best, offset = width, ts.Nano()-(before+width/2)
		}
	}
	return offset
}

// Thread prepares the calling goroutine for timing: it is locked to its thread, whose timer slack
// becomes 1 ns (the default of 50 µs lets the kernel wake it that much late). The goroutine must
// end without unlocking; the thread then ends with it, and its slack is not inherited.
func Thread() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl(PR_SET_TIMERSLACK, 1): %w", err)
	}
	return nil
}

// SleepUntil returns at or after the time given on the scale of Now; at once if
// that has passed. It sleeps on the absolute time, so neither preemption before
// the call nor a signal during it makes it late.
//
// The raw system call keeps the scheduler's processor while it sleeps: releasing and reacquiring it
// costs tens of microseconds on a busy machine. The price is a processor per sleeping thread, which
// the caller provides with GOMAXPROCS. A stop-the-world still works: the runtime's preemption
// signal ends the sleep with EINTR and the loop reaches a safe point.
func SleepUntil(ns int64) {
	ts := unix.NsecToTimespec(ns + kernelOffset)
	for Now() < ns {
		_, _, errno := syscall.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP,
			unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
		if errno != 0 && errno != unix.EINTR {
			panic(fmt.Sprintf("clock_nanosleep: %v", errno)) // the arguments are valid
		}
	}
}
