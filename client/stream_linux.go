package client

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const haveRawIO = true

// rawStream reads and writes a blocking socket by system calls, past the
// netpoller. SO_RCVTIMEO bounds every wait by a tick; a receive with it set is
// never restarted after a signal, so the runtime's preemption signal (garbage
// collection, fairness) always gets the thread back.
type rawStream struct {
	fd     int
	pinned bool
	// users counts the owner and the calls in progress: the last one closes the descriptor, so that
	// it is never closed under a call (its number could be another file's by then).
	users  atomic.Int32
	closed atomic.Bool
	slow   bool // the last pinned read waited long: release the P for the next one
}

// pinnedReaders is how many reads of this process hold a P right now. At least
// one P is always left to the rest of the program.
var pinnedReaders atomic.Int32

// pinnedLimit is GOMAXPROCS-1 as last asked for: asking the runtime takes a
// global lock.
var pinnedLimit atomic.Int32

func refreshPinnedLimit() { pinnedLimit.Store(int32(runtime.GOMAXPROCS(0) - 1)) }

func newRawStream(tcp *net.TCPConn, mode IO) (stream, error) {
	defer tcp.Close()
	file, err := tcp.File()
	if err != nil {
		return nil, fmt.Errorf("client: take the socket from the net package: %w", err)
	}
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl(F_DUPFD_CLOEXEC)", err)
	}
	tv := unix.NsecToTimeval(int64(tick))
	err = firstError(
		os.NewSyscallError("fcntl(O_NONBLOCK off)", unix.SetNonblock(fd, false)),
		os.NewSyscallError("setsockopt(SO_RCVTIMEO)", unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)),
		os.NewSyscallError("setsockopt(SO_SNDTIMEO)", unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)),
	)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	refreshPinnedLimit()
	s := &rawStream{fd: fd, pinned: mode == IOPinned}
	s.users.Store(1)
	return s, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *rawStream) Read(p []byte, until int64) (int, error) {
	if !s.enter() {
		return 0, net.ErrClosed
	}
	defer s.leave()
	if left := until - nanotime(); left < int64(tick) {
		if err := s.waitReadable(left); err != nil {
			return 0, err
		}
	}
	n, errno := s.recv(p)
	switch {
	case errno == syscall.EAGAIN || errno == syscall.EINTR:
		s.slow = true
		refreshPinnedLimit() // a container's CPU limit, and GOMAXPROCS with it, may change
		return 0, errTick
	case errno != 0:
		return 0, os.NewSyscallError("recvfrom", errno)
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	s.slow = false
	return n, nil
}

// recv waits in the kernel. Pinned, the goroutine keeps its P while it waits, so that it need not
// reacquire one on return, which is half of the latency of a blocking call in Go. It does so only
// while a P is left for others and only for the first wait; sysmon takes the P back after 10 ms by
// a signal.
func (s *rawStream) recv(p []byte) (int, syscall.Errno) {
	if s.pinned && !s.slow {
		if pinnedReaders.Add(1) <= pinnedLimit.Load() {
			n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
			pinnedReaders.Add(-1)
			return int(n), e
		}
		pinnedReaders.Add(-1)
	}
	n, _, e := syscall.Syscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
	return int(n), e
}

// waitReadable handles a deadline nearer than a tick.
func (s *rawStream) waitReadable(left int64) error {
	ts := unix.NsecToTimespec(max(left, int64(time.Millisecond)))
	fds := [1]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	n, err := unix.Ppoll(fds[:], &ts, nil)
	if err == unix.EINTR || err == nil && n == 0 {
		return errTick
	}
	return os.NewSyscallError("ppoll", err)
}

// Write first tries without blocking, and so without giving up the P: a
// window's worth of orders nearly always fits the socket buffer.
func (s *rawStream) Write(p []byte) (int, error) {
	if !s.enter() {
		return 0, net.ErrClosed
	}
	defer s.leave()
	n, errno := s.send(p, unix.MSG_DONTWAIT)
	if errno == syscall.EAGAIN {
		n, errno = s.send(p, 0)
	}
	switch {
	case errno == syscall.EAGAIN || errno == syscall.EINTR:
		return 0, errTick
	case errno != 0:
		return 0, os.NewSyscallError("sendto", errno)
	}
	return n, nil
}

func (s *rawStream) send(p []byte, flags uintptr) (int, syscall.Errno) {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(p)))
	if flags&unix.MSG_DONTWAIT != 0 {
		n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), addr, uintptr(len(p)), flags|unix.MSG_NOSIGNAL, 0, 0)
		return int(n), e
	}
	n, _, e := syscall.Syscall6(unix.SYS_SENDTO, uintptr(s.fd), addr, uintptr(len(p)), flags|unix.MSG_NOSIGNAL, 0, 0)
	return int(n), e
}

func (s *rawStream) Close() error {
	if s.closed.CompareAndSwap(false, true) {
		unix.Shutdown(s.fd, unix.SHUT_RDWR) //nolint:errcheck // wakes the calls in progress; the peer may be gone already
		s.leave()
	}
	return nil
}

func (s *rawStream) enter() bool {
	for {
		n := s.users.Load()
		if n == 0 || s.closed.Load() {
			return false
		}
		if s.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *rawStream) leave() {
	if s.users.Add(-1) == 0 {
		unix.Close(s.fd)
	}
}
