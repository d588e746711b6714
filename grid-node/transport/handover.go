package transport

import (
	"errors"
	"fmt"
	"net"
)

// ErrHandedOver is the reason OnClose is given for a connection that HandOver
// moved to another loop.
var ErrHandedOver = errors.New("the connection was handed over to another loop")

// HandOver moves an open connection to another Loop of the same Kind, with its received
// and unconsumed input: one port can serve several loops, selected by the first frame.
// Call it in OnFrames and consume nothing after it. The handler's OnClose is called with
// ErrHandedOver; at the other loop the connection is a new Conn with this Tag, OnOpen is
// its first call. Unsent output is an error: it would be lost.
func (c *Conn) HandOver(to Loop, tag any) error {
	switch {
	case !c.Open() || c.ended:
		return ErrClosed
	case c.guard != nil && c.peer == nil:
		return errors.New("hand over a connection: it is protected already, allowed: before Protect")
	case c.Buffered() > 0:
		return fmt.Errorf("hand over a connection: %d bytes of output are not sent", c.Buffered())
	}
	if err := c.sock.accepts(to); err != nil {
		return err
	}
	c.moving = &moving{to: to, tag: tag}
	c.Close(ErrHandedOver)
	return nil
}

// keepRest saves the unconsumed input of a connection that is handed over.
func (c *Conn) keepRest(rest []byte) {
	if c.moving != nil {
		c.moving.rest = append([]byte(nil), rest...)
	}
}

// adopted opens a connection that another loop handed over, or that was made elsewhere.
func (l *core) adopted(c *Conn, remote net.Addr, rest []byte) {
	l.stats.Adopted++
	before := c.guard // of TLS: rest was in its records
	if len(rest) > 0 && before != nil {
		c.in, rest = rest, nil
	}
	l.begin(c, remote)
	switch {
	case len(rest) == 0 || c.closing || c.linger:
	case c.guard != nil:
		l.unseal(c, rest)
	default:
		if rest = l.deliver(c, rest); c.guard == nil {
			c.in = append(c.in[:0], rest...)
		}
	}
}

// full reports whether the limit of connections is reached, and counts it.
func (l *core) full() bool {
	if len(l.conns)-l.outgoing < l.cfg.MaxConns {
		return false
	}
	l.stats.Refused++
	return true
}

func wrongKind(to Loop) error {
	return fmt.Errorf("hand over a connection: the other loop is a %T, allowed: one of the same kind", to)
}

func (s *netSocket) accepts(to Loop) error {
	if _, ok := to.(*netLoop); !ok {
		return wrongKind(to)
	}
	return nil
}

// handOver stops the goroutines, which are idle in OnFrames, and passes the net.Conn on.
func (s *netSocket) handOver(c *Conn) {
	close(s.gone)
	to := c.moving.to.(*netLoop)
	nc, tag, rest, guard := s.nc, c.moving.tag, c.moving.rest, c.guard
	ok := to.Post(func() {
		if to.full() {
			_ = nc.Close()
			return
		}
		a := &netSocket{l: to, secured: secured{nc: nc}}
		a.prompt.Store(true)
		ac := &Conn{Tag: tag, sock: a, prompt: true, peer: c.peer, guard: guard}
		a.conn = ac
		to.add(ac)
		to.serve(a)
		to.adopted(ac, nc.RemoteAddr(), rest)
		if !ac.closing && !ac.paused && !ac.waiting {
			a.startRead()
		}
	})
	if !ok {
		_ = nc.Close()
	}
}
