package transport

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"testing"
)

// front hands every connection over whose first byte is 'm', without that byte,
// and closes the others.
type front struct {
	echo
	to  Loop
	err chan error // of HandOver
}

func (f *front) OnFrames(c *Conn, buf []byte) (int, error) {
	if buf[0] != 'm' {
		return 0, errTooLong
	}
	err := c.HandOver(f.to, "moved")
	f.err <- err
	return 1, err
}

// serveFront starts a front before the loop `to`.
func serveFront(t *testing.T, kind Kind, to Loop) (*front, string) {
	f := &front{to: to, err: make(chan error, 8)}
	f.closed = make(chan error, 8)
	l, addr := newLoop(t, kind, Config{}, f)
	f.loop = l
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	t.Cleanup(func() { l.Stop(); _ = within(t, done) })
	return f, addr
}

func TestHandOverLosesNothing(t *testing.T) {
	if err := TuneScheduler(2); err != nil {
		t.Fatal(err)
	}
	forEach(t, func(t *testing.T, kind Kind) {
		opened := make(chan *Conn, 1)
		back := &echo{onOpen: func(c *Conn) { opened <- c }}
		serve(t, kind, Config{}, back)
		f, addr := serveFront(t, kind, back.loop)
		c := dial(t, addr)
		// The first byte, a frame and a half arrive together; the rest comes later.
		in := append([]byte("m"), frame("first")...)
		half := frame("second, in two parts")
		in = append(in, half[:7]...)
		if _, err := c.Write(in); err != nil {
			t.Fatal(err)
		}
		if got := exchange(t, c, half[7:], 9+len(half)); !bytes.Equal(got, append(frame("first"), half...)) {
			t.Fatalf("got %q", got)
		}
		if err := within(t, f.err); err != nil {
			t.Fatal(err)
		}
		if err := within(t, f.closed); !errors.Is(err, ErrHandedOver) {
			t.Fatalf("closed with %v", err)
		}
		if c := within(t, opened); c.Tag != "moved" || c.Remote() == "" || c.Dialled() {
			t.Fatalf("opened %+v", c)
		}
		if n := onLoop(t, f.loop, func() int { return f.loop.Stats().Conns }); n != 0 {
			t.Fatalf("the first loop still counts %d connections", n)
		}
		if s := onLoop(t, back.loop, back.loop.Stats); s.Conns != 1 || s.Adopted != 1 || s.Accepted != 0 {
			t.Fatalf("the second loop: %+v", s)
		}
		_ = c.Close()
		if err := within(t, back.closed); !errors.Is(err, ErrPeerClosed) {
			t.Fatalf("closed with %v", err)
		}
	})
}

// A connection is closed if the other loop is full or has ended.
func TestHandOverToNowhere(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		full := &echo{}
		serve(t, kind, Config{MaxConns: 1}, full)
		f, addr := serveFront(t, kind, full.loop)
		first, second := dial(t, addr), dial(t, addr)
		exchange(t, first, append([]byte("m"), frame("x")...), 5)
		if _, err := second.Write([]byte("m")); err != nil {
			t.Fatal(err)
		}
		awaitEnd(t, second)
		full.loop.Stop()
		awaitEnd(t, first)
		third := dial(t, addr)
		if _, err := third.Write([]byte("m")); err != nil {
			t.Fatal(err)
		}
		awaitEnd(t, third)
		for range 3 {
			if err := within(t, f.err); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestHandOverRefusesUnsentOutputAndOtherKinds(t *testing.T) {
	ks := slices.DeleteFunc(kinds(), func(k Kind) bool { return k == overTLS || k == netTLS }) // of the other two kinds
	for i, kind := range ks {
		other := &echo{}
		serve(t, ks[(i+1)%len(ks)], Config{}, other)
		same := &echo{}
		serve(t, kind, Config{}, same)
		got := make(chan error, 2)
		e := &echo{onOpen: func(c *Conn) {
			if len(ks) > 1 {
				got <- c.HandOver(other.loop, nil)
			}
			c.SetOut(append(c.Out(), frame("unsent")...))
			got <- c.HandOver(same.loop, nil)
		}}
		c := dial(t, serve(t, kind, Config{}, e))
		for range min(2, len(ks)) {
			if err := within(t, got); err == nil {
				t.Fatal("accepted")
			}
		}
		exchange(t, c, frame("goes on"), 2*4+len("unsent")+len("goes on"))
	}
}

// awaitEnd reads until the other side closed.
func awaitEnd(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 16)); err == nil {
		t.Fatalf("got %d bytes", n)
	}
}
