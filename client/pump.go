package client

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// pump moves frames for the goroutines that wait for answers, without one of its own: one of the
// waiting goroutines leads, that is, it reads the socket and hands out what arrives, and the others
// follow. A single goroutine writes and reads the socket itself, without a scheduler hand-off.
//
// mu guards everything, the owner's state too. Methods are called with mu held
// and return with mu held; only socket calls and callbacks happen without it.
type pump struct {
	mu    sync.Mutex
	conn  *conn // nil while there is no connection
	owner pumpOwner
	now   int64   // monotonic time of the last read, or of the running callbacks
	first *waiter // followers, oldest first
	last  *waiter
}

// pumpOwner is the meaning of frames: a session or a caller.
type pumpOwner interface {
	// onFrame handles one frame. An error ends the connection.
	onFrame(c *conn, frame []byte) error
	// onBroken runs after c stopped being the pump's connection.
	onBroken(c *conn, cause error)
	// onPause runs whenever a read returns: it checks deadlines and runs
	// callbacks. It may unlock mu meanwhile.
	onPause(c *conn, now int64)
}

// conn is one connection of a pump. Buffers belong to it, so that a reader of a
// connection that is gone cannot disturb the next one.
type conn struct {
	st       stream
	addr     string
	version  uint16   // of the protocol that both speak
	who      Identity // whom the node takes the client for, by its token
	in       []byte   // in[r:w] is read and not handled yet
	r, w     int
	reading  bool // a goroutine leads
	writing  bool
	stalled  bool   // the peer did not read for a tick
	heard    bool   // something came since heardAt was set
	heardAt  int64  // about when something came last
	reads    uint64 // how often something came
	pingedAt int64  // when a Ping was last sent
	out      []byte // frames waiting for a writer
	rest     []byte // what the last write left, goes before out
	whole    []byte // the buffer rest is the end of
	spare    []byte // an empty buffer to become out
}

const (
	readBuffer = 16 << 10
	// readerBuffer is for answers that carry orders: a batch of 64 in one read.
	readerBuffer = 64 << 10
	// keepBuffer is the largest write buffer kept for reuse.
	keepBuffer = 1 << 20
)

func newConn(st stream, addr string) *conn {
	return &conn{st: st, addr: addr, in: make([]byte, readBuffer)}
}

// grow is for a connection of which nothing is read yet.
func (c *conn) grow(n int) {
	in := make([]byte, n)
	c.r, c.w = 0, copy(in, c.in[c.r:c.w])
	c.in = in
}

// waiter is a parked goroutine: listed among the followers while it sleeps.
type waiter struct {
	ch         chan struct{} // capacity 1; a token means: look again
	next, prev *waiter
	listed     bool
	wantsRoom  bool // waits for room in the window, not for an answer
}

func newWaiter() waiter { return waiter{ch: make(chan struct{}, 1)} }

var waiters = sync.Pool{New: func() any { w := newWaiter(); return &w }}

func (w *waiter) signal() {
	select {
	case w.ch <- struct{}{}:
	default:
	}
}

func (p *pump) list(w *waiter) {
	if w.listed {
		return
	}
	w.listed, w.prev, w.next = true, p.last, nil
	if p.last != nil {
		p.last.next = w
	} else {
		p.first = w
	}
	p.last = w
}

func (p *pump) unlist(w *waiter) {
	if !w.listed {
		return
	}
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		p.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		p.last = w.prev
	}
	w.listed, w.next, w.prev = false, nil, nil
}

// wait leads one read, or sleeps until signalled or ctx is done. The caller
// loops until what it waits for is there, then calls leave.
func (p *pump) wait(ctx context.Context, w *waiter, until int64) {
	if p.leads() {
		p.unlist(w)
		p.lead(p.conn, until)
		return
	}
	p.list(w)
	p.mu.Unlock()
	select {
	case <-w.ch:
	case <-ctx.Done():
	}
	p.mu.Lock()
}

// leads reports whether the next one that waits reads the socket.
func (p *pump) leads() bool { return p.conn != nil && !p.conn.reading }

// leave ends waiting. If no goroutine leads now, the oldest follower is woken to lead.
func (p *pump) leave(w *waiter) {
	p.unlist(w)
	select {
	case <-w.ch:
	default:
	}
	p.promote()
}

func (p *pump) promote() {
	if p.first != nil && p.conn != nil && !p.conn.reading {
		p.first.signal()
	}
}

func (p *pump) wakeAll() {
	for w := p.first; w != nil; w = w.next {
		w.signal()
	}
}

// lead reads once and handles what came.
func (p *pump) lead(c *conn, until int64) {
	c.reading = true
	buf := c.space()
	p.mu.Unlock()
	n, err := c.st.Read(buf, until)
	p.mu.Lock()
	now := nanotime()
	p.now = now
	if p.conn == c {
		switch {
		case err == nil:
			c.w += n
			c.heard = true
			c.reads++
			p.handle(c)
		case !errors.Is(err, errTick):
			p.fail(c, err)
		}
	}
	p.owner.onPause(c, now) // even if c is gone: answers may have come before its end
	if p.conn == c {
		p.flush(c, true) // what callbacks queued, or a slow peer left
	}
	c.reading = false
}

// space makes room behind the bytes read so far: for the rest of a large frame
// exactly what it needs, which the frame limit bounds.
func (c *conn) space() []byte {
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
	need := wire.Need(c.in[c.r:c.w])
	if need > len(c.in) {
		grown := make([]byte, min(need, wire.MaxFrame))
		c.w = copy(grown, c.in[c.r:c.w])
		c.r, c.in = 0, grown
	} else if c.r > 0 && (c.r+need > len(c.in) || c.w == len(c.in)) {
		c.w = copy(c.in, c.in[c.r:c.w])
		c.r = 0
	}
	return c.in[c.w:]
}

func (p *pump) handle(c *conn) {
	for p.conn == c {
		frame, rest, err := wire.Split(c.in[c.r:c.w])
		if err != nil {
			p.fail(c, &ProtocolError{Address: c.addr, What: "undecodable bytes", Cause: err})
			return
		}
		if frame == nil {
			return
		}
		c.r = c.w - len(rest)
		if err := p.owner.onFrame(c, frame); err != nil {
			p.fail(c, err)
			return
		}
	}
}

// fail drops the connection; the first of several failures of one connection is kept.
func (p *pump) fail(c *conn, cause error) {
	if p.conn != c {
		return
	}
	p.conn = nil
	c.st.Close() //nolint:errcheck // it is broken already
	p.owner.onBroken(c, cause)
}

// flush writes what is queued, unless another goroutine is writing. Orders that arrive meanwhile go
// out with the next write, in one piece. While the peer does not read, only the leader tries (once
// after each of its own reads, so that answers are taken too), and other goroutines are not
// blocked.
func (p *pump) flush(c *conn, leader bool) {
	if c.writing || c.stalled && !leader {
		return
	}
	c.writing = true
	for p.conn == c && (len(c.rest) > 0 || len(c.out) > 0) {
		if len(c.rest) == 0 {
			c.rest, c.out, c.whole = c.out, c.spare[:0], c.out[:0]
			c.spare = nil
		}
		buf := c.rest
		p.mu.Unlock()
		n, err := writeAll(c.st, buf)
		p.mu.Lock()
		c.rest = buf[n:]
		if len(c.rest) == 0 && cap(c.whole) <= keepBuffer {
			c.spare = c.whole
		}
		if c.stalled = errors.Is(err, errTick); c.stalled {
			break
		}
		if err != nil {
			p.fail(c, err)
		}
	}
	c.writing = false
}

func writeAll(st stream, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var k int
		k, err = st.Write(buf[n:])
		n += k
	}
	return n, err
}

// never is a deadline that does not come.
const never = math.MaxInt64
