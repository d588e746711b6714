package transport

import (
	"crypto/x509"
	"errors"
	"time"
)

// Conn is one connection of a Loop. All methods are for the loop only.
type Conn struct {
	// Tag belongs to the handler.
	Tag any

	id      uint64
	core    *core
	remote  string
	chain   []*x509.Certificate
	tls     bool
	door    int // index of the Listen that accepted it
	dialled bool
	open    bool // OnOpen was called
	closing bool // in core.closing, or already closed
	closed  bool
	dirty   bool // in core.dirty
	resume  bool // in core.resumed
	paused  bool // reading stopped by back-pressure
	waits   bool // the handler stopped consuming until the connection's turn
	waiting bool // in turns.queue; reading is stopped
	later   bool // in turns.long
	exempt  bool // see Exempt
	prompt  bool // its input is read before that of others, see Urgent
	linger  bool // close as soon as the output is written
	ended   bool // the peer sent its end of stream
	cause   error

	soft, hard int
	maxIn      int
	frameTime  int64  // ns in which a frame has to be complete; 0 = any
	partialAt  int64  // Mono since an incomplete frame is pending; 0 = none
	out        []byte // out[off:] is not written yet
	off        int
	inflight   int   // bytes a writer goroutine holds (KindNet)
	blockedAt  int64 // Mono since output makes no progress; 0 = not blocked
	dialBy     int64 // deadline of a dial in Mono; 0 = not dialling
	lingerBy   int64 // deadline of a lingering connection in Mono
	discarded  int   // bytes read and discarded while lingering
	idleOut    int   // flushes since out was last well used, for shrinking
	visits     int   // deliveries fully consumed, see provenAfter

	countedOut int // of Buffered, in turns.unread
	countedIn  int // of cap(in), in turns.input

	in     []byte // received, not consumed
	longIn bool   // in was needed for a long frame since the last trimInput

	to     Loop // HandOver: target of HandOver,
	toTag  any  // its Tag there,
	toRest []byte

	guard *protection // nil: plain bytes

	sock connSocket
}

// ID is unique within the process and never reused.
func (c *Conn) ID() uint64 { return c.id }

// Remote returns the peer's "ip:port".
func (c *Conn) Remote() string { return c.remote }

// Door returns the index of the Loop.Listen call that accepted the connection; 0 for one
// that was dialled.
func (c *Conn) Door() int { return c.door }

// Certificate returns the peer's verified certificate; nil without TLS.
func (c *Conn) Certificate() *x509.Certificate {
	if len(c.chain) == 0 {
		return nil
	}
	return c.chain[0]
}

// Chain is Certificate followed by the peer's intermediate ones.
func (c *Conn) Chain() []*x509.Certificate { return c.chain }

// TLS reports whether this is a TLS connection; a loop with TLS may have plain ones too.
func (c *Conn) TLS() bool { return c.tls }

// Dialled reports whether this side opened the connection.
func (c *Conn) Dialled() bool { return c.dialled }

// Open reports whether the connection is established and not being closed.
func (c *Conn) Open() bool { return c.open && !c.closing && !c.linger }

// SetLimits replaces Config.SoftOut and Config.HardOut, both in bytes, once the handler
// has identified the peer. soft 0 means: never pause reading.
func (c *Conn) SetLimits(soft, hard int) { c.soft, c.hard = soft, hard }

// SetMaxInput replaces Config.MaxInput, in bytes, once the handler has identified the peer.
func (c *Conn) SetMaxInput(n int) { c.maxIn = n }

// SetSendBuffer bounds what the kernel holds of output that the peer has not received, to
// about twice as many bytes, and what it holds beyond the peer's window to a quarter as
// many and a segment (on Linux). Without it the kernel decides: megabytes, for each
// connection. An error means that the connection is about to end.
func (c *Conn) SetSendBuffer(bytes int) { c.sock.setSendBuffer(bytes) }

// SetFrameTime closes the connection, with ErrUnfinished, when a frame is not complete so
// long after its first bytes. 0, the default: no limit.
func (c *Conn) SetFrameTime(d time.Duration) { c.frameTime = int64(d) }

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
	return (c.soft > 0 && c.Buffered() > c.soft) || c.closing || c.linger
}

// Out returns the output buffer to append to; hand the result to SetOut.
func (c *Conn) Out() []byte {
	if c.guard != nil {
		return c.guard.plain
	}
	return c.out
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
	if c.Buffered() > c.hard {
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
		if c.sock.unsent() == 0 {
			c.Close(c.cause)
			return
		}
		patience = c.core.cfg.WriteStall
	}
	if c.lingerBy == 0 {
		c.lingerBy = c.core.clock.mono + int64(patience)
		c.sock.shutdownWrite(c)
	}
}

// discard counts input of a lingering connection.
func (c *Conn) discard(n int) {
	if c.discarded += n; c.discarded > maxDiscard {
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

// trimInput releases a large input buffer that was not needed since the last call.
// Releasing it as soon as it is empty would reallocate it for every other batch of a busy
// peer.
func (c *Conn) trimInput() {
	const keep = 64 << 10
	if !c.longIn && len(c.in) == 0 && cap(c.in) > keep {
		c.in = nil
	}
	if g := c.guard; g != nil && len(g.raw) == 0 && cap(g.raw) > keep {
		g.raw = nil
	}
	c.longIn = false
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
	if c.paused && !c.resume && c.Buffered() <= c.soft/2 {
		c.resume = true
		c.core.resumed = append(c.core.resumed, c)
	}
}

const (
	lingerTime = time.Second
	maxDiscard = 4 << 20
)

var errConsumed = errors.New("transport: handler consumed more than it was given")
