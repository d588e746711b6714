package transport

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A stop-the-world must not wait for the network: the loop sleeps for an hour in
// epoll_pwait and holds its P, the collector must interrupt it.
func TestStopTheWorldInterruptsTheSleep(t *testing.T) {
	e := &echo{}
	serve(t, KindEpoll, Config{Tick: time.Hour}, e)
	onLoop(t, e.loop, func() int { return 0 })
	done := make(chan struct{})
	go func() {
		for range 20 {
			runtime.GC()
		}
		close(done)
	}()
	within(t, done)
}

func TestRoundTripAllocatesNothing(t *testing.T) {
	e := &echo{}
	addr := serve(t, KindEpoll, Config{Tick: time.Hour}, e)
	c := dial(t, addr)
	out := frame(strings.Repeat("o", 305))
	in := make([]byte, len(out))
	trip := func() {
		if _, err := c.Write(out); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, in); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		trip()
	}
	// testing.AllocsPerRun would set GOMAXPROCS to 1 and starve all goroutines but the
	// sleeping loop.
	const trips = 2000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range trips {
		trip()
	}
	runtime.ReadMemStats(&after)
	if n := after.Mallocs - before.Mallocs; n > trips/20 { // the runtime's own few
		t.Fatalf("%d allocations in %d round trips, want 0 a trip", n, trips)
	}
	if !bytes.Equal(in, out) {
		t.Fatal("echo differs")
	}
}

// Of two connections with frames in one wake-up, the first gets a long answer before the
// second is served, and a short one at the end.
func TestLongAnswersAreNotHeldUp(t *testing.T) {
	for _, c := range []struct {
		size  int
		early bool
	}{{earlyOut / 2, false}, {earlyOut, true}} {
		var last *Conn
		waited := 0
		e := &echo{serving: func(c *Conn) {
			if last != nil && last != c {
				waited = last.Buffered()
			}
			last = c
		}}
		addr := serve(t, KindEpoll, Config{Tick: time.Hour}, e)
		msg := frame(strings.Repeat("o", c.size-4))
		a, b := dial(t, addr), dial(t, addr)
		onLoop(t, e.loop, func() int { return 0 })
		held, resume := make(chan struct{}), make(chan struct{})
		e.loop.Post(func() { close(held); <-resume })
		within(t, held)
		for _, conn := range []io.Writer{a, b} {
			if _, err := conn.Write(msg); err != nil {
				t.Fatal(err)
			}
		}
		close(resume)
		in := make([]byte, len(msg))
		for _, conn := range []io.Reader{a, b} {
			if _, err := io.ReadFull(conn, in); err != nil || !bytes.Equal(in, msg) {
				t.Fatalf("%d bytes: the echo differs, %v", c.size, err)
			}
		}
		want := c.size
		if c.early {
			want = 0
		}
		if got := onLoop(t, e.loop, func() int { return waited }); got != want {
			t.Errorf("%d bytes for the first connection waited while the second was served, want %d", got, want)
		}
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, kind := range kinds() {
		b.Run(string(kind), func(b *testing.B) {
			e := &echo{}
			addr := serve(b, kind, Config{}, e)
			c := dial(b, addr)
			out := frame(strings.Repeat("o", 305))
			in := make([]byte, len(out))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = c.Write(out)
				if _, err := io.ReadFull(c, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
