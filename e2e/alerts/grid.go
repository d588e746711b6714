package alerts

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/internal/cgroup"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// grid is a grid of two processes with orders coming in, both partitions.
type grid struct {
	*devgrid.Grid
	name   string // the label grid of what is scraped
	group  *cgroup.Limited
	client *client.Client

	cancel context.CancelFunc
	flow   sync.WaitGroup

	mu     sync.Mutex
	frozen map[int]bool // processes that hang
}

// gridOptions are what cases need different grids for.
type gridOptions struct {
	memoryMiB int64           // 0 is 256
	args      []string        // of grid-node dev
	rate      int             // orders a second and partition; 0 is 100
	group     *cgroup.Limited // that its processes are in; may be nil
	close     func() error    // called when the grid has ended; may be nil
}

func startGrid(ctx context.Context, program, name string, o gridOptions) (*grid, error) {
	if o.memoryMiB == 0 {
		o.memoryMiB = 256
	}
	if o.rate == 0 {
		o.rate = 100
	}
	if o.group != nil {
		inside, err := enter(o.group, program)
		if err != nil {
			return nil, err
		}
		program = inside
	}
	dev, err := devgrid.Start(ctx, devgrid.Options{Program: program, Shards: 1, Replicas: 2, MemoryMiB: o.memoryMiB, Args: o.args})
	if err != nil {
		return nil, err
	}
	g := &grid{Grid: dev, name: name, group: o.group, frozen: map[int]bool{}}
	config := client.Config{Endpoints: dev.Endpoints, Name: "alerts-check", RequestTimeout: 2 * time.Second}
	if t := dev.TLS; t != nil {
		config.TLS = client.TLSFiles(client.PEMFiles{Cert: t.Cert, Key: t.Key, CA: t.CA})
	}
	if g.client, err = client.Dial(ctx, config); err != nil {
		return nil, fmt.Errorf("%w; %w", err, dev.Stop())
	}
	flowing, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	for i, p := range g.client.Table() {
		maker, err := fixorder.NewMaker(fixorder.FIX42, fixorder.ID{Run: fixorder.NewRun(), Probe: i})
		if err != nil {
			return nil, fmt.Errorf("%w; %w", err, g.stop())
		}
		g.flow.Go(func() {
			every := time.NewTicker(time.Second / time.Duration(o.rate))
			defer every.Stop()
			for n := int64(1); ; n++ {
				select {
				case <-flowing.Done():
					return
				case <-every.C:
				}
				now := clock.Wall(clock.Now())
				// The outcome is irrelevant here: the alerts are tested.
				_, _ = g.client.SubmitTo(flowing, p.ID, maker.Make(n, n%fixorder.MaxSeqNum+1, now, now))
			}
		})
	}
	return g, nil
}

// stop ends the grid in any state.
func (g *grid) stop() error {
	g.mu.Lock()
	for pid := range g.frozen {
		_ = syscall.Kill(pid, syscall.SIGCONT) // it may have exited
	}
	g.mu.Unlock()
	g.cancel()
	_ = g.client.Close() // never fails
	g.flow.Wait()
	return g.Stop()
}

// freeze stops a node (SIGSTOP); thaw resumes it.
func (g *grid) freeze(node int) error { return g.signal(node, syscall.SIGSTOP) }
func (g *grid) thaw(node int) error   { return g.signal(node, syscall.SIGCONT) }

func (g *grid) signal(node int, sig syscall.Signal) error {
	pid := g.PIDs[node]
	if err := syscall.Kill(pid, sig); err != nil {
		return fmt.Errorf("%v to node %d (process %d): %w", sig, node, pid, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if delete(g.frozen, pid); sig == syscall.SIGSTOP {
		g.frozen[pid] = true
	}
	return nil
}

// pulses stops a node repeatedly for a moment, until ctx ends.
func (g *grid) pulses(ctx context.Context, node int, still, between time.Duration) error {
	for ctx.Err() == nil {
		if err := g.freeze(node); err != nil {
			return err
		}
		time.Sleep(still)
		if err := g.thaw(node); err != nil {
			return err
		}
		_ = clock.Wait(ctx, between)
	}
	return nil
}

// arbiter talks to the switches of grid-node dev.
func (g *grid) arbiter(ctx context.Context, method, path, body string) error {
	req, err := http.NewRequestWithContext(ctx, method, g.Arbiter+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16)); resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %.200s", method, path, resp.Status, text)
	}
	return nil
}
