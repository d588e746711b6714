// Command iobench compares the ways a session can use its socket (client.IO) against a grid, in
// short interleaved rounds, so that noise of the machine affects all of them equally.
// docs/client.md has its figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

var modes = []client.IO{client.IONet, client.IOBlocking, client.IOPinned}

var shared bool

// round is what one mode did in one round.
type round struct{ rate, p50, p99 float64 }

func main() {
	endpoint := flag.String("endpoint", "127.0.0.1:7400", "of the grid, host:port,…")
	grid := flag.String("grid", "dev", "name of the grid")
	threads := flag.String("threads", "1,4,16", "synchronous clients, each with a session of its own")
	rounds := flag.Int("rounds", 15, "interleaved rounds")
	length := flag.Duration("round", 400*time.Millisecond, "length of a round")
	depth := flag.Int("depth", 0, "orders in flight per client, asynchronously; 0: synchronous")
	flag.BoolVar(&shared, "shared", false, "all clients use one session per partition")
	flag.Parse()
	ctx := context.Background()
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("GOMAXPROCS %d, load %s", runtime.GOMAXPROCS(0), load)
	fmt.Printf("%-8s %-9s %10s %9s %9s   (medians of %d rounds of %v; microseconds)\n", "clients", "io", "orders/s", "p50", "p99", *rounds, *length)
	for _, t := range strings.Split(*threads, ",") {
		var n int
		if _, err := fmt.Sscan(t, &n); err != nil || n < 1 {
			log.Fatalf("--threads: %q, allowed: positive numbers with a comma between", t)
		}
		compare(ctx, client.Config{Endpoints: strings.Split(*endpoint, ","), Grid: *grid}, n, *depth, *rounds, *length)
	}
}

func compare(ctx context.Context, cfg client.Config, threads, depth, rounds int, length time.Duration) {
	results := make([][]round, len(modes))
	sessions := make([][]*client.Session, len(modes))
	for i, mode := range modes {
		cfg.IO = mode
		c, err := client.Dial(ctx, cfg)
		if err != nil {
			log.Fatal(err)
		}
		defer c.Close()
		parts := c.Table()
		for t := range threads {
			if n := len(parts); shared && t >= n {
				sessions[i] = append(sessions[i], sessions[i][t%n])
				continue
			}
			s, err := c.Session(parts[t%len(parts)].ID)
			if err != nil {
				log.Fatal(err)
			}
			sessions[i] = append(sessions[i], s)
		}
	}
	for range rounds {
		for i := range modes {
			results[i] = append(results[i], play(ctx, sessions[i], depth, length))
		}
	}
	for i, mode := range modes {
		fmt.Printf("%-8d %-9s %10.0f %9.1f %9.1f\n", threads, mode,
			median(results[i], func(r round) float64 { return r.rate }),
			median(results[i], func(r round) float64 { return r.p50 }),
			median(results[i], func(r round) float64 { return r.p99 }))
	}
}

func play(ctx context.Context, sessions []*client.Session, depth int, length time.Duration) round {
	var wg sync.WaitGroup
	all := make([][]float64, len(sessions))
	start := time.Now()
	for t, s := range sessions {
		wg.Go(func() {
			if depth > 0 {
				all[t] = pipeline(ctx, s, t, depth, start, length)
				return
			}
			if !shared {
				runtime.LockOSThread() // as a thread that does nothing else
			}
			for i := 0; time.Since(start) < length; i++ {
				fix := testgrid.Order(fmt.Sprintf("%x-%d-%d", start.UnixNano(), t, i), 305)
				at := time.Now()
				if _, err := s.Submit(ctx, fix); err != nil {
					log.Fatal(err)
				}
				all[t] = append(all[t], float64(time.Since(at).Nanoseconds())/1e3)
			}
		})
	}
	wg.Wait()
	took := time.Since(start).Seconds()
	l := slices.Concat(all...)
	slices.Sort(l)
	return round{float64(len(l)) / took, l[len(l)/2], l[len(l)*99/100]}
}

// pipeline keeps depth orders in flight: every answer sends the next order, and
// the orders of one batch of answers go out in one write.
func pipeline(ctx context.Context, s *client.Session, t, depth int, start time.Time, length time.Duration) []float64 {
	var latencies []float64
	over := make(chan struct{})
	left := depth
	var send func(i int)
	send = func(i int) {
		fix := testgrid.Order(fmt.Sprintf("%x-%d-%d", start.UnixNano(), t, i), 305)
		at := time.Now()
		err := s.Enqueue(fix, func(_ client.Receipt, err error) {
			if err != nil {
				log.Fatal(err)
			}
			latencies = append(latencies, float64(time.Since(at).Nanoseconds())/1e3)
			if time.Since(start) < length {
				send(i + depth)
			} else if left--; left == 0 {
				close(over)
			}
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	for i := range depth {
		send(i)
	}
	s.Push()
	select {
	case <-over:
	case <-ctx.Done():
	}
	return latencies
}

func median(rounds []round, f func(round) float64) float64 {
	v := make([]float64, 0, len(rounds))
	for _, r := range rounds {
		v = append(v, f(r))
	}
	slices.Sort(v)
	return v[len(v)/2]
}
