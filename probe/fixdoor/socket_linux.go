package fixdoor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errTick: nothing came for about tick; the connection is still good.
var errTick = errors.New("nothing came within a tick")

// tick bounds how late a waiting thread looks at its context and at its time.
const tick = 20 * time.Millisecond

// conn is a connection to a gateway.
type conn interface {
	Read(b []byte) (int, error) // errTick after about tick
	Write(b []byte) (int, error)
	Close() error
}

// socket reads and writes a blocking socket by system calls: a thread that waits in the kernel keeps its scheduler
// processor, as the grid's own client does for a publishing thread, so that what is measured is the gateway's time and
// not the scheduler's. SO_RCVTIMEO bounds each wait; a receive with it is never restarted after a signal, so the runtime
// can always stop the world.
type socket struct {
	fd   int
	slow bool // the last read waited for long: the next one gives its processor up
}

// dial connects, with TLS if cfg has one.
func dial(ctx context.Context, address string, secure func(host string) (*tls.Config, error)) (conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s, err := takeSocket(c.(*net.TCPConn))
	if err != nil || secure == nil {
		return s, err
	}
	host, _, _ := net.SplitHostPort(address)
	cfg, err := secure(host)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	t := &secured{s: s}
	t.c = tls.Client(netConn{t}, cfg)
	t.until = time.Now().Add(handshakeLimit)
	if err := t.c.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("TLS with %s: %w", address, err), s.Close())
	}
	t.until = time.Time{}
	return t, nil
}

// handshakeLimit is what TLS may take, and how long a gateway may take nothing.
const handshakeLimit = 5 * time.Second

func takeSocket(c *net.TCPConn) (*socket, error) {
	defer c.Close() //nolint:errcheck // the socket is kept by a number of its own
	file, err := c.File()
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // likewise
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl(F_DUPFD_CLOEXEC)", err)
	}
	in, out := unix.NsecToTimeval(int64(tick)), unix.NsecToTimeval(int64(handshakeLimit))
	if err := errors.Join(unix.SetNonblock(fd, false), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &in),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &out),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &socket{fd: fd}, nil
}

func (s *socket) Read(b []byte) (int, error) {
	var n uintptr
	var errno syscall.Errno
	if s.slow {
		n, _, errno = syscall.Syscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0, 0, 0)
	} else {
		n, _, errno = syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0, 0, 0)
	}
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		s.slow = true
		return 0, errTick
	case errno != 0:
		return 0, os.NewSyscallError("recvfrom", errno)
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	s.slow = false
	return int(n), nil
}

func (s *socket) Write(b []byte) (done int, err error) {
	for done < len(b) {
		n, err := unix.SendmsgN(s.fd, b[done:], nil, nil, unix.MSG_NOSIGNAL)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return done, os.NewSyscallError("sendmsg", err)
		}
		done += max(n, 0)
	}
	return done, nil
}

func (s *socket) Close() error { return unix.Close(s.fd) }

// secured is TLS over a socket.
type secured struct {
	s     *socket
	c     *tls.Conn
	until time.Time // reads wait that long, in place of a tick: a handshake cannot be tried again
}

func (t *secured) Read(b []byte) (int, error) {
	n, err := t.c.Read(b)
	if n == 0 && errors.Is(err, errTick) {
		return 0, errTick
	}
	return n, err
}

func (t *secured) Write(b []byte) (int, error) { return t.c.Write(b) }
func (t *secured) Close() error                { return t.s.Close() }

// netConn is what crypto/tls takes for a connection.
type netConn struct{ t *secured }

// ticked is errTick as TLS takes it: one after which reading can go on.
type ticked struct{}

func (ticked) Error() string   { return errTick.Error() }
func (ticked) Timeout() bool   { return true }
func (ticked) Temporary() bool { return true }
func (ticked) Unwrap() error   { return errTick }

func (n netConn) Read(b []byte) (int, error) {
	for {
		got, err := n.t.s.Read(b)
		if !errors.Is(err, errTick) {
			return got, err
		}
		if n.t.until.IsZero() || time.Now().After(n.t.until) {
			return 0, ticked{}
		}
	}
}
func (n netConn) Write(b []byte) (int, error)      { return n.t.s.Write(b) }
func (n netConn) Close() error                     { return nil } // the socket's owner does
func (n netConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (n netConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (n netConn) SetDeadline(time.Time) error      { return nil }
func (n netConn) SetReadDeadline(time.Time) error  { return nil }
func (n netConn) SetWriteDeadline(time.Time) error { return nil }
