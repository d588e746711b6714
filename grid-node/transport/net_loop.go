package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// netLoop is the portable loop: goroutines do the blocking, one goroutine runs
// the handler.
type netLoop struct {
	core
	events chan netEvent // of prompt connections, and what this side began
	others chan netEvent // new connections, and input of those that are not prompt
	wake   chan struct{} // posts are waiting

	restTimer *time.Timer
}

// netEvent is an event of a helper goroutine for the loop.
type netEvent struct {
	kind netEventKind
	s    *netSocket
	n    int
	err  error
}

type netEventKind uint8

const (
	netRead netEventKind = iota
	netWritten
	netAccepted
	netDialled
)

func newNetLoop(cfg Config, h Handler) Loop {
	l := &netLoop{core: newCore(cfg, h), events: make(chan netEvent, 256), others: make(chan netEvent, 256),
		wake: make(chan struct{}, 1)}
	l.doors = newDoors(&l.core, l.Post, func(door int, s *secured) bool {
		return l.send(netEvent{kind: netAccepted, s: &netSocket{l: l, secured: *s, door: door}})
	})
	return l
}

// Run implements Loop.
func (l *netLoop) Run() error {
	// Not locked to a thread: each event would cost two more thread switches.
	defer l.shut()
	ticker := time.NewTicker(l.cfg.Tick)
	defer ticker.Stop()
	l.restTimer = time.NewTimer(time.Hour)
	defer l.restTimer.Stop()
	for !l.stopping.Load() {
		if len(l.resumed) > 0 || l.turns.again { // input is waiting that we hold already
			l.signal()
		}
		others, rested := l.others, l.rest()
		if rested != nil {
			others = nil
		}
		var first *netEvent // of others
		select {
		case ev := <-l.events:
			l.clock.update()
			l.handle(ev)
		case ev := <-others:
			l.clock.update()
			first = &ev
		case <-rested:
			l.clock.update()
		case <-l.wake:
			l.clock.update()
			l.posts.run()
		case <-ticker.C:
			l.clock.update()
			l.nextTick = 0
		}
		l.drainEvents()
		if !l.share.resting {
			l.serveOthers(first)
		}
		l.stats.WakeUps++
		if l.tick(l.clock.mono) && l.paced != nil {
			ticker.Reset(time.Duration(l.interval()))
		}
		l.settle()
		if in := l.hasten(); in > 0 {
			ticker.Reset(time.Duration(in))
		}
		l.wokeUp()
	}
	return nil
}

// drainEvents takes further ready events, so that they share this wake-up's writes.
func (l *netLoop) drainEvents() {
	for range cap(l.events) {
		select {
		case ev := <-l.events:
			l.handle(ev)
		default:
			return
		}
	}
}

// serveOthers takes first, if there is one, and some more deferrable events.
func (l *netLoop) serveOthers(first *netEvent) {
	if first == nil && len(l.others) == 0 {
		return
	}
	from := l.clock.fine()
	l.share.crowd = len(l.others) > 1 || first != nil && len(l.others) > 0
	if first != nil {
		l.handle(*first)
	}
	now := l.clock.fine()
	for now-from < slice && len(l.others) > 0 { // this goroutine is the only receiver
		l.handle(<-l.others)
		now = l.clock.fine()
	}
	l.share.more, l.share.crowd = len(l.others) > 0, false
	l.share.spent(from, now)
}

// rest returns the end of the rest of deferrable work; nil: no rest.
func (l *netLoop) rest() <-chan time.Time {
	if !l.share.resting {
		return nil
	}
	d := l.share.rest(l.clock.fine())
	if d == 0 {
		l.signal() // for the connections that wait for their turn
		return nil
	}
	l.restTimer.Reset(time.Duration(d))
	return l.restTimer.C
}

func (l *netLoop) handle(ev netEvent) {
	s, c := ev.s, ev.s.conn
	switch ev.kind {
	case netAccepted:
		l.accepted(s)
	case netDialled:
		l.dialDone(s, ev.err)
	case netWritten:
		l.written(s, c, ev)
	case netRead:
		l.read(s, c, ev)
	}
}

func (l *netLoop) read(s *netSocket, c *Conn, ev netEvent) {
	if c.closing {
		return
	}
	s.reading, s.filled = false, ev.n == len(s.rbuf)
	if ev.n > 0 {
		l.stats.Reads++
		l.stats.BytesIn += uint64(ev.n)
		switch {
		case c.linger:
			c.discard(ev.n)
		case c.guard != nil:
			l.unseal(c, s.rbuf[:ev.n])
		default:
			c.in, c.usedIn = append(c.in, s.rbuf[:ev.n]...), max(c.usedIn, aShort)
			rest := l.deliver(c, c.in)
			c.in = c.in[:copy(c.in, rest)]
			if cap(c.in) != int(c.countedIn) && !c.exempt {
				l.countIn(c)
			}
		}
	}
	switch {
	case errors.Is(ev.err, io.EOF):
		c.endOfInput()
	case ev.err != nil:
		c.Close(fmt.Errorf("%w: %w", ErrPeerClosed, ev.err))
	case !c.paused && !c.waiting && !c.closing && !c.ended:
		s.startRead()
	}
}

func (l *netLoop) written(s *netSocket, c *Conn, ev netEvent) {
	if c.closing {
		return
	}
	c.inflight = 0
	if ev.err != nil {
		c.Close(fmt.Errorf("%w: %w", ErrPeerClosed, ev.err))
		return
	}
	c.wrote(ev.n)
	if c.Buffered() > 0 {
		s.write(c)
		return
	}
	c.blockedAt = 0
	l.countOut(c)
	if c.linger {
		c.finish()
	}
}

// send passes an event to the loop, or reports that the loop has ended.
func (l *netLoop) send(ev netEvent) bool {
	to := l.events
	if ev.kind != netDialled && !ev.s.prompt.Load() {
		to = l.others
	}
	select {
	case to <- ev:
		return true
	case <-l.doors.ended:
		return false
	}
}

// Post implements Loop.
func (l *netLoop) Post(f func()) bool {
	ok, wake := l.posts.push(f)
	if wake {
		l.signal()
	}
	return ok
}

func (l *netLoop) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Stop implements Loop.
func (l *netLoop) Stop() { l.Post(func() { l.stopping.Store(true) }) }

func (l *netLoop) shut() {
	l.posts.done.Store(true)
	l.doors.shut() // first, see epollLoop.shut
	l.posts.run()  // connections handed over just now are closed too
	l.closeAll()
}

// Listen implements Loop.
func (l *netLoop) Listen(addr string) (net.Addr, error) { return l.doors.listen(addr) }

func (l *netLoop) accepted(s *netSocket) {
	if l.full() {
		_ = s.nc.Close()
		return
	}
	l.stats.Accepted++
	c := &Conn{sock: s, door: uint16(s.door)}
	s.conn = c
	l.secure(c, &s.secured)
	l.add(c)
	l.start(s, c, s.nc.RemoteAddr())
}

// serve starts the goroutines of a connection.
func (l *netLoop) serve(s *netSocket) {
	s.rbuf = make([]byte, min(firstRead, l.cfg.ReadBuffer))
	s.next = make(chan struct{}, 1)
	s.out = make(chan []byte, 1)
	s.gone = make(chan struct{})
	s.try = newTryWriter(s.nc)
	go s.readLoop()
	go s.writeLoop()
}

// start begins to serve an established connection.
func (l *netLoop) start(s *netSocket, c *Conn, remote net.Addr) {
	if t, ok := s.nc.(*net.TCPConn); ok {
		_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3})
	}
	l.serve(s)
	l.begin(c, remote)
	if !c.closing && !c.paused && !c.waiting {
		s.startRead()
	}
}

// Dial implements Loop.
func (l *netLoop) Dial(addr string, tag any) *Conn {
	c := &Conn{Tag: tag, dialled: true, prompt: true, remote: addr}
	s := &netSocket{l: l, conn: c}
	s.prompt.Store(true)
	c.sock = s
	l.add(c)
	c.by = l.clock.mono + int64(l.cfg.DialTimeout)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), l.cfg.DialTimeout)
		defer cancel()
		var err error
		s.dialled, err = l.cfg.dial(ctx, addr)
		if !l.send(netEvent{kind: netDialled, s: s, err: err}) && err == nil {
			_ = s.dialled.nc.Close()
		}
	}()
	return c
}

func (l *netLoop) dialDone(s *netSocket, err error) {
	c := s.conn
	switch {
	case c.closing:
		if err == nil {
			_ = s.dialled.nc.Close()
		}
	case err != nil:
		c.Close(fmt.Errorf("connect to %s: %w", c.remote, err))
	default:
		s.secured = *s.dialled
		l.secure(c, &s.secured)
		l.start(s, c, s.nc.RemoteAddr())
	}
}
