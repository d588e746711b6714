package node

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
)

// threadMeter reads the kernel's accounting of one thread. It belongs to that thread, and
// reading allocates nothing. Its system calls are raw: neither waits, and during an
// ordinary one the runtime's monitor would retake the loop's P.
type threadMeter struct {
	fd  int // /proc/thread-self/schedstat, 0: not open yet, -1: there is none
	buf [96]byte
}

// read must be called on a goroutine that is locked to its thread.
func (m *threadMeter) read() (u metrics.ThreadUsage) {
	var ru unix.Rusage
	if _, _, errno := syscall.RawSyscall(unix.SYS_GETRUSAGE, unix.RUSAGE_THREAD, uintptr(unsafe.Pointer(&ru)), 0); errno != 0 {
		return u
	}
	u.User, u.System = ru.Utime.Nano(), ru.Stime.Nano()
	u.MinorFaults, u.MajorFaults = uint64(ru.Minflt), uint64(ru.Majflt)
	u.Voluntary, u.Involuntary = uint64(ru.Nvcsw), uint64(ru.Nivcsw)
	u.Known = true
	if m.fd == 0 {
		var err error
		if m.fd, err = unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			m.fd = -1
		}
	}
	if m.fd > 0 {
		if n, _, errno := syscall.RawSyscall6(unix.SYS_PREAD64, uintptr(m.fd), uintptr(unsafe.Pointer(&m.buf[0])), uintptr(len(m.buf)), 0, 0, 0); errno == 0 {
			u.Waited = runDelay(m.buf[:n])
		}
	}
	return u
}

func (m *threadMeter) close() {
	if m.fd > 0 {
		_ = unix.Close(m.fd)
	}
	m.fd = -1
}

// runDelay is the second number of schedstat: nanoseconds the thread was ready
// to run and had no core.
func runDelay(b []byte) (n int64) {
	field := 0
	for _, c := range b {
		switch {
		case c == ' ':
			field++
		case field == 1 && c >= '0' && c <= '9':
			n = n*10 + int64(c-'0')
		}
	}
	return n
}
