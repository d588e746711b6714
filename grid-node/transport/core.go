package transport

import (
	"net"
	"sync/atomic"
	"time"
)

// connSocket is the part that differs between the implementations, per connection.
type connSocket interface {
	// write passes pending output of c to the kernel, or arranges that.
	write(c *Conn)
	// ahead starts to load what write needs.
	ahead()
	// setReading switches reading on or off.
	setReading(c *Conn, on bool)
	// setPrompt moves the connection to those whose input is read first, or back.
	setPrompt(c *Conn, on bool)
	// shutdownWrite sends the end of the stream.
	shutdownWrite(c *Conn)
	// unsent returns how many bytes the kernel holds that the peer has not received.
	unsent() int
	// dead reports whether the connection has ended on both sides, as after a reset: what is
	// unsent then is never received.
	dead() bool
	// setSendBuffer is SO_SNDBUF, and TCP_NOTSENT_LOWAT where there is one.
	setSendBuffer(bytes int)
	// release closes the socket; reset: the kernel drops pending output.
	release(c *Conn, reset bool)
	// accepts reports whether the socket can be handed over to a loop.
	accepts(to Loop) error
	// handOver gives the socket to c.moving.to.
	handOver(c *Conn)
	// info asks the kernel.
	info() (SocketInfo, error)
}

// core is shared by both loops: connection bookkeeping, input delivery, back-pressure and
// the order of work within one wake-up.
type core struct {
	cfg   Config
	h     Handler
	after Afterwards // h, if it is one
	paced Paced      // h, if it is one
	clock *Clock

	conns    map[uint64]*Conn
	outgoing int // of conns: dialled
	nextID   uint64
	dirty    []*Conn
	closing  []*Conn
	resumed  []*Conn
	turns    turns
	share    share
	patient  []*Conn // whose output waits for prompt ones, in this flush
	nextTick int64
	sweepAt  int64
	stats    Stats
	posts    postQueue
	doors    *doors // nil: the loop accepts itself
	stopping atomic.Bool
}

func newCore(cfg Config, h Handler) core {
	after, _ := h.(Afterwards)
	paced, _ := h.(Paced)
	return core{cfg: cfg, h: h, after: after, paced: paced, clock: newClock(), conns: map[uint64]*Conn{}, turns: turns{left: cfg.Work, outLeft: cfg.Work}}
}

func (l *core) Clock() *Clock { return l.clock }

func (l *core) Stats() Stats {
	s := l.stats
	s.Conns, s.Waiting = len(l.conns), l.turns.queue.len()
	s.Unread, s.InputHeld = l.turns.unread, l.turns.input
	s.Rests = l.share.rests
	l.greeting().count(&s)
	return s
}

// greeting holds the handshakes in progress; nil without TLS.
func (l *core) greeting() *handshakes {
	if l.doors == nil {
		return nil
	}
	return l.doors.handshakes
}

// add registers a connection.
func (l *core) add(c *Conn) {
	l.nextID++
	c.id, c.core = l.nextID, l
	c.SetLimits(l.cfg.SoftOut, l.cfg.HardOut)
	c.SetMaxInput(l.cfg.MaxInput)
	l.conns[c.id] = c
	if c.dialled {
		l.outgoing++
	}
}

// opened announces an established connection.
func (l *core) opened(c *Conn, remote net.Addr) {
	c.open, c.by = true, 0
	if len(c.out) > 0 { // queued while dialling
		c.SetOut(c.out)
	}
	if remote != nil {
		c.remote = remote.String()
	}
	l.h.OnOpen(c)
}

// deliver presents received bytes and returns those not consumed. They may alias data.
func (l *core) deliver(c *Conn, data []byte) []byte {
	if c.Backlogged() {
		l.pause(c)
		return data
	}
	plain, unsent := c.guard == nil, c.Buffered()
	n, err := l.h.OnFrames(c, data)
	if n < 0 || n > len(data) {
		panic(errConsumed)
	}
	rest := data[n:]
	if plain && c.guard != nil && err == nil { // the rest came in records
		return l.guardBegins(c, rest)
	}
	c.keepRest(rest)
	switch {
	case c.frameTime == 0:
	case len(rest) == 0:
		c.partialAt = 0
	case n > 0 || c.partialAt == 0:
		c.partialAt = l.clock.mono
	}
	switch {
	case err != nil:
		c.CloseAfterFlush(err)
	case c.closing || c.linger:
	case c.Backlogged():
		c.waits = false
		l.pause(c)
	case c.waits:
		l.await(c)
	case len(rest) > int(c.maxIn):
		c.Close(ErrInputFull)
	case !c.prompt && n > 0 && len(rest) == 0 && unsent == 0:
		c.visited()
	}
	return rest
}

func (l *core) pause(c *Conn) {
	if !c.paused {
		c.paused, c.partialAt = true, 0 // complete frames are here too
		l.stats.Paused++
		c.sock.setReading(c, false)
	}
	c.mayResume()
}

// settle ends a wake-up: closes, re-deliveries, OnWakeEnd, writes; repeated while a write
// closed a connection. Connections that the writes allow to resume wait for the next
// wake-up, so that one with much output stays fair.
func (l *core) settle() {
	turns := l.turns.queue.len() > 0 && !l.share.turnsWait()
	if turns || len(l.resumed) > 0 {
		from := l.clock.fine()
		l.redeliver()
		if turns {
			l.takeTurns()
		}
		l.share.spent(from, l.clock.fine())
	}
	for {
		l.reap()
		l.h.OnWakeEnd()
		l.reap()
		l.flush()
		if len(l.closing) == 0 {
			break
		}
	}
	l.turns.next(l.cfg.Work, l.share.resting)
	if l.after != nil && l.after.OnWritten() {
		l.turns.again = true
	}
}

// wokeUp reports the duration of the wake-up that ends now.
func (l *core) wokeUp() {
	if l.cfg.WakeUp != nil {
		l.cfg.WakeUp(time.Since(l.clock.woke))
	}
}

func (l *core) reap() {
	// OnClose may close further connections: the slice grows while we walk it.
	for i := 0; i < len(l.closing); i++ {
		c := l.closing[i]
		c.closed = true
		delete(l.conns, c.id)
		if c.dialled {
			l.outgoing--
		}
		if c.moving != nil {
			c.sock.handOver(c)
		} else {
			l.release(c)
		}
		c.out, c.off, c.in, c.inflight, c.guard = nil, 0, nil, 0, nil
		l.countOut(c)
		l.countIn(c)
		if c.open || c.dialled {
			l.h.OnClose(c, c.cause)
		}
	}
	clear(l.closing)
	l.closing = l.closing[:0]
}

func (l *core) redeliver() {
	n := len(l.resumed)
	for _, c := range l.resumed[:n] {
		c.resume = false
		if c.closing || c.linger || c.Backlogged() {
			continue
		}
		c.paused = false
		l.deliverAgain(c)
	}
	l.resumed = l.resumed[:copy(l.resumed, l.resumed[n:])]
}

// deliverAgain presents the input that a connection holds, and reads on if the handler
// consumes it.
func (l *core) deliverAgain(c *Conn) {
	if len(c.in) > 0 {
		rest := l.deliver(c, c.in)
		c.in = c.in[:copy(c.in, rest)]
	}
	if !c.paused && !c.waiting && !c.closing {
		c.sock.setReading(c, true)
	}
}

// flush writes the output of the wake-up: to prompt connections first, short output and
// that of peers; then short output of others, then a part of the long outputs.
func (l *core) flush() {
	for i := 0; i < len(l.dirty); i++ {
		c := l.dirty[i]
		c.dirty = false
		switch {
		case c.closed || !c.open:
		case c.long():
			l.writeLater(c)
		case c.prompt:
			c.sock.write(c)
		default:
			l.patient = append(l.patient, c)
		}
	}
	clear(l.dirty)
	l.dirty = l.dirty[:0]
	if len(l.patient) == 0 && (l.turns.long.len() == 0 || l.share.resting) {
		return
	}
	from := l.clock.fine()
	for i, c := range l.patient {
		if i+2 < len(l.patient) {
			l.patient[i+2].sock.ahead()
		}
		if !c.closed {
			c.sock.write(c)
		}
	}
	clear(l.patient)
	l.patient = l.patient[:0]
	if !l.share.resting {
		l.writeLong()
	}
	l.share.spent(from, l.clock.fine())
}

// tick runs the handler's tick when it is due.
func (l *core) tick(now int64) bool {
	if now < l.nextTick {
		return false
	}
	now = l.clock.Exact()
	if now >= l.sweepAt {
		l.sweepAt = now + int64(250*time.Millisecond)
		if !l.sweep(now) {
			l.sweepAt = now + int64(l.cfg.Tick)
		}
	}
	l.h.OnTick()
	l.nextTick = now + l.interval()
	return true
}

// interval is the time to the next tick, in ns.
func (l *core) interval() int64 {
	if l.paced == nil {
		return int64(l.cfg.Tick)
	}
	return int64(max(l.paced.Rest(), l.cfg.Tick))
}

// hasten brings the next tick forward if the handler wants it sooner than before this
// wake-up, and returns in how many ns it is then; otherwise 0.
func (l *core) hasten() int64 {
	if l.paced == nil {
		return 0
	}
	in := l.interval()
	if l.clock.mono+in >= l.nextTick {
		return 0
	}
	l.nextTick = l.clock.mono + in
	return in
}

// sweep closes connections whose dial or output takes too long, and the largest ones while
// all buffers together, except those of Exempt connections, exceed Config.MaxMemory. It
// closes a few at a time, since closing one costs the kernel as much as an order costs the
// loop, and reports whether it is done.
func (l *core) sweep(now int64) bool {
	held := 0
	for _, c := range l.conns {
		if len(l.closing) >= sweptAtOnce {
			return false
		}
		switch {
		case c.closing:
		case c.dialling() && now > c.by:
			c.Close(ErrDialTimeout)
		case c.linger && c.by != 0 && (now > c.by || c.ended && c.received()):
			c.Close(c.cause)
		case c.blockedAt != 0 && now-c.blockedAt > int64(l.cfg.WriteStall):
			l.stats.SlowPeers++
			c.Close(ErrSlowReader)
		case c.partialAt != 0 && now-c.partialAt > int64(c.frameTime)*int64(time.Millisecond):
			l.stats.Unfinished++
			c.Close(ErrUnfinished)
		default:
			c.trimInput()
			l.countIn(c)
			if !c.exempt {
				held += c.held()
			}
		}
	}
	for held > l.cfg.MaxMemory && len(l.closing) < sweptAtOnce {
		var worst *Conn
		for _, c := range l.conns {
			if !c.closing && !c.exempt && (worst == nil || c.held() > worst.held()) {
				worst = c
			}
		}
		if worst == nil {
			return true
		}
		held -= worst.held()
		l.stats.SlowPeers++
		worst.Close(ErrMemory)
	}
	return held <= l.cfg.MaxMemory
}

// sweptAtOnce is how many connections one tick closes.
const sweptAtOnce = 16

// closeAll ends every connection when the loop stops.
func (l *core) closeAll() {
	for _, c := range l.conns {
		c.Close(ErrStopped)
	}
	l.reap()
}
