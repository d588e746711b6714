package client_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// astray is a network in which requests to follow ask for what the grid does not have: its nodes then end the stream for
// good, as of a follower that diverged.
type astray struct {
	mu   sync.Mutex
	on   bool
	told int // requests that went astray
	live []net.Conn
}

type astrayConn struct {
	net.Conn
	of *astray
}

func (a *astray) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &astrayConn{conn, a}, nil
}

// set begins it, which breaks the streams there are, or ends it.
func (a *astray) set(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on = on
	for _, c := range a.live {
		_ = c.Close()
	}
	a.live = nil
}

func (a *astray) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.told
}

func (c *astrayConn) Write(p []byte) (int, error) {
	if frame, _, err := wire.Split(p); err != nil || frame == nil || wire.FrameType(frame) != wire.TypeFollow && wire.FrameType(frame) != wire.TypeHello {
		return c.Conn.Write(p)
	}
	out := []byte(nil)
	for rest := p; len(rest) > 0; {
		var frame []byte
		var err error
		if frame, rest, err = wire.Split(rest); err != nil || frame == nil {
			return c.Conn.Write(p)
		}
		var m wire.Follow
		if wire.FrameType(frame) == wire.TypeFollow && wire.DecodeFollow(frame, &m) == nil {
			frame = c.of.follow(c, frame, m)
		}
		out = append(out, frame...)
	}
	if _, err := c.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (a *astray) follow(c net.Conn, frame []byte, m wire.Follow) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.on {
		a.live = append(a.live, c)
		return frame
	}
	a.told++
	m.FromSeq, m.FromHash = 2, 1
	return wire.AppendFollow(nil, wire.FramePartition(frame), &m)
}

// A cache that has to follow anew while keys change keeps nothing that it did not see change.
func TestGridNearCacheAnew(t *testing.T) {
	const age, keys, pauses = 200 * time.Millisecond, 64, 15 // the pauses grow up to half a second
	var net astray
	g := regions(t)
	c, calm := dial(t, g, func(c *client.Config) { c.Dial = net.dial }), dial(t, g)
	put := calm.Region("positions")
	var names [][]byte
	for i := 0; len(names) < keys; i++ {
		key := fmt.Appendf(nil, "A%d", i)
		if c.RouteClOrdID(key) != 0 {
			continue
		}
		if _, err := put.Put(t.Context(), key, []byte("0")); err != nil {
			t.Fatal(err)
		}
		names = append(names, key)
	}
	n := near(t, c.Region("positions"), client.NearCacheOptions{MaxAge: age})
	var all [keys]written
	var older, reads int
	stop := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() { // each key changes seldom: what is missed of it stays wrong for longer than it may
		for v := 1; ; v++ {
			for i := range keys {
				select {
				case <-stop:
					return
				case <-time.After(4 * time.Millisecond):
				}
				if _, err := put.Put(t.Context(), names[i], []byte(strconv.Itoa(v))); err != nil {
					t.Errorf("%s: %v", names[i], err)
					return
				}
				all[i].mu.Lock()
				all[i].at = append(all[i].at, time.Now())
				all[i].mu.Unlock()
			}
		}
	})
	work.Go(func() {
		for i := 0; ; i = (i + 1) % keys {
			select {
			case <-stop:
				return
			default:
			}
			least := all[i].least(time.Now(), age)
			e, err := n.Get(t.Context(), names[i])
			if err != nil {
				t.Errorf("%s: %v", names[i], err)
				return
			}
			if got, _ := strconv.Atoi(string(e.Value)); got < least {
				older++
			}
			reads++
		}
	})
	for range 4 {
		hit(t, n, names[0])
		time.Sleep(2 * age) // what is wrong shows
		was, told := n.Stats().Restarts, net.count()
		net.set(true)
		waitFor(t, func() bool { return n.Stats().Restarts >= was+pauses && net.count() >= told+pauses })
		net.set(false)
	}
	hit(t, n, names[0])
	close(stop)
	work.Wait()
	if s := n.Stats(); older > 0 || s.Hits == 0 || s.Invalidated == 0 {
		t.Errorf("%d of %d answers are older than %v; %+v", older, reads, age, s)
	}
	time.Sleep(2 * age)
	for i, key := range names {
		want, err := put.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if e, err := n.Get(t.Context(), key); err != nil || string(e.Value) != string(want.Value) || e.Version != want.Version {
				t.Errorf("%s: %q of version %d (%v), is %q of version %d", names[i], e.Value, e.Version, err, want.Value, want.Version)
			}
		}
	}
	t.Logf("%d reads, %+v", reads, n.Stats())
}
