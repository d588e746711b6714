package transport

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/tlsrecord"
)

// Guard protects a connection: it seals output into records and opens received ones. It is
// for one connection, and used on its loop only.
type Guard interface {
	// Seal appends data to dst in records.
	Seal(dst, data []byte) []byte
	// Open appends the data of all whole records to dst; rest is less than one. An error
	// ends the connection: io.EOF after the data, if the peer ended the stream regularly.
	// dst and sealed do not overlap.
	Open(dst, sealed []byte) (data, rest []byte, err error)
	// End appends the end of the stream with its reason: err of Open, or nil.
	End(dst []byte, err error) []byte
}

// protection is a Guard with the buffers on the handler's side: Conn.out has records,
// Conn.in their data.
type protection struct {
	Guard
	plain []byte // to be sealed
	raw   []byte // received, not a whole record yet
	begun bool   // OnFrames has returned since Protect
	idle  int    // seals since plain was last well used, for shrinking
}

// Protect seals all further output into records, and treats input after the frames that
// OnFrames consumes as records. Call it once, in OnFrames or OnOpen, not on a TLS
// connection, and consume nothing after it. Earlier output is sent as it is. The result of
// an earlier Conn.Out becomes invalid.
func (c *Conn) Protect(g Guard) { c.guard = &protection{Guard: g} }

// Begins reports whether the records begin after the frame that OnFrames handles: it
// called Protect.
func (c *Conn) Begins() bool { return c.guard != nil && !c.guard.begun }

// seal makes records of the handler's output.
func (c *Conn) seal() {
	g := c.guard
	if g == nil || len(g.plain) == 0 {
		return
	}
	c.out = g.Seal(c.out, g.plain)
	const keep = 1 << 20 // as in drained
	if cap(g.plain) > keep && len(g.plain) < keep/8 {
		if g.idle++; g.idle > 64 {
			g.plain, g.idle = nil, 0
		}
	} else {
		g.idle = 0
	}
	g.plain = g.plain[:0]
}

func (g *protection) held() int { return cap(g.plain) + cap(g.raw) }

// guardBegins ends a deliver in which the handler protected the connection: unconsumed
// input is the beginning of records. It returns their unconsumed data, which is c.in.
func (l *core) guardBegins(c *Conn, rest []byte) []byte {
	c.guard.raw = append(c.guard.raw, rest...) // a copy: rest may be c.in
	c.in, c.partialAt = c.in[:0], 0
	if !c.closing && !c.linger {
		l.unseal(c, nil)
	}
	return c.in
}

// begin announces a connection, which may hold records, and data from some.
func (l *core) begin(c *Conn, remote net.Addr) {
	g := c.guard
	l.opened(c, remote)
	if g != nil && (len(g.raw) > 0 || len(c.in) > 0) && c.Open() {
		l.unseal(c, nil)
	}
}

// unseal delivers the records that data completes, and keeps the rest of both.
func (l *core) unseal(c *Conn, data []byte) {
	g := c.guard
	g.begun = true
	sealed := data
	if len(g.raw) > 0 {
		g.raw = append(g.raw, data...)
		sealed = g.raw
	}
	in, rest, err := g.Open(c.in, sealed)
	c.in, c.usedIn = in, max(c.usedIn, aShort)
	if cap(in) > len(data) {
		c.usedIn = aLong
	}
	g.raw = append(g.raw[:0], rest...)
	if len(c.in) > 0 && (err == nil || errors.Is(err, io.EOF)) {
		rest := l.deliver(c, c.in)
		c.in = c.in[:copy(c.in, rest)]
	}
	switch {
	case c.closing || c.linger:
	case err != nil:
		c.unsealed(err)
	default:
		if len(g.raw) > 0 && c.frameTime != 0 && c.partialAt == 0 && !c.paused {
			c.partialAt = l.clock.mono
		}
		if cap(c.in)+cap(g.raw) != int(c.countedIn) && !c.exempt {
			l.countIn(c)
		}
	}
}

// unsealed ends a connection whose records have ended.
func (c *Conn) unsealed(err error) {
	var alert *tlsrecord.AlertError
	switch {
	case errors.Is(err, io.EOF):
		c.endOfInput()
	case errors.As(err, &alert):
		c.Close(fmt.Errorf("%w: %w", ErrPeerClosed, secure.ExplainRead(err)))
	case c.peer == nil: // its records carry no reason
		c.Close(fmt.Errorf("%s: %w", c.remote, err))
	default:
		c.sayEnd(err)
		c.CloseAfterFlush(fmt.Errorf("%s: %w", c.remote, err))
	}
}

// sayEnd appends the end of the stream after all other output.
func (c *Conn) sayEnd(err error) {
	g := c.guard
	if g == nil || !g.begun {
		return
	}
	c.seal()
	c.out = g.End(c.out, err)
	c.touched()
}
