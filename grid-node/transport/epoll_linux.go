package transport

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// epollLoop is the Linux loop; see the package comment for why its system calls
// are raw.
type epollLoop struct {
	core
	epfd, wakefd int
	tickfd       int            // a timer: with a time limit, each epoll_pwait would set one and clear it again
	patientfd    int            // a set in the set epfd: listeners, and connections that are not prompt
	restfd       int            // a timer: the end of a rest
	masked       bool           // events of patientfd are not waited for: a rest
	rested       bool           // the timer of the rest has to be set
	ready        bool           // patientfd has events
	socks        []*epollSocket // by file descriptor
	events       []unix.EpollEvent
	few          []unix.EpollEvent // of patientfd
	rbuf         []byte

	mu        sync.Mutex // guards listeners until Run starts
	listeners []int
	muted     []*epollSocket // listeners that are off until the next tick
	gen       int32
	err       error
}

// epollSocket is one registered descriptor. A listener has no conn.
type epollSocket struct {
	l      *epollLoop
	conn   *Conn
	fd     int
	ep     int   // the set it is in
	gen    int32 // guards against events of a closed descriptor whose number was reused
	mask   uint32
	listen bool
	door   uint16 // of a listener: which call of Listen, from 0
}

func newEpollLoop(cfg Config, h Handler) (Loop, error) {
	l := &epollLoop{core: newCore(cfg, h), events: make([]unix.EpollEvent, 64), few: make([]unix.EpollEvent, 8),
		rbuf: make([]byte, copyLimit+cfg.ReadBuffer)}
	var made []int
	newSet := func() (int, error) { return unix.EpollCreate1(unix.EPOLL_CLOEXEC) }
	newTimer := func() (int, error) {
		return unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	}
	for _, d := range []struct {
		fd   *int
		call string
		open func() (int, error)
	}{
		{&l.epfd, "epoll_create1", newSet},
		{&l.patientfd, "epoll_create1", newSet},
		{&l.wakefd, "eventfd", func() (int, error) { return unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC) }},
		{&l.tickfd, "timerfd_create", newTimer},
		{&l.restfd, "timerfd_create", newTimer},
	} {
		fd, err := d.open()
		if err != nil {
			closeAllOf(made)
			return nil, fmt.Errorf("%s: %w", d.call, err)
		}
		*d.fd, made = fd, append(made, fd)
	}
	for _, fd := range []int{l.patientfd, l.wakefd, l.tickfd, l.restfd} {
		if err := l.ctl(unix.EPOLL_CTL_ADD, l.register(fd, l.epfd), unix.EPOLLIN); err != nil {
			closeAllOf(made)
			return nil, err
		}
	}
	if cfg.TLS != nil {
		l.doors = newDoors(&l.core, l.Post, l.secured)
	}
	return l, nil
}

func closeAllOf(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

func (l *epollLoop) register(fd, ep int) *epollSocket {
	for fd >= len(l.socks) {
		l.socks = append(l.socks, nil)
	}
	l.gen++
	s := &epollSocket{l: l, fd: fd, ep: ep, gen: l.gen}
	l.socks[fd] = s
	return s
}

func (l *epollLoop) ctl(op int, s *epollSocket, mask uint32) error {
	s.mask = mask
	ev := unix.EpollEvent{Events: mask, Fd: int32(s.fd), Pad: s.gen}
	if err := unix.EpollCtl(s.ep, op, s.fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// Run implements Loop.
func (l *epollLoop) Run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer l.shut()
	for !l.stopping.Load() && l.err == nil {
		n, errno := epollWait(l.epfd, l.events, l.timeout())
		l.clock.update()
		if errno != 0 {
			if errno == syscall.EINTR { // the runtime wants us at a safepoint, we passed it
				continue
			}
			return fmt.Errorf("epoll_pwait: %w", errno)
		}
		if n > 0 {
			l.stats.WakeUps++
		}
		for i := range l.events[:n] {
			l.dispatch(&l.events[i])
		}
		if l.masked {
			l.rest()
		}
		if l.ready && !l.masked {
			l.servePatient()
		}
		if l.tick(l.clock.mono) {
			setTimer(l.tickfd, l.interval())
			if len(l.muted) > 0 {
				l.unmute()
			}
		}
		l.settle()
		if in := l.hasten(); in > 0 {
			setTimer(l.tickfd, in)
		}
		if l.share.resting && !l.masked {
			l.rest()
		}
		if n > 0 {
			l.wokeUp()
		}
	}
	return l.err
}

// timeout is none, or 0 when there is something to do already.
func (l *epollLoop) timeout() int {
	if l.nextTick == 0 || len(l.resumed) > 0 || l.turns.again {
		return 0
	}
	return -1
}

func (l *epollLoop) dispatch(ev *unix.EpollEvent) {
	fd := int(ev.Fd)
	if fd == l.wakefd {
		drainEventfd(fd)
		l.posts.run()
		return
	}
	switch fd {
	case l.tickfd: // set anew after the tick
		return
	case l.restfd:
		l.rested = true
		return
	case l.patientfd:
		l.ready = true
		return
	}
	s := l.socks[fd]
	if s == nil || s.gen != ev.Pad {
		return // closed earlier in this wake-up
	}
	if s.listen {
		l.accept(s)
		return
	}
	c := s.conn
	if c.closing {
		return
	}
	if c.dialling() {
		l.dialled(s)
		return
	}
	if c.linger && c.by != 0 && c.ended {
		if c.received() {
			c.Close(c.cause)
		}
		return
	}
	if ev.Events&unix.EPOLLOUT != 0 {
		s.unblock(c)
	}
	if ev.Events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		l.read(s, c, ev.Events&^(unix.EPOLLIN|unix.EPOLLOUT) != 0)
	}
}

// Post implements Loop.
func (l *epollLoop) Post(f func()) bool {
	ok, wake := l.posts.push(f)
	if wake {
		signalEventfd(l.wakefd)
	}
	return ok
}

// Stop implements Loop.
func (l *epollLoop) Stop() {
	l.Post(func() { l.stopping.Store(true) })
}

// shut releases everything when Run ends.
func (l *epollLoop) shut() {
	l.posts.done.Store(true)
	// Listeners first: a client whose connection ends and that retries must not find an
	// open port.
	if l.doors != nil {
		l.doors.shut()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fd := range l.listeners {
		_ = unix.Close(fd)
	}
	l.posts.run() // connections handed over just now are closed too
	l.closeAll()
	// The eventfd stays open: a late Post may still write to it, and writing to a
	// number that another descriptor took over would corrupt that one.
	closeAllOf([]int{l.patientfd, l.epfd, l.tickfd, l.restfd})
}

// Listen implements Loop.
func (l *epollLoop) Listen(addr string) (net.Addr, error) {
	if l.doors != nil {
		return l.doors.listen(addr)
	}
	// The net package knows how to parse, bind and name an address; only the
	// descriptor is wanted.
	ln, err := listenTCP(addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = ln.Close() }()
	fd, err := dupListener(ln.(*net.TCPListener))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	l.mu.Lock()
	door := len(l.listeners)
	l.listeners = append(l.listeners, fd)
	l.mu.Unlock()
	l.Post(func() {
		s := l.register(fd, l.patientfd)
		s.listen, s.door = true, uint16(door)
		if err := l.ctl(unix.EPOLL_CTL_ADD, s, unix.EPOLLIN); err != nil {
			l.err = err
		}
	})
	return ln.Addr(), nil
}

// accept takes some of the waiting connections of one listener: each costs as much as
// a short request.
func (l *epollLoop) accept(s *epollSocket) {
	for range 8 {
		fd, sa, err := unix.Accept4(s.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case nil:
		case unix.EAGAIN:
			return
		case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
			// Level-triggered readiness would spin on what cannot be accepted: listen
			// again at the next tick, when connections may have closed.
			l.stats.Refused++
			if l.err = l.ctl(unix.EPOLL_CTL_MOD, s, 0); l.err == nil {
				l.muted = append(l.muted, s)
			}
			return
		default: // ECONNABORTED, EINTR and the network errors of accept(2)
			continue
		}
		if l.full() {
			_ = unix.Close(fd)
			continue
		}
		l.stats.Accepted++
		tuneSocket(fd)
		c := &Conn{door: s.door}
		l.add(c)
		if l.attach(c, fd, readMask) {
			l.opened(c, sockaddrAddr(sa))
		}
	}
}

func (l *epollLoop) unmute() {
	for _, s := range l.muted {
		if err := l.ctl(unix.EPOLL_CTL_MOD, s, unix.EPOLLIN); err != nil {
			l.err = err
		}
	}
	l.muted = l.muted[:0]
}

// attach registers a socket for c; on failure c is closed.
func (l *epollLoop) attach(c *Conn, fd int, mask uint32) bool {
	ep := l.patientfd
	if c.prompt {
		ep = l.epfd
	}
	s := l.register(fd, ep)
	s.conn, c.sock = c, s
	if err := l.ctl(unix.EPOLL_CTL_ADD, s, mask); err != nil {
		c.Close(err)
		return false
	}
	return true
}

// Dial implements Loop.
func (l *epollLoop) Dial(addr string, tag any) *Conn {
	c := &Conn{Tag: tag, dialled: true, prompt: true, remote: addr}
	l.add(c)
	c.by = l.clock.mono + int64(l.cfg.DialTimeout)
	c.sock = noSocket{}
	if l.cfg.TLS != nil && !l.cfg.TLS.DialPlain {
		go l.dialSecured(c, addr)
		return c
	}
	if ap, err := netip.ParseAddrPort(addr); err == nil {
		l.connect(c, ap)
		return c
	}
	go func() {
		ap, err := resolve(addr, l.cfg.DialTimeout)
		l.Post(func() {
			switch {
			case c.closing:
			case err != nil:
				c.Close(err)
			default:
				l.connect(c, ap)
			}
		})
	}()
	return c
}

func (l *epollLoop) connect(c *Conn, ap netip.AddrPort) {
	fd, err := startConnect(ap, l.cfg.Source)
	if err != nil {
		c.Close(fmt.Errorf("connect to %s: %w", ap, err))
		return
	}
	l.attach(c, fd, unix.EPOLLOUT)
}

// dialled finishes a connection attempt.
func (l *epollLoop) dialled(s *epollSocket) {
	c := s.conn
	errno, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && errno != 0 {
		err = syscall.Errno(errno)
	}
	if err == nil {
		err = l.ctl(unix.EPOLL_CTL_MOD, s, readMask)
	}
	if err != nil {
		c.Close(fmt.Errorf("connect to %s: %w", c.remote, err))
		return
	}
	tuneSocket(s.fd)
	if ap, err := addrOf(unix.SYS_GETPEERNAME, s.fd); err == nil { // a name may have been dialled
		c.remote = ap.String()
	}
	l.opened(c, nil)
}
