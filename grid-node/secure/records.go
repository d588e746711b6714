package secure

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
)

// Records stands between a tls.Conn and its socket. What the tls.Conn writes
// between Hold and Flush leaves in one system call instead of one per record (16
// KiB). It gives the tls.Conn one record at a time, so that ReadAll knows whether
// another whole one is here already: what one system call received is handled
// together.
//
// One goroutine may read while another writes, as with any net.Conn.
type Records struct {
	net.Conn

	in   []byte // in[r:w] is received and not given out
	r, w int
	left int // bytes of the present record not given out yet
	// noWait: a read that would have to wait fails with a timeout.
	noWait bool

	mu   sync.Mutex // an answer to a key update is written by the reader
	held bool
	out  []byte // out[sent:] is not written
	sent int
}

const (
	recordHeader = 5
	maxRecord    = 16 << 10 // bytes of data in one record
	// receiveBuffer is what one system call can receive, once one has received
	// firstBuffer, which a handshake fits in: the buffers of strangers are garbage soon,
	// and the collector runs beside orders.
	receiveBuffer = 64 << 10
	firstBuffer   = 4 << 10
	// flushAt bounds what is kept from the socket until Flush.
	flushAt = 256 << 10
	keepOut = 1 << 20
)

// NewRecords wraps a connection on which nothing was read or written yet.
func NewRecords(c net.Conn) *Records {
	return &Records{Conn: c, in: make([]byte, firstBuffer)}
}

// Read implements net.Conn for the tls.Conn.
func (c *Records) Read(p []byte) (int, error) {
	for c.r == c.w || c.left == 0 && c.w-c.r < recordHeader {
		if err := c.receive(); err != nil {
			return 0, err
		}
	}
	if c.left == 0 {
		c.left = recordHeader + int(binary.BigEndian.Uint16(c.in[c.r+3:]))
	}
	n := copy(p, c.in[c.r:c.r+min(c.left, c.w-c.r)])
	c.r += n
	c.left -= n
	return n, nil
}

// receive reads what the socket has, behind the few bytes that may be left.
func (c *Records) receive() error {
	if c.noWait {
		return os.ErrDeadlineExceeded
	}
	rest := c.in[c.r:c.w]
	if c.w == len(c.in) && len(c.in) < receiveBuffer { // more was there, most likely
		c.in = make([]byte, receiveBuffer)
	}
	c.w = copy(c.in, rest)
	c.r = 0
	n, err := c.Conn.Read(c.in[c.w:])
	c.w += n
	if n > 0 {
		return nil
	}
	if errors.Is(err, io.EOF) && c.w > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ReadAll fills p from t, the tls.Conn above c: it waits for the first record and
// takes further ones that were received with it.
func (c *Records) ReadAll(t *tls.Conn, p []byte) (int, error) {
	n, err := t.Read(p)
	for err == nil && n > 0 && len(p)-n >= maxRecord && c.more() {
		var k int
		// A record need not hold data: never wait behind data that is there.
		c.noWait = true
		k, err = t.Read(p[n:])
		c.noWait = false
		n += k
	}
	if n > 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return n, err
}

// more says whether a whole record was received and not read.
func (c *Records) more() bool {
	have := c.w - c.r
	return c.left == 0 && have > recordHeader && have >= recordHeader+int(binary.BigEndian.Uint16(c.in[c.r+3:]))
}

// Hold keeps what is written until Flush.
func (c *Records) Hold() {
	c.mu.Lock()
	c.held = true
	c.mu.Unlock()
}

// Write implements net.Conn for the tls.Conn.
func (c *Records) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = append(c.out, p...)
	if c.held && len(c.out)-c.sent < flushAt {
		return len(p), nil
	}
	// A timeout leaves the rest to the next Flush: a tls.Conn would not survive it.
	if err := c.flush(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what was held. After an error that is a timeout it may be called
// again: nothing is lost or written twice.
func (c *Records) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = false
	return c.flush()
}

// FlushTo is Flush through w, which writes to the same socket and may take a part
// only without that being an error. all says whether nothing is left; what is, is
// first in the next Flush.
func (c *Records) FlushTo(w io.Writer) (all bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = false
	err = c.flushTo(w)
	if errors.Is(err, io.ErrShortWrite) {
		err = nil
	}
	return c.sent == len(c.out), err
}

func (c *Records) flush() error { return c.flushTo(c.Conn) }

func (c *Records) flushTo(w io.Writer) error {
	if c.sent == len(c.out) {
		return nil
	}
	n, err := w.Write(c.out[c.sent:])
	if c.sent += n; c.sent < len(c.out) {
		if err == nil {
			err = io.ErrShortWrite
		}
		return err
	}
	c.out, c.sent = c.out[:0], 0
	if cap(c.out) > keepOut {
		c.out = nil
	}
	return err
}
