package desk

import (
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// road is one connection to the primary of a line's partition. A goroutine dials; from then on it
// is an acceptor.Upstream of the sessions' loop.
type road struct {
	l        *line
	c        *transport.Conn // nil: not open yet
	address  string
	features wire.FeatureSet // of the node
	patience int64           // ns

	heardAt  int64 // Mono
	pingedAt int64 // Mono; 0: no Ping is under way
}

const (
	// roadFull is how many bytes the node may not have read before what sessions want waits.
	roadFull = 4 << 20
	// roadHard is above it by what one session may add: 512 refusals of 64 KiB each.
	roadHard = roadFull + 64<<20
)

// drive connects; what follows is handled on the loop.
func (l *line) drive(lost string) {
	d := l.d
	l.dialling = true
	d.roads.Go(func() {
		conn, err := d.cfg.Client.OpenFix(d.ctx, l.id, lost)
		if err == nil {
			r := &road{l: l, address: conn.Address, features: conn.Features, patience: int64(conn.Patience)}
			err = d.cfg.Server.Adopt(conn.Conn, conn.Session, conn.Received, r)
		}
		if err != nil {
			d.cfg.Server.Post(func(now fix.Now) { l.notUp(now, err) })
		}
	})
}

// Opened implements acceptor.Upstream.
func (r *road) Opened(now fix.Now, c *transport.Conn) {
	c.SetLimits(0, roadHard)
	c.SetMaxInput(wire.MaxFrame)
	r.c, r.heardAt = c, now.Mono
	r.l.up(now, r)
}

// Frames implements acceptor.Upstream.
func (r *road) Frames(now fix.Now, b []byte) (n int, _ error) {
	r.heardAt, r.pingedAt = now.Mono, 0
	for r.l.road == r {
		frame, rest, err := wire.Split(b[n:])
		if err == nil && frame == nil {
			return n, nil
		}
		n = len(b) - len(rest)
		if err == nil {
			err = r.l.frame(now, frame)
		}
		if err != nil {
			r.l.down(now, r, err)
		}
	}
	return len(b), nil
}

// Closed implements acceptor.Upstream.
func (r *road) Closed(now fix.Now, why error) {
	if r.c == nil {
		r.l.notUp(now, why)
		return
	}
	r.l.down(now, r, why)
}

// send sends frames at the end of the wake-up.
func (r *road) send(frames []byte) { r.c.SetOut(append(r.c.Out(), frames...)) }

// watch asks a node from which nothing comes whether it is there.
func (l *line) watch(now fix.Now) {
	r := l.road
	switch {
	case r == nil:
	case r.pingedAt != 0 && now.Mono-r.pingedAt > r.patience:
		l.down(now, r, fmt.Errorf("the node sent nothing for %s, not even an answer to a Ping", time.Duration(now.Mono-r.heardAt).Round(time.Millisecond)))
	case r.pingedAt == 0 && now.Mono-r.heardAt > r.patience:
		r.pingedAt = now.Mono
		l.out = wire.AppendRequest(l.out, wire.TypePing, &wire.Request{ReqID: l.next()})
	}
}
