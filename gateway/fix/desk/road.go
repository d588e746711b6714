package desk

import (
	"bytes"
	"context"
	"sync"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/fix"
)

// road is one connection to the primary of a line's partition. A goroutine dials and reads,
// another one writes: the sessions' goroutine never waits for the grid.
type road struct {
	l    *line
	conn *client.FixConn

	mu    sync.Mutex
	out   []byte // not written yet
	spare []byte
	wake  chan struct{} // a token: out has something, or the road ends
	end   context.CancelFunc
}

// drive connects and reads until the road ends; what comes is handled on the sessions'
// goroutine.
func (l *line) drive(lost string) {
	d := l.d
	ctx, end := context.WithCancel(d.ctx)
	r := &road{l: l, wake: make(chan struct{}, 1), end: end}
	l.dialling = true
	d.roads.Go(func() {
		defer end()
		conn, err := d.cfg.Client.OpenFix(ctx, l.id, lost)
		if err != nil {
			d.cfg.Post(func(now fix.Now) { l.notUp(now, err) })
			return
		}
		defer conn.Close() //nolint:errcheck // it never fails
		r.conn = conn
		if !d.cfg.Post(func(now fix.Now) { l.up(now, r) }) {
			return
		}
		d.roads.Go(func() { r.write(ctx) })
		for {
			b, err := conn.Next(ctx)
			if err != nil {
				d.cfg.Post(func(now fix.Now) { l.down(now, r, err) })
				return
			}
			b = bytes.Clone(b)
			if !d.cfg.Post(func(now fix.Now) { l.received(now, r, b) }) {
				return
			}
		}
	})
}

// write writes what is sent until the road ends.
func (r *road) write(ctx context.Context) {
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return
		}
		r.mu.Lock()
		b := r.out
		r.out, r.spare = r.spare[:0], nil
		r.mu.Unlock()
		if err := r.conn.Write(ctx, b); err != nil {
			r.end() // Next returns then
			return
		}
		r.mu.Lock()
		if r.spare == nil && cap(b) <= 1<<20 {
			r.spare = b[:0]
		}
		r.mu.Unlock()
	}
}

// send hands frames to the writer.
func (r *road) send(frames []byte) {
	r.mu.Lock()
	r.out = append(r.out, frames...)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
