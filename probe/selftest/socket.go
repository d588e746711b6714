package selftest

import (
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// socket is a connection in blocking mode. Go's netpoller hands the goroutine from one thread to
// another, which sometimes takes long for one that is locked to its thread; the server has to be
// more precise than the measurement.
type socket struct{ f *os.File }

func newSocket(c net.Conn) (*socket, error) {
	defer c.Close() //nolint:errcheck // the file is a copy
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	f, err := tcp.File()
	if err != nil {
		return nil, err
	}
	f.Fd() // makes it block
	return &socket{f}, nil
}

func (s *socket) read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(s.f.Fd()), b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil && n == 0:
			return 0, io.EOF
		default:
			return n, err
		}
	}
}

func (s *socket) write(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(int(s.f.Fd()), b)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		b = b[max(n, 0):]
	}
	return nil
}

// end makes a read or write under way return.
func (s *socket) end() { _ = unix.Shutdown(int(s.f.Fd()), unix.SHUT_RDWR) } // it may be over already

func (s *socket) close() { _ = s.f.Close() } // no error to report
