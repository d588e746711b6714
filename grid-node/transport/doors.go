package transport

import (
	"net"
	"sync"
	"time"
)

// doors accept on goroutines: for a loop that cannot accept itself, or whose connections
// begin with a handshake, which is not made on a loop.
type doors struct {
	cfg        *Config
	handshakes *handshakes // nil without TLS
	ended      chan struct{}
	post       func(func()) bool
	stats      *Stats
	// opened passes on a connection that may begin, from any goroutine, and reports
	// whether the loop still runs.
	opened func(door int, s *secured) bool

	mu        sync.Mutex
	listeners []net.Listener
}

func newDoors(l *core, post func(func()) bool, opened func(door int, s *secured) bool) *doors {
	d := &doors{cfg: &l.cfg, stats: &l.stats, post: post, opened: opened, ended: make(chan struct{})}
	if t := l.cfg.TLS; t != nil {
		d.handshakes = newHandshakes(t.MaxHandshakes, t.MaxComputing)
	}
	return d
}

// listen starts to accept on one more address.
func (d *doors) listen(addr string) (net.Addr, error) {
	ln, err := listenTCP(addr)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	door := len(d.listeners)
	d.listeners = append(d.listeners, ln)
	d.mu.Unlock()
	go d.accept(ln, door)
	return ln.Addr(), nil
}

func (d *doors) accept(ln net.Listener, door int) {
	for {
		nc, err := ln.Accept()
		switch {
		case err != nil:
			select {
			case <-d.ended:
				return
			case <-time.After(100 * time.Millisecond): // no file descriptors, most likely
				d.post(func() { d.stats.Refused++ })
			}
		case d.cfg.TLS != nil:
			d.greet(nc, door)
		case !d.opened(door, &secured{nc: nc}):
			_ = nc.Close()
			return
		}
	}
}

// greet makes the handshake of an accepted connection.
func (d *doors) greet(nc net.Conn, door int) {
	h := d.handshakes.begin(nc, d.cfg.TLS.HandshakeTimeout)
	if h == nil {
		_ = nc.Close()
		return
	}
	go func() {
		s, err := d.cfg.TLS.accepted(h)
		if err != nil {
			_ = nc.Close()
		}
		h.done()
		if err != nil {
			d.post(func() { d.failed(nc.RemoteAddr(), err) })
		} else if !d.opened(door, s) {
			_ = nc.Close()
		}
	}()
}

func (d *doors) failed(remote net.Addr, err error) {
	d.stats.NoTLS++
	if f := d.cfg.TLS.OnFailure; f != nil {
		f(remote.String(), err)
	}
}

// shut ends all of them when the loop has ended.
func (d *doors) shut() {
	close(d.ended)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, ln := range d.listeners {
		_ = ln.Close()
	}
	d.handshakes.end()
}
