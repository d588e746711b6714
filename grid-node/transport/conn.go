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
	door    int // which Listen accepted it, from 0
	dialled bool
	open    bool // OnOpen was called
	closing bool // in core.closing, or already closed
	closed  bool
	dirty   bool // in core.dirty
	resume  bool // in core.resumed
	paused  bool // reading stopped by back-pressure
	waits   bool // the handler stopped consuming until it is the connection's turn
	waiting bool // in turns.queue; reading is stopped
	later   bool // in turns.long
	exempt  bool // see Exempt
	prompt  bool // its input is read before that of others, see Urgent
	linger  bool // close as soon as the output is written
	ended   bool // the peer sent its end of stream
	cause   error

	soft, hard int
	frameTime  int64  // ns in which a frame has to be complete; 0 = any
	partialAt  int64  // Mono since when an incomplete frame is here; 0 = none
	out        []byte // out[off:] is not written yet
	off        int
	inflight   int   // bytes a writer goroutine holds (KindNet)
	blockedAt  int64 // Mono since when output makes no progress; 0 = not blocked
	dialBy     int64 // Mono until when a dial may take; 0 = not dialling
	lingerBy   int64 // Mono until when a lingering connection waits for the peer's end
	discarded  int   // bytes read and thrown away while lingering
	idleOut    int   // flushes since out was last well used, for shrinking
	visits     int   // deliveries that left nothing over, see provenAfter

	countedOut int // of Buffered, in turns.unread
	countedIn  int // of cap(in), in turns.input

	in     []byte // received, not consumed
	longIn bool   // in was needed for a long frame since the last trimInput

	to     Loop // HandOver: who gets the connection,
	toTag  any  // as what,
	toRest []byte

	guard *protection // nil: what is read and written is what the handler gets and gives

	sock connSocket
}

// ID is unique within the process and never reused.
func (c *Conn) ID() uint64 { return c.id }

// Remote is the peer's "ip:port".
func (c *Conn) Remote() string { return c.remote }

// Door is which call of Loop.Listen accepted the connection, counted from 0; 0 for one that was dialled.
func (c *Conn) Door() int { return c.door }

// Certificate is what the peer proved to be, verified by the handshake; nil
// without TLS.
func (c *Conn) Certificate() *x509.Certificate {
	if len(c.chain) == 0 {
		return nil
	}
	return c.chain[0]
}

// Chain is Certificate with the intermediate ones the peer sent behind it.
func (c *Conn) Chain() []*x509.Certificate { return c.chain }

// TLS reports whether the connection is a TLS one; of a loop with TLS not all need be.
func (c *Conn) TLS() bool { return c.tls }

// Dialled reports whether this side opened the connection.
func (c *Conn) Dialled() bool { return c.dialled }

// Open reports whether the connection is established and not being closed.
func (c *Conn) Open() bool { return c.open && !c.closing && !c.linger }

// SetLimits replaces Config.SoftOut and Config.HardOut, both in bytes, once the
// handler knows who is at the other end. soft 0 means: never pause reading.
func (c *Conn) SetLimits(soft, hard int) { c.soft, c.hard = soft, hard }

// SetSendBuffer bounds what the kernel holds of output that the peer has not received, to
// about twice as many bytes, and what it holds beyond what the peer's window has room for
// to a quarter as many and a segment (on Linux). Without it the kernel decides: megabytes,
// for each connection. An error is that of a connection about to end.
func (c *Conn) SetSendBuffer(bytes int) { c.sock.setSendBuffer(bytes) }

// SetFrameTime closes the connection, with ErrUnfinished, when a frame is not complete
// so long after its first bytes. 0, as at first: a frame may take any time.
func (c *Conn) SetFrameTime(d time.Duration) { c.frameTime = int64(d) }

// Buffered is how many bytes wait to be sent.
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

// SetOut takes the extended output buffer back. It is written after OnWakeEnd.
// Over the hard limit the connection is closed with ErrOutputFull: its frames
// are a stream, so dropping one silently is not a choice.
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

// touched has the output written at the end of this wake-up.
func (c *Conn) touched() {
	if !c.dirty {
		c.dirty = true
		c.core.dirty = append(c.core.dirty, c)
	}
}

// Close closes the connection at the end of this wake-up without writing what is
// buffered. err is handed to OnClose; nil stands for ErrClosed.
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

// CloseAfterFlush writes what is buffered, half-closes, and closes once the peer
// did too or after a second. What still arrives is read and thrown away: closing
// a socket with unread input would reset it, and the peer could lose the very
// message that says why.
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

// endOfInput closes a connection whose peer will send nothing more, after what
// this wake-up had to say to it: the peer may have closed only its half.
func (c *Conn) endOfInput() {
	if c.ended { // of its records before, of the stream now
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

// finish half-closes a lingering connection whose output is written. A peer that said
// it will send nothing more may still be reading: it is waited for as long as for any
// that reads slowly, for what the kernel keeps of a closed connection nobody bounds.
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

// discard accounts input of a lingering connection.
func (c *Conn) discard(n int) {
	if c.discarded += n; c.discarded > maxDiscard {
		c.Close(c.cause)
	}
}

// held is the memory of the connection's buffers in bytes.
func (c *Conn) held() int {
	n := cap(c.in) + cap(c.out) + c.inflight
	if c.guard != nil {
		n += c.guard.held()
	}
	return n
}

// trimInput gives a large input buffer back that was not needed since the last
// call. To give it back as soon as it is empty would allocate it anew for every
// other batch that a busy peer sends.
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
	// A buffer that a burst made large is given back after many small flushes.
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

// wrote accounts n bytes accepted by the kernel.
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
