package generator

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/probe/clock"
)

// socket is a blocking TCP socket driven by system calls on the calling thread,
// as client.IOBlocking (and, pinned, client.IOPinned) does.
type socket struct {
	fd     int
	pinned bool
	out    []byte // what flush writes
}

// pinnedThreads is how many threads at most keep their P while they wait. More
// would need as many Ps, and the runtime's monitor interrupts each 100 times a
// second.
const pinnedThreads = 8

// answerLimit is the longest wait for one answer.
const answerLimit = 20 * time.Second

func dial(address string, pinned bool) (*socket, error) {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	if !ap.Addr().Unmap().Is4() {
		return nil, fmt.Errorf("address %s: allowed: IPv4", address)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	tick := unix.NsecToTimeval(int64(20 * time.Millisecond)) // a receive with a time limit is never restarted after a signal
	err = errors.Join(
		unix.Connect(fd, &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().Unmap().As4()}),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tick),
	)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return &socket{fd: fd, pinned: pinned}, nil
}

func (s *socket) close() { unix.Close(s.fd) }

// flush writes out, and empties it.
func (s *socket) flush() error {
	err := s.write(s.out)
	s.out = s.out[:0]
	return err
}

// read waits for at least one byte.
func (s *socket) read(b []byte) (int, error) {
	until := int64(0)
	for {
		n, errno := s.receive(b)
		switch {
		case errno == syscall.EINTR: // the runtime wants a safepoint: receive begins with one
		case errno == syscall.EAGAIN:
			now := clock.Now()
			if until == 0 {
				until = now + int64(answerLimit)
			}
			if now > until {
				return 0, fmt.Errorf("no answer for %v", answerLimit)
			}
		case errno != 0:
			return 0, fmt.Errorf("recvfrom: %w", errno)
		case n == 0:
			return 0, io.ErrUnexpectedEOF
		default:
			return n, nil
		}
	}
}

// receive is one system call. It must stay a function of its own: its prologue
// is where the world can be stopped while an answer does not come.
//
//go:noinline
func (s *socket) receive(b []byte) (int, syscall.Errno) {
	fd, p, size := uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))
	if s.pinned {
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, fd, p, size, 0, 0, 0)
		return int(n), errno
	}
	n, _, errno := syscall.Syscall6(unix.SYS_RECVFROM, fd, p, size, 0, 0, 0)
	return int(n), errno
}

// write hands all of b to the kernel; it blocks, and gives its P away, only when
// the socket's buffer is full.
func (s *socket) write(b []byte) error {
	for len(b) > 0 {
		n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
		if errno == syscall.EAGAIN {
			n, _, errno = syscall.Syscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
		}
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 {
			return fmt.Errorf("sendto: %w", errno)
		}
		b = b[n:]
	}
	return nil
}
