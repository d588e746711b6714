package fixdoor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Herd is swarms that act at the same time, each on a thread of its own. With several of them each thread has a table
// of descriptors of its own, so that a process has more sessions than its limit of descriptors, which counts by table.
type Herd struct{ threads []*herdThread }

type herdThread struct {
	swarm *Swarm
	do    chan func()
	ended chan struct{}
}

// Threads is how many a herd has for so many sessions, where one thread may have so many.
func Threads(sessions, each int) int { return max(1, (sessions+each-1)/each) }

// GatewayOf is the number of the gateway of a session, by its number.
func GatewayOf(session, threads, gateways int) int { return session / threads % gateways }

// NewHerd returns a herd of so many threads without sessions. Session n of the names is of thread n modulo their number.
func NewHerd(cfg SwarmConfig, threads int) (_ *Herd, err error) {
	h := &Herd{}
	defer func() {
		if err != nil {
			h.Close()
		}
	}()
	for t := range threads {
		own := cfg
		own.Names, own.Probe = nil, t*maxPartitions
		own.Logons = max(1, cmp.Or(cfg.Logons, logonsAtOnce)/threads)
		for n := t; n < len(cfg.Names); n += threads {
			own.Names = append(own.Names, cfg.Names[n])
		}
		x := &herdThread{do: make(chan func()), ended: make(chan struct{})}
		begun := make(chan error)
		go x.run(own, threads > 1, begun)
		if err := <-begun; err != nil {
			return nil, err
		}
		h.threads = append(h.threads, x)
	}
	return h, nil
}

// run is the thread. It is never given back: it ends with its table of descriptors.
func (x *herdThread) run(cfg SwarmConfig, apart bool, begun chan<- error) {
	defer close(x.ended)
	runtime.LockOSThread()
	if apart {
		if err := unix.Unshare(unix.CLONE_FILES); err != nil {
			begun <- fmt.Errorf("unshare(CLONE_FILES), for a table of descriptors of a thread: %w", err)
			return
		}
	}
	var err error
	x.swarm, err = NewSwarm(cfg)
	begun <- err
	if err != nil {
		return
	}
	for f := range x.do {
		f()
	}
	x.swarm.Close()
}

// Close ends all connections.
func (h *Herd) Close() {
	for _, x := range h.threads {
		close(x.do)
		<-x.ended
	}
	h.threads = nil
}

// all has each thread do something.
func (h *Herd) all(f func(t int, w *Swarm) error) error {
	errs := make([]error, len(h.threads))
	var wg sync.WaitGroup
	for t, x := range h.threads {
		wg.Add(1)
		x.do <- func() {
			defer wg.Done()
			errs[t] = f(t, x.swarm)
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// part is the share of a thread, of n over all.
func (h *Herd) part(n, t int) int { return n*(t+1)/len(h.threads) - n*t/len(h.threads) }

// Members is how many sessions there are.
func (h *Herd) Members() (n int) {
	for _, x := range h.threads {
		n += x.swarm.Members()
	}
	return n
}

// Again is how many Logons were repeated, since they were refused.
func (h *Herd) Again() (n int) {
	for _, x := range h.threads {
		n += x.swarm.Again()
	}
	return n
}

// Grow logs the first n sessions on.
func (h *Herd) Grow(ctx context.Context, n int) error {
	return h.all(func(t int, w *Swarm) error { return w.Grow(ctx, (n-t+len(h.threads)-1)/len(h.threads)) })
}

// AtRate sends orders at a rate, by the sessions of each thread in turn, and waits for all reports.
func (h *Herd) AtRate(ctx context.Context, perS int, lasts time.Duration) (*Driven, error) {
	begin := time.Now().Add(time.Millisecond)
	return h.drive(func(t int, w *Swarm) (*Driven, error) {
		return w.AtRate(ctx, h.part(perS, t), begin.Add(time.Duration(t)*time.Second/time.Duration(perS)), lasts)
	})
}

// AsFast sends orders so that so many are without a report, at most so many, and waits for all reports.
func (h *Herd) AsFast(ctx context.Context, window, most int, lasts time.Duration) (*Driven, error) {
	return h.drive(func(t int, w *Swarm) (*Driven, error) {
		return w.AsFast(ctx, max(1, h.part(window, t)), h.part(most, t), lasts)
	})
}

// drive joins what threads showed.
func (h *Herd) drive(f func(t int, w *Swarm) (*Driven, error)) (*Driven, error) {
	each := make([]*Driven, len(h.threads))
	if err := h.all(func(t int, w *Swarm) (err error) {
		each[t], err = f(t, w)
		return err
	}); err != nil {
		return nil, err
	}
	all := &Driven{}
	for _, d := range each {
		all.Orders += d.Orders
		all.Took = append(all.Took, d.Took...)
		all.Late, all.Elapsed, all.Busy = max(all.Late, d.Late), max(all.Elapsed, d.Elapsed), max(all.Busy, d.Busy)
	}
	slices.Sort(all.Took)
	all.PerS = float64(all.Orders) / all.Elapsed.Seconds()
	return all, nil
}

// Flows are what was sent, by thread and partition.
func (h *Herd) Flows() (list []Flow) {
	for _, x := range h.threads {
		list = append(list, x.swarm.Flows()...)
	}
	return list
}
