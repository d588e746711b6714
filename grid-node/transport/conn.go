package transport

import (
	"crypto/x509"
	"errors"
	"math"
	"time"
	"unsafe"

	"github.com/ordergrid/ordergrid/internal/prefetch"
)

// Conn is one connection of a Loop. All methods are for the loop only. There may be many thousands at rest, so what is rare
// is apart, and what is bounded has the size it needs.
type Conn struct {
	// Tag belongs to the handler.
	Tag any

	id     uint64
	core   *core
	remote string
	peer   *peer // nil: without TLS
	cause  error
	sock   connSocket
	guard  *protection // nil: plain bytes
	moving *moving     // nil: HandOver was not called

	partialAt int64  // Mono since an incomplete frame is pending; 0 = none
	out       []byte // out[off:] is not written yet
	in        []byte // received, not consumed
	off       int
	inflight  int   // bytes a writer goroutine holds (KindNet)
	blockedAt int64 // Mono since output makes no progress; 0 = not blocked
	by        int64 // Mono: deadline of a dial, or of a lingering connection whose output is written; 0 = neither

	soft, hard int32
	maxIn      int32
	frameTime  int32  // ms in which a frame has to be complete; 0 = any
	discarded  int32  // bytes read and discarded while lingering
	countedOut int32  // of Buffered, in turns.unread
	countedIn  int32  // of cap(in), in turns.input
	door       uint16 // index of the Listen that accepted it
	visits     uint8  // deliveries fully consumed, see provenAfter
	idleOut    uint8  // flushes since out was last well used, for shrinking

	dialled bool
	open    bool // OnOpen was called
	closing bool // in core.closing, or already closed
	closed  bool
	dirty   bool  // in core.dirty
	resume  bool  // in core.resumed
	paused  bool  // reading stopped by back-pressure
	waits   bool  // the handler stopped consuming until the connection's turn
	waiting bool  // in turns.queue; reading is stopped
	later   bool  // in turns.long
	exempt  bool  // see Exempt
	prompt  bool  // its input is read before that of others, see Urgent
	linger  bool  // close as soon as the output is written
	ended   bool  // the peer sent its end of stream
	usedIn  uint8 // what in was needed for since the last trimInput: 0, aShort or aLong frame
}

const (
	aShort = 1
	aLong  = 2
)

// peer is who the other side of a TLS connection has proved to be.
type peer struct{ chain []*x509.Certificate }

// moving is where a connection is handed over to.
type moving struct {
	to   Loop
	tag  any // there
	rest []byte
}

// dialling reports whether a connection attempt is under way.
func (c *Conn) dialling() bool { return !c.open && c.by != 0 }

// ID is unique within the process and never reused.
func (c *Conn) ID() uint64 { return c.id }

// Remote returns the peer's "ip:port".
func (c *Conn) Remote() string { return c.remote }

// Door returns the index of the Loop.Listen call that accepted the connection; 0 for one
// that was dialled.
func (c *Conn) Door() int { return int(c.door) }

// Certificate returns the peer's verified certificate; nil without TLS.
func (c *Conn) Certificate() *x509.Certificate {
	if chain := c.Chain(); len(chain) > 0 {
		return chain[0]
	}
	return nil
}

// Chain is Certificate followed by the peer's intermediate ones.
func (c *Conn) Chain() []*x509.Certificate {
	if c.peer == nil {
		return nil
	}
	return c.peer.chain
}

// TLS reports whether this is a TLS connection; a loop with TLS may have plain ones too.
func (c *Conn) TLS() bool { return c.peer != nil }

// Dialled reports whether this side opened the connection.
func (c *Conn) Dialled() bool { return c.dialled }

// Open reports whether the connection is established and not being closed.
func (c *Conn) Open() bool { return c.open && !c.closing && !c.linger }

// SetLimits replaces Config.SoftOut and Config.HardOut, both in bytes, once the handler
// has identified the peer. soft 0 means: never pause reading.
func (c *Conn) SetLimits(soft, hard int) {
	c.soft, c.hard = int32(min(soft, math.MaxInt32)), int32(min(hard, math.MaxInt32))
}

// SetMaxInput replaces Config.MaxInput, in bytes, once the handler has identified the peer.
func (c *Conn) SetMaxInput(n int) { c.maxIn = int32(min(n, math.MaxInt32)) }

// SetSendBuffer bounds what the kernel holds of output that the peer has not received, to
// about twice as many bytes, and what it holds beyond the peer's window to a quarter as
// many and a segment (on Linux). Without it the kernel decides: megabytes, for each
// connection. An error means that the connection is about to end.
func (c *Conn) SetSendBuffer(bytes int) { c.sock.setSendBuffer(bytes) }

// SetFrameTime closes the connection, with ErrUnfinished, when a frame is not complete so
// long after its first bytes. 0, the default: no limit.
func (c *Conn) SetFrameTime(d time.Duration) {
	c.frameTime = int32(min((d+time.Millisecond-1)/time.Millisecond, math.MaxInt32))
}

// Buffered returns how many bytes wait to be sent.
func (c *Conn) Buffered() int {
	n := len(c.out) - c.off + c.inflight
	if c.guard != nil {
		n += len(c.guard.plain)
	}
	return n
}

// Backlogged reports that a handler must not consume more input now.
func (c *Conn) Backlogged() bool {
	return (c.soft > 0 && c.Buffered() > int(c.soft)) || c.closing || c.linger
}

// Out returns the output buffer to append to; hand the result to SetOut.
func (c *Conn) Out() []byte {
	if c.guard != nil {
		return c.guard.plain
	}
	return c.out
}

// Ahead starts to load what Out, SetOut and the write behind them need, without waiting: where thousands of connections are
// sent to in turn, none of it is in a cache.
func (c *Conn) Ahead() {
	prefetch.Line(unsafe.Pointer(c))
	prefetch.Line(unsafe.Pointer(&c.sock))
	prefetch.Line(unsafe.Pointer(&c.off))
	prefetch.Line(unsafe.Pointer(&c.usedIn))
}

// SetOut takes the extended output buffer back. It is written after OnWakeEnd. Over the
// hard limit the connection is closed with ErrOutputFull: frames of a stream cannot be
// dropped.
func (c *Conn) SetOut(b []byte) {
	if c.closing || c.linger {
		return
	}
	if c.guard != nil {
		c.guard.plain = b
	} else {
		c.out = b
	}
	c.touched()
	if c.Buffered() > int(c.hard) {
		c.core.stats.SlowPeers++
		c.Close(ErrOutputFull)
	}
}

// touched schedules the output to be written at the end of this wake-up.
func (c *Conn) touched() {
	if !c.dirty {
		c.dirty = true
		c.core.dirty = append(c.core.dirty, c)
	}
}

// Close closes the connection at the end of this wake-up without writing buffered output.
// err is passed to OnClose; nil stands for ErrClosed.
func (c *Conn) Close(err error) {
	if c.closing {
		return
	}
	if err == nil {
		err = ErrClosed
	}
	c.closing, c.cause = true, err
	c.core.closing = append(c.core.closing, c)
}

// CloseAfterFlush writes buffered output, half-closes, and closes once the peer did too or
// after a second. Input that still arrives is read and discarded: closing a socket with
// unread input would reset it, and the peer could lose the final message with the reason.
func (c *Conn) CloseAfterFlush(err error) {
	if c.closing || c.linger {
		return
	}
	if err == nil {
		err = ErrClosed
	}
	if !c.open {
		c.Close(err)
		return
	}
	c.sayEnd(nil)
	c.linger, c.cause, c.in = true, err, nil
	if (c.paused || c.waiting) && !c.ended {
		c.paused, c.waiting = false, false
		c.sock.setReading(c, true)
	}
	if c.Buffered() == 0 {
		c.finish()
	}
}

// endOfInput closes a connection whose peer has ended its stream, after this wake-up's
// output to it: the peer may have closed only its half.
func (c *Conn) endOfInput() {
	if c.ended { // its records ended before, now the stream
		return
	}
	c.ended = true
	c.sock.setReading(c, false)
	switch {
	case !c.linger:
		c.CloseAfterFlush(ErrPeerClosed)
	case c.Buffered() == 0:
		c.Close(c.cause)
	}
}

// finish half-closes a lingering connection whose output is written. A peer that closed
// its half may still be reading: it is waited for as long as for any slow reader, since
// the kernel does not limit the output of a closed connection.
func (c *Conn) finish() {
	patience := lingerTime
	if c.ended {
		if c.received() {
			c.Close(c.cause)
			return
		}
		patience = c.core.cfg.WriteStall
	}
	if c.by == 0 {
		c.by = c.core.clock.mono + int64(patience)
		c.sock.shutdownWrite(c)
	}
}

// received reports whether the peer has received all output, or never will receive the rest.
func (c *Conn) received() bool { return c.sock.unsent() == 0 || c.sock.dead() }

// discard counts input of a lingering connection.
func (c *Conn) discard(n int) {
	if c.discarded += int32(n); c.discarded > maxDiscard {
		c.Close(c.cause)
	}
}

// held returns the memory of the connection's buffers in bytes.
func (c *Conn) held() int {
	n := cap(c.in) + cap(c.out) + c.inflight
	if c.guard != nil {
		n += c.guard.held()
	}
	return n
}

// trimInput releases an input buffer that was not needed since the last call, a large one
// that was not needed for a long frame: a connection at rest has none. Releasing it as soon
// as it is empty would reallocate it for every other batch of a busy peer.
func (c *Conn) trimInput() {
	const keep = 64 << 10
	if len(c.in) == 0 && (c.usedIn == 0 || c.usedIn != aLong && cap(c.in) > keep) {
		c.in = nil
	}
	if g := c.guard; g != nil && len(g.raw) == 0 && (c.usedIn == 0 || cap(g.raw) > keep) {
		g.raw = nil
	}
	c.usedIn = 0
}

// drained is called by a socket once all output was handed to the kernel.
func (c *Conn) drained() {
	const keep = 1 << 20
	// A buffer that a burst enlarged is released after many small flushes.
	if cap(c.out) > keep && len(c.out) < keep/8 {
		if c.idleOut++; c.idleOut > 64 {
			c.out, c.idleOut = nil, 0
		}
	} else {
		c.idleOut = 0
	}
	c.out, c.off, c.blockedAt = c.out[:0], 0, 0
	if c.countedOut != 0 {
		c.core.countOut(c)
	}
	if c.linger && c.inflight == 0 {
		c.finish()
	}
}

// wrote counts n bytes accepted by the kernel.
func (c *Conn) wrote(n int) {
	c.core.stats.Writes++
	c.core.stats.BytesOut += uint64(n)
	if c.blockedAt != 0 {
		c.blockedAt = c.core.clock.mono
	}
	c.mayResume()
}

// mayResume schedules a paused connection's input for re-delivery once half of
// the soft limit is free.
func (c *Conn) mayResume() {
	if c.paused && !c.resume && c.Buffered() <= int(c.soft)/2 {
		c.resume = true
		c.core.resumed = append(c.core.resumed, c)
	}
}

const (
	lingerTime = time.Second
	maxDiscard = 4 << 20
)

var errConsumed = errors.New("transport: handler consumed more than it was given")
