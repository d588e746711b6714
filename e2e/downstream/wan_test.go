package downstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// What enters the road comes out unchanged, not before its delay; a cut ends it, and a road that is mended carries again.
func TestWAN(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	const delay = 20 * time.Millisecond
	w, err := NewWAN(t.Context(), l.Addr().String(), delay, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	echo := func() error {
		c, err := net.Dial("tcp", w.Addr)
		if err != nil {
			return err
		}
		defer c.Close()
		out := bytes.Repeat([]byte("order"), 20_000)
		begun := time.Now()
		go func() { _, _ = c.Write(out) }()
		in := make([]byte, len(out))
		if _, err := io.ReadFull(c, in[:1]); err != nil {
			return err
		}
		if took := time.Since(begun); took < 2*delay {
			return fmt.Errorf("the first byte came back after %v, allowed: %v or more", took, 2*delay)
		}
		if _, err := io.ReadFull(c, in[1:]); err != nil {
			return err
		}
		if sha256.Sum256(in) != sha256.Sum256(out) {
			return fmt.Errorf("other bytes came back")
		}
		return nil
	}
	if err := echo(); err != nil {
		t.Fatal(err)
	}
	w.Cut()
	if err := echo(); err == nil {
		t.Fatal("a road that is cut carries")
	}
	w.Mend()
	if err := echo(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkFollowOverWAN follows a log of ORDERGRID_WAN_ORDERS orders (200,000) with 0 and 35 ms one way.
func BenchmarkFollowOverWAN(b *testing.B) {
	g := testgrid.Run(b)
	c, err := client.Dial(b.Context(), client.Config{Endpoints: g.Endpoints, Grid: "dev"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	n := 200_000
	if text := os.Getenv("ORDERGRID_WAN_ORDERS"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			b.Fatal(err)
		}
	}
	done := make(chan error, 1024)
	sent, back := 0, 0
	for back < n {
		for sent < n && sent-back < cap(done) {
			if err := c.SubmitAsync(testgrid.Order(fmt.Sprintf("W%08d", sent), 305), func(_ client.Receipt, err error) { done <- err }); err != nil {
				break
			}
			sent++
		}
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		back++
	}
	for _, delay := range []time.Duration{0, 35 * time.Millisecond} {
		for _, window := range []int{256 << 10, 1 << 20, 4 << 20} {
			b.Run(fmt.Sprintf("delay=%v/window=%dKiB", delay, window>>10), func(b *testing.B) {
				for range b.N {
					took, orders := followOnce(b, c, g.Endpoints[0], delay, window)
					b.ReportMetric(float64(orders)/took.Seconds(), "entries/s")
				}
			})
		}
	}
}

// followOnce reads the log of p0 at one replica, over a road.
func followOnce(b *testing.B, c *client.Client, replica string, delay time.Duration, window int) (time.Duration, uint64) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	w, err := NewWAN(ctx, replica, delay, 0)
	if err != nil {
		b.Fatal(err)
	}
	end, err := c.ReadLog(ctx, 0, "", 1<<62, nil)
	if err != nil {
		b.Fatal(err)
	}
	f, err := c.Follow(ctx, client.FollowOptions{Replica: w.Addr, Window: window})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	begun := time.Now()
	for f.After().Seq < end.CommitSeq {
		if _, err := f.Next(ctx); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begun), end.CommitSeq
}
