package transport

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/tlsrecord"
)

// A frame that is not finished in time ends its connection, however busily its bytes
// arrive; whole frames, and connections without that limit, have no deadline.
func TestUnfinishedFrames(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{closed: make(chan error, 4), setup: func(c *Conn) { c.SetFrameTime(100 * time.Millisecond) }}
		addr := serve(t, kind, Config{}, e)
		whole := frame("whole")
		good, stalled, dripping := dial(t, addr), dial(t, addr), dial(t, addr)
		if got := exchange(t, stalled, append(whole, frame("half of it")[:7]...), len(whole)); string(got) != string(whole) {
			t.Fatalf("got %q", got)
		}
		ended := make(chan struct{})
		go func() { _, _ = io.Copy(io.Discard, dripping); close(ended) }()
		drip := frame(strings.Repeat("x", 4000))
		for i := range drip {
			if _, err := dripping.Write(drip[i : i+1]); err != nil {
				break
			}
			select {
			case <-ended:
			case <-time.After(5 * time.Millisecond):
				continue
			}
			break
		}
		for range 2 {
			if err := <-e.closed; !errors.Is(err, ErrUnfinished) {
				t.Fatalf("closed: %v, want %v", err, ErrUnfinished)
			}
		}
		if got := exchange(t, good, whole, len(whole)); string(got) != string(whole) {
			t.Fatalf("got %q", got)
		}
		if n := onLoop(t, e.loop, func() uint64 { return e.loop.Stats().Unfinished }); n != 2 {
			t.Fatalf("%d connections counted, want 2", n)
		}
	})
}

func TestFramesMayTakeTheirTime(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		addr := serve(t, kind, Config{}, &echo{})
		c := dial(t, addr)
		in := frame("in two halves")
		if _, err := c.Write(in[:6]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(600 * time.Millisecond) // more than two sweeps
		if got := exchange(t, c, in[6:], len(in)); string(got) != string(in) {
			t.Fatalf("got %q", got)
		}
	})
}

// A TLS record that is not finished in time counts as an unfinished frame, and so does one
// after whole records.
func TestUnfinishedRecords(t *testing.T) {
	for _, kind := range []Kind{overTLS, netTLS} {
		t.Run(string(kind), func(t *testing.T) {
			e := &echo{setup: func(c *Conn) { c.SetFrameTime(100 * time.Millisecond) }}
			addr := serve(t, kind, Config{}, e)
			c := dial(t, addr)
			whole := frame("whole")
			if got := exchange(t, c, whole, len(whole)); string(got) != string(whole) {
				t.Fatalf("got %q", got)
			}
			if _, err := tcpOf(c).Write([]byte{23, 3, 3, 0x20}); err != nil {
				t.Fatal(err)
			}
			if err := within(t, e.closed); !errors.Is(err, ErrUnfinished) {
				t.Fatalf("closed: %v, want %v", err, ErrUnfinished)
			}
		})
	}
}

// An invalid record ends a TLS connection, and its peer gets the alert with the reason.
func TestNoRecord(t *testing.T) {
	for _, kind := range []Kind{overTLS, netTLS} {
		t.Run(string(kind), func(t *testing.T) {
			e := &echo{}
			c := dial(t, serve(t, kind, Config{}, e))
			if _, err := tcpOf(c).Write([]byte{22, 3, 3, 0, 1, 1}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "unexpected message") {
				t.Errorf("the peer reads %v", err)
			}
			if err := within(t, e.closed); !errors.Is(err, tlsrecord.ErrRecord) {
				t.Errorf("closed: %v", err)
			}
		})
	}
}
