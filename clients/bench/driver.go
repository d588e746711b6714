package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// load is what a driver of any language is told, in this order on its command line.
type load struct {
	Endpoints        string
	Clients, Window  int // Window 0: synchronous
	Warmup, Duration time.Duration
	Size             int
	Prefix           string // of ClOrdIDs, new for every run
}

// figures is the line that a driver prints.
type figures struct {
	OrdersPerSecond float64 `json:"ordersPerSecond"`
	P50us           float64 `json:"p50us"`
	P99us           float64 `json:"p99us"`
	Resent          uint64  `json:"resent"`
}

const maxSamples = 1 << 20

// goLoad is one client of the Go driver.
type goLoad struct {
	s       *client.Session
	fix     *counter
	run     *goRun
	samples []int64
	orders  int
	sentAt  []time.Time // of the orders in flight, oldest first
	first   int
	open    int
	mu      sync.Mutex
}

type goRun struct {
	stop, measuring atomic.Bool
	wg              sync.WaitGroup
	failed          atomic.Pointer[error]
}

func (r *goRun) fail(err error) {
	r.failed.CompareAndSwap(nil, &err)
	r.stop.Store(true)
}

// driveGo is the Go driver: the same load as BenchDriver.java.
func driveGo(l load) error {
	c, err := client.Dial(context.Background(), client.Config{Endpoints: endpoints(l.Endpoints)})
	if err != nil {
		return err
	}
	defer c.Close()
	var r goRun
	loads := make([]*goLoad, l.Clients)
	for i := range loads {
		s, err := c.Session(wire.PartitionID(i % len(c.Table())))
		if err != nil {
			return err
		}
		loads[i] = &goLoad{s: s, fix: newCounter(l.Prefix+string(rune('a'+i)), l.Size), run: &r, samples: make([]int64, 0, maxSamples), sentAt: make([]time.Time, max(l.Window, 1))}
		r.wg.Add(1)
		go loads[i].start(l.Window)
	}
	time.Sleep(l.Warmup)
	began := time.Now()
	r.measuring.Store(true)
	time.Sleep(l.Duration)
	r.measuring.Store(false)
	took := time.Since(began)
	r.stop.Store(true)
	r.wg.Wait()
	if err := r.failed.Load(); err != nil {
		return *err
	}
	return json.NewEncoder(os.Stdout).Encode(summary(loads, took, c.Stats().Resent))
}

func summary(loads []*goLoad, took time.Duration, resent uint64) figures {
	var all []int64
	orders := 0
	for _, l := range loads {
		all, orders = append(all, l.samples...), orders+l.orders
	}
	f := figures{OrdersPerSecond: float64(orders) / took.Seconds(), Resent: resent}
	if slices.Sort(all); len(all) > 0 {
		f.P50us, f.P99us = float64(all[len(all)/2])/1e3, float64(all[len(all)*99/100])/1e3
	}
	return f
}

func (l *goLoad) start(window int) {
	if window > 0 {
		l.mu.Lock() // with the first callbacks
		defer l.mu.Unlock()
		for range window {
			l.enqueue(time.Now())
		}
		l.s.Push()
		return
	}
	defer l.run.wg.Done()
	for ctx := context.Background(); !l.run.stop.Load(); {
		t := time.Now()
		if _, err := l.s.Submit(ctx, l.fix.next()); err != nil {
			l.run.fail(err)
			return
		}
		l.sample(time.Since(t))
	}
}

func (l *goLoad) enqueue(now time.Time) {
	l.sentAt[(l.first+l.open)%len(l.sentAt)] = now
	l.open++
	if err := l.s.Enqueue(l.fix.next(), l.done); err != nil {
		l.run.fail(fmt.Errorf("enqueue: %w", err))
	}
}

func (l *goLoad) done(_ client.Receipt, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.run.fail(err)
	}
	now := time.Now()
	l.sample(now.Sub(l.sentAt[l.first]))
	l.first, l.open = (l.first+1)%len(l.sentAt), l.open-1
	if !l.run.stop.Load() {
		l.enqueue(now)
	} else if l.open == 0 {
		l.run.wg.Done()
	}
}

func (l *goLoad) sample(d time.Duration) {
	if !l.run.measuring.Load() {
		return
	}
	if l.orders++; len(l.samples) < maxSamples {
		l.samples = append(l.samples, int64(d))
	}
}
