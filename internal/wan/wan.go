// Package wan is a long road between two machines, as a TCP proxy: it delays, limits bandwidth, and can be cut.
package wan

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Road is a TCP proxy that behaves as a long road: what enters comes out Delay later, at no more than Rate. The kernel of
// the test machines has no netem.
type Road struct {
	Addr string // host:port that stands for the target

	target string
	delay  time.Duration
	rate   int // bytes a second each way; 0: no limit
	cut    atomic.Bool
	bytes  atomic.Int64 // that came out, both ways

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// chunkSize is what is delayed as one; queueLength such chunks may be on the road each way.
const (
	chunkSize   = 16 << 10
	queueLength = 4096
)

// New starts a proxy for the target, host:port, until ctx ends. delay is one way.
func New(ctx context.Context, target string, delay time.Duration, rate int) (*Road, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &Road{Addr: l.Addr().String(), target: target, delay: delay, rate: rate, conns: map[net.Conn]bool{}}
	context.AfterFunc(ctx, func() { _ = l.Close(); w.Cut() })
	go w.accept(ctx, l)
	return w, nil
}

// Cut ends all connections and takes no new ones until Mend.
func (w *Road) Cut() {
	w.cut.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		_ = c.Close()
	}
}

// Mend ends a Cut.
func (w *Road) Mend() { w.cut.Store(false) }

func (w *Road) accept(ctx context.Context, l net.Listener) {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		go w.carry(ctx, near)
	}
}

// hold keeps a connection for Cut, and reports whether it may live.
func (w *Road) hold(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[c] = true
	return !w.cut.Load()
}

func (w *Road) carry(ctx context.Context, near net.Conn) {
	defer near.Close() //nolint:errcheck // the other end sees it
	if !w.hold(near) {
		return
	}
	far, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.target)
	if err != nil {
		return
	}
	defer far.Close() //nolint:errcheck // the other end sees it
	if !w.hold(far) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { w.oneWay(far, near) })
	both.Go(func() { w.oneWay(near, far) })
	both.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, near)
	delete(w.conns, far)
}

// chunk is a part of a stream and when it comes out.
type chunk struct {
	data []byte
	due  time.Time
}

// oneWay carries what comes in until either end is closed.
func (w *Road) oneWay(to, from net.Conn) {
	road := make(chan chunk, queueLength)
	go func() {
		defer close(road)
		var free time.Time // when the road has carried everything before
		for {
			b := make([]byte, chunkSize)
			n, err := from.Read(b)
			if n > 0 {
				now := time.Now()
				if free.Before(now) {
					free = now
				}
				if w.rate > 0 {
					free = free.Add(time.Duration(n) * time.Second / time.Duration(w.rate))
				}
				road <- chunk{b[:n], free.Add(w.delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	for c := range road {
		time.Sleep(time.Until(c.due))
		n, err := to.Write(c.data)
		w.bytes.Add(int64(n))
		if err != nil {
			break
		}
	}
	_ = from.Close()
	_ = to.Close()
	for range road { //nolint:revive // until the reader has ended
	}
}
