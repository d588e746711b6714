package transport

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestEchoesPipelinedFrames(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{}
		addr := serve(t, kind, Config{ReadBuffer: 4 << 10}, e)
		var in []byte
		for i := range 2000 {
			in = append(in, frame(strings.Repeat("x", i%700))...)
		}
		in = append(in, frame(strings.Repeat("long", 50_000))...) // far over one read
		c := dial(t, addr)
		for range 3 {
			if got := exchange(t, c, in, len(in)); !bytes.Equal(got, in) {
				t.Fatal("echo differs")
			}
		}
	})
}

func TestReassemblesByteByByte(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		addr := serve(t, kind, Config{}, &echo{})
		c := dial(t, addr)
		in := frame("one byte at a time")
		for i := range in {
			if _, err := c.Write(in[i : i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if got := exchange(t, c, nil, len(in)); !bytes.Equal(got, in) {
			t.Fatalf("got %q", got)
		}
	})
}

// All frames read in one wake-up are answered by one write.
func TestOneWritePerWakeUp(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{}
		addr := serve(t, kind, Config{}, e)
		c := dial(t, addr)
		in := bytes.Repeat(frame("0123456789"), 1000)
		exchange(t, c, in, len(in))
		s := onLoop(t, e.loop, e.loop.Stats)
		wire := uint64(len(in))
		if kind == overTLS || kind == netTLS {
			wire += 5 + 16 + 1 // of a record
		}
		for s.BytesOut < wire { // counted after the peer may have read it
			s = onLoop(t, e.loop, e.loop.Stats)
		}
		if e.frames != 1000 || s.Writes > s.WakeUps {
			t.Fatalf("%d frames, %d writes in %d wake-ups: want at most a write a wake-up", e.frames, s.Writes, s.WakeUps)
		}
		if s.BytesIn != wire || s.BytesOut < wire || s.BytesOut > wire+22*s.Writes {
			t.Fatalf("bytes in %d, out %d in %d writes, want %d", s.BytesIn, s.BytesOut, s.Writes, wire)
		}
	})
}

func TestBackPressureLosesNothing(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{repeat: 4}
		addr := serve(t, kind, Config{SoftOut: 32 << 10, HardOut: 64 << 20, WriteStall: time.Hour}, e)
		c := dial(t, addr)
		one := frame(strings.Repeat("y", 1000))
		in := bytes.Repeat(one, 20_000) // 20 MB in, 80 MB out: more than the sockets hold
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = c.Write(in) })
		for onLoop(t, e.loop, func() uint64 { return e.loop.Stats().Paused }) == 0 {
			time.Sleep(time.Millisecond)
		}
		want := bytes.Repeat(one, 4)
		got := make([]byte, len(want))
		for i := range 20_000 {
			if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("answer %d: %v", i, err)
			}
		}
		wg.Wait()
	})
}

func TestHardLimitCloses(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{repeat: 64, setup: func(c *Conn) { c.SetLimits(0, 1<<20) }}
		addr := serve(t, kind, Config{}, e)
		c := dial(t, addr)
		go func() { _, _ = c.Write(bytes.Repeat(frame(strings.Repeat("z", 64<<10)), 64)) }()
		if err := within(t, e.closed); !errors.Is(err, ErrOutputFull) {
			t.Fatalf("closed with %v, want ErrOutputFull", err)
		}
	})
}

func TestSlowReaderIsClosed(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{repeat: 64}
		addr := serve(t, kind, Config{SoftOut: 64 << 10, HardOut: 64 << 20, WriteStall: 50 * time.Millisecond}, e)
		c := dial(t, addr)
		go func() { _, _ = c.Write(bytes.Repeat(frame(strings.Repeat("z", 64<<10)), 64)) }()
		if err := within(t, e.closed); !errors.Is(err, ErrSlowReader) {
			t.Fatalf("closed with %v, want ErrSlowReader", err)
		}
	})
}

func TestAllBuffersTogetherAreBounded(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{maxBody: 1 << 30}
		addr := serve(t, kind, Config{MaxInput: 1 << 20, MaxMemory: 2 << 20}, e)
		for range 8 {
			c := dial(t, addr)
			go func() { _, _ = c.Write(frame(strings.Repeat("a", 1<<20))[:900<<10]) }() // never completed
		}
		if err := within(t, e.closed); !errors.Is(err, ErrMemory) {
			t.Fatalf("closed with %v, want ErrMemory", err)
		}
	})
}

func TestIncompleteFrameOverLimit(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{maxBody: 1 << 30}
		addr := serve(t, kind, Config{MaxInput: 100 << 10}, e)
		c := dial(t, addr)
		go func() { _, _ = c.Write(frame(strings.Repeat("a", 1<<20))) }()
		if err := within(t, e.closed); !errors.Is(err, ErrInputFull) {
			t.Fatalf("closed with %v, want ErrInputFull", err)
		}
	})
}

// A peer that keeps sending after an error must still get to read why it was closed: no
// reset may overtake the final message.
func TestHandlerErrorIsDelivered(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{maxBody: 100}
		addr := serve(t, kind, Config{}, e)
		c := dial(t, addr)
		in := append(frame("fine"), frame(strings.Repeat("bad", 100_000))...)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = c.Write(in); closeWrite(c) })
		got, err := io.ReadAll(c)
		wg.Wait()
		if want := string(frame("fine")) + "goaway"; err != nil || string(got) != want {
			t.Fatalf("read %q, %v; want %q", got, err, want)
		}
		if err := within(t, e.closed); !errors.Is(err, errTooLong) {
			t.Fatalf("closed with %v", err)
		}
	})
}

func TestEndlessGarbageIsCutOff(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{maxBody: 100}
		addr := serve(t, kind, Config{}, e)
		c := dial(t, addr)
		go func() {
			for junk := bytes.Repeat([]byte{0xff}, 64<<10); ; {
				if _, err := c.Write(junk); err != nil {
					return
				}
			}
		}()
		if err := within(t, e.closed); !errors.Is(err, errTooLong) {
			t.Fatalf("closed with %v", err)
		}
	})
}

// Input sent before the peer closed its half is still answered.
func TestHalfClose(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{}
		addr := serve(t, kind, Config{}, e)
		c := dial(t, addr)
		in := bytes.Repeat(frame("last words"), 100)
		if _, err := c.Write(in); err != nil {
			t.Fatal(err)
		}
		closeWrite(c)
		if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, in) {
			t.Fatalf("read %d of %d bytes, %v", len(got), len(in), err)
		}
		if err := within(t, e.closed); !errors.Is(err, ErrPeerClosed) {
			t.Fatalf("closed with %v", err)
		}
	})
}

func TestResetIsNoticed(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{}
		addr := serve(t, kind, Config{Tick: time.Hour}, e)
		c := dial(t, addr)
		exchange(t, c, frame("hello"), 9)
		_ = tcpOf(c).SetLinger(0)
		_ = tcpOf(c).Close()
		if err := within(t, e.closed); !errors.Is(err, ErrPeerClosed) {
			t.Fatalf("closed with %v, want ErrPeerClosed", err)
		}
	})
}

func TestConnectionLimit(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{}
		addr := serve(t, kind, Config{MaxConns: 2}, e)
		a, b := dial(t, addr), dial(t, addr)
		exchange(t, a, frame("a"), 5)
		exchange(t, b, frame("b"), 5)
		over := dial(t, addr)
		if n, err := over.Read(make([]byte, 1)); err == nil {
			t.Fatalf("the third connection was served %d bytes", n)
		}
		exchange(t, a, frame("a"), 5)
		if s := onLoop(t, e.loop, e.loop.Stats); s.Refused != 1 || s.Conns != 2 {
			t.Fatalf("stats %+v", s)
		}
		_ = b.Close()
		within(t, e.closed)
		exchange(t, dial(t, addr), frame("c"), 5)
	})
}

func TestDial(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		server := &echo{}
		addr := serve(t, kind, Config{}, server)
		_, port, _ := net.SplitHostPort(addr)
		opened := make(chan *Conn, 4)
		client := &echo{onOpen: func(c *Conn) { opened <- c }}
		serve(t, kind, Config{DialTimeout: 5 * time.Second}, client)
		for _, target := range []string{addr, "localhost:" + port} {
			dialled := onLoop(t, client.loop, func() *Conn {
				c := client.loop.Dial(target, "tag")
				c.SetOut(append(c.Out(), frame("queued before it is open")...))
				return c
			})
			if c := within(t, opened); c != dialled || c.Tag != "tag" || !c.Dialled() {
				t.Fatalf("opened %+v, dialled %+v", c, dialled)
			}
			if remote := onLoop(t, client.loop, dialled.Remote); remote != addr {
				t.Fatalf("dialled %s, and the peer is called %s, want the address %s", target, remote, addr)
			}
		}
	})
}

// All of 127/8 is local on Linux: a connection can come from any of it.
func TestDialSource(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs 127.0.0.9 to be an address of this machine: run it on Linux")
	}
	forEach(t, func(t *testing.T, kind Kind) {
		from := make(chan string, 1)
		addr := serve(t, kind, Config{}, &echo{onOpen: func(c *Conn) { from <- c.Remote() }})
		client := &echo{}
		serve(t, kind, Config{Source: netip.MustParseAddr("127.0.0.9")}, client)
		onLoop(t, client.loop, func() *Conn { return client.loop.Dial(addr, nil) })
		if host, _, _ := net.SplitHostPort(within(t, from)); host != "127.0.0.9" {
			t.Fatalf("the connection comes from %q, want the source configured", host)
		}
	})
}

func TestDialFails(t *testing.T) {
	closedPort := func() string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ln.Close() }()
		return ln.Addr().String()
	}()
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{}
		serve(t, kind, Config{}, e)
		for _, target := range []string{closedPort, "no-such-host.invalid:1", "127.0.0.1:99999", "no port"} {
			onLoop(t, e.loop, func() *Conn { return e.loop.Dial(target, nil) })
			if err := within(t, e.closed); err == nil {
				t.Fatalf("dial %q: no error", target)
			}
		}
		if n := onLoop(t, e.loop, func() int { return e.loop.Stats().Conns }); n != 0 {
			t.Fatalf("%d connections left", n)
		}
	})
}

func TestPostKeepsOrder(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{}
		serve(t, kind, Config{Tick: time.Hour}, e)
		last := map[int]int{}
		bad := 0
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 5000 {
					e.loop.Post(func() {
						if last[g] != i {
							bad++
						}
						last[g] = i + 1
					})
				}
			})
		}
		wg.Wait()
		sum := onLoop(t, e.loop, func() int { return last[0] + last[1] + last[2] + last[3] })
		if sum != 20_000 || bad != 0 {
			t.Fatalf("%d of 20000 ran, %d out of order", sum, bad)
		}
	})
}

func TestTicks(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{}
		serve(t, kind, Config{Tick: time.Millisecond}, e)
		for onLoop(t, e.loop, func() int { return e.ticks }) < 3 {
			time.Sleep(time.Millisecond)
		}
		a := onLoop(t, e.loop, func() int64 { return e.loop.Clock().Mono() })
		b := onLoop(t, e.loop, func() int64 { return e.loop.Clock().Exact() })
		if b < a {
			t.Fatalf("the clock went back: %d, %d", a, b)
		}
	})
}

func TestStopClosesEverything(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{closed: make(chan error, 4), maxBody: 100}
		l, addr := newLoop(t, kind, Config{}, e)
		done := make(chan error, 1)
		go func() { done <- l.Run() }()
		c := dial(t, addr)
		exchange(t, c, frame("x"), 5)
		l.Stop()
		if err := within(t, done); err != nil {
			t.Fatal(err)
		}
		if err := within(t, e.closed); !errors.Is(err, ErrStopped) {
			t.Fatalf("closed with %v", err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Fatal("the connection is still open")
		}
		if l.Post(func() {}) {
			t.Fatal("Post after Stop returned true")
		}
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			t.Fatal("still listening")
		}
	})
}

func TestUnknownKind(t *testing.T) {
	if _, err := New("rdma", Config{}, &echo{}); err == nil || !strings.Contains(err.Error(), `"rdma"`) {
		t.Fatalf("got %v", err)
	}
}
