package transport

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tryWriter writes to a connection of the net package what its socket accepts at once, and
// allocates nothing. It belongs to the loop; concurrent writers are not allowed.
type tryWriter struct {
	raw   syscall.RawConn
	write func(fd uintptr) bool
	b     []byte
	n     int
	errno syscall.Errno
}

// newTryWriter returns nil for a connection that is not a socket.
func newTryWriter(nc net.Conn) *tryWriter {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	w := &tryWriter{raw: raw}
	w.write = func(fd uintptr) bool {
		for {
			if w.n, w.errno = send(int(fd), w.b); w.errno != syscall.EINTR {
				return true // never wait
			}
		}
	}
	return w
}

// Write implements io.Writer except that a full socket means a short write without an
// error.
func (w *tryWriter) Write(b []byte) (int, error) {
	w.b = b
	err := w.raw.Write(w.write)
	w.b = nil
	switch {
	case err != nil:
		return 0, err
	case w.errno == syscall.EAGAIN:
		return 0, nil
	case w.errno != 0:
		return 0, w.errno
	}
	return w.n, nil
}

// unsentOf returns how many bytes the kernel holds that the peer of a connection has not
// received; 0 for one that is not a socket.
func unsentOf(nc net.Conn) (n int) {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	return n
}

// goneFrom reports whether a connection has ended on both sides; false for one that is not a
// socket.
func goneFrom(nc net.Conn) (gone bool) {
	if sc, ok := nc.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { gone = socketGone(int(fd)) })
		}
	}
	return gone
}

// socketGone reads the state in the first byte of TCP_INFO.
func socketGone(fd int) bool {
	const closed = 7
	state, size := uint8(0), uint32(1)
	_, _, errno := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO, uintptr(unsafe.Pointer(&state)), uintptr(unsafe.Pointer(&size)), 0)
	return errno == 0 && state == closed
}

// setSendBufferOf is boundSending of a connection of the net package.
func setSendBufferOf(nc *net.TCPConn, bytes int) {
	if raw, err := nc.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { boundSending(int(fd), bytes) })
	}
}

// boundSending bounds the kernel's buffer for output. Output beyond what may wait for the
// peer's window does not reach the kernel at all.
func boundSending(fd, bytes int) {
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, bytes)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes/4)
}
