package link_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/link"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// oneWay is that of the published pair of sites, New York and London: 70 ms there and back.
const oneWay = 35 * time.Millisecond

// benchGrid is a grid of one partition.
func benchGrid(b *testing.B, args ...string) (*testgrid.Grid, *client.Client) {
	g := testgrid.Run(b, append(args, "--partitions", "1", "--external-sink", "link")...)
	return g, downstream.Dial(b, g)
}

// fill submits n orders as fast as they are acknowledged.
func fill(b *testing.B, c *client.Client, n int) {
	b.Helper()
	done, back := make(chan error, 1024), 0
	for sent := 0; back < n; back++ {
		for sent < n && sent-back < cap(done) {
			if err := c.SubmitAsync(testgrid.Order(fmt.Sprintf("B%08d", sent), 305), func(_ client.Receipt, err error) { done <- err }); err != nil {
				break
			}
			sent++
		}
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

// start runs a link to a grid until stop.
func start(b *testing.B, from, to *testgrid.Grid, roads *downstream.Roads, cfg link.Config) (r *link.Runner, stop func()) {
	b.Helper()
	cfg.Source, cfg.Target, cfg.SourceName, cfg.TargetName, cfg.Reader = downstream.DialOver(b, from, nil), downstream.DialOver(b, to, roads), "dev", "dev", "link"
	r, err := link.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	all.Go(func() { r.Run(ctx) })
	return r, func() { cancel(); all.Wait() }
}

// BenchmarkCatchUp sends a log of 100,000 orders of 305 bytes to an empty standby, over a road of 35 ms one way: batch x
// delay, as published, and the share of a road of 100 Mbit/s.
func BenchmarkCatchUp(b *testing.B) {
	const orders = 100_000
	a, ca := benchGrid(b)
	fill(b, ca, orders)
	bytes := 0
	end, err := ca.ReadLog(b.Context(), 0, "", 1, func(e client.LogEntry) error { bytes += order.Padded(len(e.Bytes)); return nil })
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, rate int, cfg link.Config) {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				to, _ := benchGrid(b, "--standby")
				r, stop := start(b, a, to, downstream.NewRoads(b.Context(), oneWay, rate), cfg)
				for r.Status().Partitions[0].HeldSeq == 0 {
					time.Sleep(time.Millisecond)
				}
				from, begun := r.Status().Partitions[0].HeldSeq, time.Now()
				for r.Status().Partitions[0].HeldSeq < end.CommitSeq {
					time.Sleep(time.Millisecond)
				}
				took := time.Since(begun).Seconds()
				part := float64(end.CommitSeq-from) / float64(end.CommitSeq)
				b.ReportMetric(float64(end.CommitSeq-from)/took, "orders/s")
				if rate > 0 {
					b.ReportMetric(float64(bytes)*part/took/float64(rate), "share")
				}
				stop()
				_ = to.Stop()
			}
		})
	}
	for _, delay := range []time.Duration{0, time.Second} {
		for _, batch := range []int{10, 100, 1000} {
			run(fmt.Sprintf("delay=%v/batch=%d", delay, batch), 0, link.Config{Batch: batch, Delay: delay})
		}
	}
	run("100Mbit", 12_500_000, link.Config{})
}

// BenchmarkLag offers 6,000 orders a second over a road of 35 ms one way. lag is from an order's receipt by its primary to
// its commit at the standby; penalty is the latency of an order beside the link over that without, in turns of a run.
func BenchmarkLag(b *testing.B) {
	a, ca := benchGrid(b)
	to, _ := benchGrid(b, "--standby")
	roads := downstream.NewRoads(b.Context(), oneWay, 0)
	for range b.N {
		var with, without, lags []time.Duration
		for turn := range 6 {
			stop := func() {}
			if turn%2 == 0 {
				var r *link.Runner
				r, stop = start(b, a, to, roads, link.Config{})
				for p := r.Status().Partitions[0]; !p.Open || p.LagEntries > 0; p = r.Status().Partitions[0] {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(300 * time.Millisecond)
				ctx, cancel := context.WithCancel(b.Context())
				measured := make(chan []time.Duration)
				go func() { measured <- follow(ctx, b, to) }()
				with = append(with, offer(b, ca, turn, 6000, 4*time.Second)...)
				time.Sleep(300 * time.Millisecond)
				cancel()
				lags = append(lags, <-measured...)
			} else {
				without = append(without, offer(b, ca, turn, 6000, 4*time.Second)...)
			}
			stop()
		}
		for _, l := range [][]time.Duration{with, without, lags} {
			slices.Sort(l)
		}
		at := func(l []time.Duration, q float64) float64 {
			return float64(l[int(q*float64(len(l)-1))].Microseconds()) / 1000
		}
		b.ReportMetric(at(lags, 0.5)-35, "lag-p50-ms-beyond-the-road")
		b.ReportMetric(at(lags, 0.99)-35, "lag-p99-ms-beyond-the-road")
		b.ReportMetric(at(with, 0.5)/at(without, 0.5), "penalty-p50")
		b.ReportMetric(at(with, 0.99)/at(without, 0.99), "penalty-p99")
		b.ReportMetric(float64(len(lags)), "orders")
	}
}

// follow returns the age of each order when the standby had committed it.
func follow(ctx context.Context, b *testing.B, g *testgrid.Grid) (ages []time.Duration) {
	c, err := client.Dial(ctx, client.Config{Endpoints: g.Endpoints, Grid: "dev"})
	if err != nil {
		b.Error(err)
		return nil
	}
	defer c.Close() //nolint:errcheck // it never fails
	f, err := c.Follow(ctx, client.FollowOptions{AtEnd: true})
	if err != nil {
		b.Error(err)
		return nil
	}
	defer f.Close() //nolint:errcheck // it never fails
	for {
		batch, err := f.Next(ctx)
		if err != nil {
			return ages
		}
		now := time.Now().UnixNano()
		for _, e := range batch.Entries {
			if e.Kind == order.KindOrder {
				ages = append(ages, time.Duration(now-order.Received(e.Bytes)))
			}
		}
	}
}

// offer submits rate orders a second for a time, and returns their latencies from when each was due.
func offer(b *testing.B, c *client.Client, turn, rate int, d time.Duration) []time.Duration {
	b.Helper()
	n := int(d.Seconds() * float64(rate))
	took := make([]time.Duration, n)
	var all sync.WaitGroup
	begun := time.Now()
	for i := range n {
		due := begun.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		all.Add(1)
		done := func(_ client.Receipt, err error) {
			took[i] = time.Since(due)
			if err != nil {
				b.Error(err)
			}
			all.Done()
		}
		err := c.SubmitAsync(testgrid.Order(fmt.Sprintf("L%d-%d-%d", b.N, turn, i), 305), done)
		for ; errors.Is(err, client.ErrWindowFull); err = c.SubmitAsync(testgrid.Order(fmt.Sprintf("L%d-%d-%d", b.N, turn, i), 305), done) {
			time.Sleep(100 * time.Microsecond) // the order is late, and that counts
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	all.Wait()
	return took
}
