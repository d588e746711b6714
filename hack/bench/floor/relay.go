package floor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"
)

// readSize is what one wake-up takes from one connection.
const readSize = 128 << 10

// maxOwed bounds runs of messages that the second process has not confirmed.
const maxOwed = 1 << 16

// relay is one epoll loop.
type relay struct {
	Config
	epfd     int
	listener int
	link     *conn // to the second process; nil without
	conns    []*conn
	events   []unix.EpollEvent
	buf      []byte

	// Runs of messages given to the link, oldest first: a ring.
	owed       []run
	head, tail uint64
	given      uint64 // messages given to the link
	confirmed  uint64 // of them confirmed
	dirty      []*conn
}

// run is how many messages of one connection follow each other in the link.
type run struct {
	c *conn
	n uint64
}

// conn is one connection. in is an incomplete message, out what is not written.
type conn struct {
	fd       int
	in, out  []byte
	answered uint64
	isDirty  bool
	blocked  bool
}

// Relay serves until the process is signalled. It prints where on ready:
// "listening ip:port".
func Relay(c Config, ready io.Writer) error {
	if err := c.check(); err != nil {
		return err
	}
	debug.SetGCPercent(-1)                       // nothing is allocated once connections are made
	runtime.GOMAXPROCS(max(3, runtime.NumCPU())) // the loop keeps one for good
	runtime.LockOSThread()
	r := &relay{Config: c, events: make([]unix.EpollEvent, 128), buf: make([]byte, MaxMessage+readSize), owed: make([]run, maxOwed)}
	var err error
	if r.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll_create1: %w", err)
	}
	if c.Backup != "" {
		fd, err := dial(c.Backup)
		if err != nil {
			return err
		}
		if r.link, err = r.add(fd); err != nil {
			return err
		}
	}
	fd, bound, err := listen(c.Listen)
	if err != nil {
		return err
	}
	r.listener = fd
	if err := r.watch(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN); err != nil {
		return err
	}
	fmt.Fprintf(ready, "listening %s\n", bound)
	for {
		if err := r.wake(); err != nil {
			return err
		}
	}
}

func (r *relay) watch(op, fd int, mask uint32) error {
	ev := unix.EpollEvent{Events: mask, Fd: int32(fd)}
	if err := unix.EpollCtl(r.epfd, op, fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

func (r *relay) add(fd int) (*conn, error) {
	for fd >= len(r.conns) {
		r.conns = append(r.conns, nil)
	}
	c := &conn{fd: fd, in: make([]byte, 0, MaxMessage), out: make([]byte, 0, 4*readSize)}
	r.conns[fd] = c
	return c, r.watch(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN)
}

// wake handles one return of epoll_pwait: all input first, then all output.
func (r *relay) wake() error {
	n, errno := epollWait(r.epfd, r.events)
	if errno == syscall.EINTR { // the runtime wants a safepoint, this was one
		return nil
	}
	if errno != 0 {
		return fmt.Errorf("epoll_pwait: %w", errno)
	}
	for i := range r.events[:n] {
		fd := int(r.events[i].Fd)
		c := (*conn)(nil)
		if fd < len(r.conns) {
			c = r.conns[fd]
		}
		var err error
		switch {
		case fd == r.listener:
			err = r.accept()
		case c == nil: // closed earlier in this wake-up
		case r.events[i].Events&unix.EPOLLOUT != 0:
			c.blocked = false
			r.mark(c)
			err = r.watch(unix.EPOLL_CTL_MOD, fd, unix.EPOLLIN)
		case c == r.link:
			err = r.confirm()
		default:
			err = r.take(c)
		}
		if err != nil {
			return err
		}
	}
	return r.flush()
}

func (r *relay) accept() error {
	fd, _, err := unix.Accept4(r.listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return nil //nolint:nilerr // the peer may be gone again
	}
	if noDelay(fd) != nil {
		unix.Close(fd)
		return nil //nolint:nilerr // as above
	}
	_, err = r.add(fd)
	return err
}

// take reads messages of a client.
func (r *relay) take(c *conn) error {
	had := copy(r.buf, c.in)
	n, errno := recv(c.fd, r.buf[had:had+readSize])
	switch {
	case errno == syscall.EAGAIN || errno == syscall.EINTR:
		return nil
	case errno != 0 || n == 0:
		r.conns[c.fd] = nil
		unix.Close(c.fd)
		c.fd = -1
		return nil //nolint:nilerr // a client that leaves is no error of the relay
	}
	got := r.buf[:had+n]
	whole := len(got) / r.Request
	c.in = append(c.in[:0], got[whole*r.Request:]...)
	if whole == 0 {
		return nil
	}
	if r.link == nil {
		r.answer(c, uint64(whole))
		return nil
	}
	r.link.out = append(r.link.out, got[:whole*r.Request]...)
	r.mark(r.link)
	r.given += uint64(whole)
	if r.tail-r.head == maxOwed {
		return fmt.Errorf("%d runs of messages wait for the second process, allowed: %d; use fewer connections or less depth", maxOwed, maxOwed)
	}
	r.owed[r.tail%maxOwed] = run{c, uint64(whole)}
	r.tail++
	return nil
}

// confirm reads counts of the second process and answers the clients.
func (r *relay) confirm() error {
	c := r.link
	had := copy(r.buf, c.in)
	n, errno := recv(c.fd, r.buf[had:had+readSize])
	switch {
	case errno == syscall.EAGAIN || errno == syscall.EINTR:
		return nil
	case errno != 0 || n == 0:
		return errors.New("the second process is gone")
	}
	got := r.buf[:had+n]
	whole := len(got) / 8
	c.in = append(c.in[:0], got[whole*8:]...)
	if whole == 0 {
		return nil
	}
	count := binary.LittleEndian.Uint64(got[(whole-1)*8:])
	if count > r.given {
		return fmt.Errorf("the second process has %d messages, given: %d", count, r.given)
	}
	fresh := count - r.confirmed
	r.confirmed = count
	for fresh > 0 {
		w := &r.owed[r.head%maxOwed]
		k := min(w.n, fresh)
		r.answer(w.c, k)
		w.n -= k
		fresh -= k
		if w.n == 0 {
			r.head++
		}
	}
	return nil
}

// answer queues the answers to the next n messages of c.
func (r *relay) answer(c *conn, n uint64) {
	if c.fd < 0 {
		return
	}
	r.mark(c)
	c.answered += n
	if r.Sink {
		c.out = binary.LittleEndian.AppendUint64(c.out, c.answered)
		return
	}
	for i := c.answered - n + 1; i <= c.answered; i++ {
		c.out = binary.LittleEndian.AppendUint64(c.out, i)
		for pad := r.Reply - 8; pad > 0; {
			k := min(pad, len(zeroes))
			c.out = append(c.out, zeroes[:k]...)
			pad -= k
		}
	}
}

var zeroes [4096]byte

func (r *relay) mark(c *conn) {
	if !c.isDirty {
		c.isDirty = true
		r.dirty = append(r.dirty, c)
	}
}

// flush writes once per connection.
func (r *relay) flush() error {
	for _, c := range r.dirty {
		c.isDirty = false
		if c.fd < 0 || c.blocked || len(c.out) == 0 {
			continue
		}
		n, errno := send(c.fd, c.out)
		if errno != 0 && errno != syscall.EAGAIN && errno != syscall.EINTR {
			if c == r.link {
				return fmt.Errorf("write to the second process: %w", errno)
			}
			c.out = c.out[:0] // its next read tells that it is gone
			continue
		}
		if errno != 0 {
			n = 0
		}
		c.out = c.out[:copy(c.out, c.out[n:])]
		if len(c.out) > 0 {
			c.blocked = true
			if err := r.watch(unix.EPOLL_CTL_MOD, c.fd, unix.EPOLLIN|unix.EPOLLOUT); err != nil {
				return err
			}
		}
	}
	r.dirty = r.dirty[:0]
	return nil
}
