package transport

// Deferrable work. A wake-up does a bounded amount of it over all connections, so that
// urgent work, orders and messages between nodes, is never behind more than that.
// Connections with deferred work take turns.
//
// Below the bound nothing is queued, and all this costs a comparison or two.
type turns struct {
	queue   connQueue // connections whose input waits
	left    int       // of Config.Work, in this wake-up
	serving *Conn     // the connection whose turn it is
	share   int       // of its turn, left
	again   bool      // the next wake-up need not wait for anything

	long    connQueue // connections with long outputs that are not written
	outLeft int       // of Config.Work, in bytes written of long outputs

	unread int // unread output of all peers, see Config.MaxUnread
	input  int // see Config.MaxHeldInput
}

const (
	// turnShare is what one connection gets in one turn; each gets one piece of work.
	turnShare = 32 << 10
	// longOut exceeds the acknowledgements of a usual wake-up.
	longOut = 16 << 10
	// longPrompt exceeds those of a whole session window.
	longPrompt = 64 << 10
	// sampled connections are examined to find one to close.
	sampled = 8
)

// Turn reports whether the handler may do deferrable work for this connection now. It is
// called before each piece of such work, followed by Spend with the amount. If false, the
// handler stops consuming, and OnFrames is called again with the rest at the connection's
// turn.
func (c *Conn) Turn() bool {
	t := &c.core.turns
	if s := &c.core.share; t.left > 0 && !s.resting && (t.serving == nil && t.queue.len() == 0 && !s.crowd || t.serving == c && t.share > 0) {
		return true
	}
	c.waits = true
	return false
}

// Wait is Turn for a handler that knows that it may not continue: it stops consuming, and
// OnFrames is called again in a later wake-up, after another waiting connection.
func (c *Conn) Wait() { c.waits = true }

// Spend counts work done for the connection, in bytes of answers or an equivalent.
func (c *Conn) Spend(n int) {
	t := &c.core.turns
	t.left -= n
	t.share -= n
}

// Exempt excludes the connection from the bounds that all connections share: the process
// depends on it, and strangers must not affect it.
func (c *Conn) Exempt() {
	c.exempt = true
	c.setPrompt(true)
	c.core.countOut(c)
	c.core.countIn(c)
}

// await queues a connection whose input has to wait for its turn.
func (l *core) await(c *Conn) {
	c.waits = false
	if c.waiting {
		return
	}
	c.waiting, c.partialAt = true, 0
	l.stats.Waits++
	l.turns.queue.push(c)
	c.sock.setReading(c, false)
	c.setPrompt(false)
}

// takeTurns lets waiting connections continue, a share each, in rounds, as far as the work
// of this wake-up allows and any of them can continue.
func (l *core) takeTurns() {
	t := &l.turns
	for before := t.left + 1; t.left > 0 && t.left < before; {
		before = t.left
		for n := t.queue.len(); n > 0 && t.left > 0; n-- {
			c := t.queue.pop()
			if !c.waiting || c.closing {
				continue
			}
			c.waiting = false
			t.serving, t.share = c, turnShare
			l.deliverAgain(c)
		}
	}
	t.serving = nil
}

// next ends a wake-up. If no work was done, connections that wait for something else than
// their turn wait for an event like all others; during a rest they wait for its end.
func (t *turns) next(work int, resting bool) {
	t.again = !resting && (t.queue.len() > 0 && t.left < work || t.long.len() > 0)
	t.left, t.outLeft = work, work
}

// long reports whether the connection's output is written after that of others.
func (c *Conn) long() bool {
	n := len(c.out) - c.off
	return n > longOut && !c.exempt && (!c.prompt || n > longPrompt)
}

func (l *core) writeLater(c *Conn) {
	if !c.later {
		c.later = true
		l.turns.long.push(c)
	}
	l.countOut(c)
}

// writeLong writes long outputs, in turns.
func (l *core) writeLong() {
	t := &l.turns
	for n := t.long.len(); n > 0 && t.outLeft > 0; n-- {
		c := t.long.pop()
		c.later = false
		if !c.closed && c.open {
			c.sock.write(c)
		}
	}
}

// countOut maintains turns.unread: output that could not be written to the kernel.
func (l *core) countOut(c *Conn) {
	n := 0
	if !c.exempt {
		n = c.Buffered()
	}
	l.turns.unread += n - int(c.countedOut)
	grown := n > int(c.countedOut)
	c.countedOut = int32(n)
	if !grown || l.turns.unread <= l.cfg.MaxUnread {
		return
	}
	// A reader makes progress now and then. Only a few are examined, as there may be many.
	l.shed(ErrUnread, func(c *Conn) int64 {
		if c.countedOut == 0 {
			return 0
		}
		since := c.blockedAt
		if since == 0 {
			since = l.clock.mono
		}
		return 1 + l.clock.mono - since
	})
}

// countIn maintains turns.input.
func (l *core) countIn(c *Conn) {
	n := 0
	if !c.exempt {
		n = cap(c.in)
		if c.guard != nil {
			n += cap(c.guard.raw)
		}
	}
	l.turns.input += n - int(c.countedIn)
	grown := n > int(c.countedIn)
	c.countedIn = int32(n)
	if grown && l.turns.input > l.cfg.MaxHeldInput {
		l.shed(ErrHeldInput, func(c *Conn) int64 {
			if len(c.in) == 0 && cap(c.in) > 0 { // a buffer that is kept for the next frame
				c.in = nil
				l.countIn(c)
			}
			return int64(c.countedIn)
		})
	}
}

// shed closes one of the most expensive connections, if any has a cost.
func (l *core) shed(why error, cost func(*Conn) int64) {
	var worst *Conn
	var most int64
	seen := 0
	for _, c := range l.conns { // random order
		if c.closing || c.exempt {
			continue
		}
		v := cost(c)
		if v <= 0 {
			continue
		}
		if v > most {
			worst, most = c, v
		}
		if seen++; seen == sampled {
			break
		}
	}
	if worst == nil {
		return
	}
	if why == ErrHeldInput {
		l.stats.Unfinished++
	} else {
		l.stats.SlowPeers++
	}
	worst.Close(why)
}

// release closes the socket of a connection that has ended. If the peer does not read, its
// output would stay in the kernel for minutes: as much again for every connection that it
// opens next. So it is dropped with a reset, unless the whole process ends.
func (l *core) release(c *Conn) {
	reset := c.cause != ErrStopped && c.sock.unsent() > 0
	if reset {
		l.stats.Resets++
	}
	c.sock.release(c, reset)
}

// connQueue is a queue without allocation while it does not grow.
type connQueue struct {
	conns []*Conn
	head  int
}

func (q *connQueue) len() int { return len(q.conns) - q.head }

func (q *connQueue) push(c *Conn) {
	if q.head > 0 && len(q.conns) == cap(q.conns) {
		n := copy(q.conns, q.conns[q.head:])
		clear(q.conns[n:])
		q.conns, q.head = q.conns[:n], 0
	}
	q.conns = append(q.conns, c)
}

func (q *connQueue) pop() *Conn {
	c := q.conns[q.head]
	q.conns[q.head] = nil
	if q.head++; q.head == len(q.conns) {
		q.conns, q.head = q.conns[:0], 0
	}
	return c
}
