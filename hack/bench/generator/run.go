package generator

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/host"
)

// heldProbe is the probe of the orders that Spec.Held asks for; client n has n+1.
const heldProbe = 0

// run is one run of the generator.
type run struct {
	*Spec
	id    uint64
	conns []Conn
	r     Result
}

// Run puts the load on the system.
func Run(s *Spec) (Result, error) {
	if err := s.check(); err != nil {
		return Result{}, fmt.Errorf("specification: %w", err)
	}
	procs := s.Procs
	if procs == 0 {
		// Threads that keep their P, the creator, and two more for the rest.
		procs = max(runtime.NumCPU(), min(s.Shape.Threads, pinnedThreads)+4)
	}
	runtime.GOMAXPROCS(procs)
	r := &run{Spec: s, id: fixorder.NewRun()}
	if len(s.Program) > 0 {
		err := r.program()
		return r.r, err
	}
	d, err := newDriver(s)
	if err != nil {
		return Result{}, err
	}
	defer d.Close() //nolint:errcheck // nothing depends on it
	for n := range s.Shape.Threads {
		c, err := d.Connect(n)
		if err != nil {
			return Result{}, fmt.Errorf("connection %d of %d: %w", n+1, s.Shape.Threads, err)
		}
		defer c.Close()
		r.conns = append(r.conns, c)
	}
	if err := r.hold(); err != nil {
		return Result{}, fmt.Errorf("submit %d orders ahead: %w", s.Held, err)
	}
	profile, err := startProfile(s.ProfileDir)
	if err != nil {
		return Result{}, err
	}
	if s.Shape.Rate > 0 {
		err = r.open()
	} else {
		err = r.closed()
	}
	if told, ok := d.(*gridDriver); ok && s.Told && err == nil {
		if r.r.Executions = told.executions.Load(); r.r.Executions < r.r.Orders {
			err = fmt.Errorf("clients were told of %d executions of %d orders: this was no measurement of it", r.r.Executions, r.r.Orders)
		}
	}
	return r.r, errors.Join(err, profile.stop())
}

// hold submits the orders that are to be there before anything is measured. A
// relay holds nothing.
func (r *run) hold() error {
	r.r.ResidentBefore = resident(r.PIDs)
	if r.Held == 0 || r.Driver == Raw || r.Driver == Null {
		return nil
	}
	clients := int64(len(r.conns))
	err := r.each(func(n int, c Conn) error {
		from, to := r.Held*int64(n)/clients, r.Held*int64(n+1)/clients
		o, err := newOrders(r.Size, fixorder.ID{Run: r.id, Probe: heldProbe}, from)
		if err != nil {
			return err
		}
		return c.Pipe(Submit, 64, &Stream{next: o.next, left: to - from})
	})
	r.r.ResidentAfter = resident(r.PIDs)
	return err
}

// each runs f once per client, all at once.
func (r *run) each(f func(n int, c Conn) error) error {
	errs := make([]error, len(r.conns))
	var wg sync.WaitGroup
	for n, c := range r.conns {
		wg.Go(func() {
			if len(r.conns) <= pinnedThreads {
				// Locked for good: the thread's timer slack must go nowhere else.
				if errs[n] = clock.Thread(); errs[n] != nil {
					return
				}
			}
			errs[n] = f(n, c)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// closed is a closed loop: the next request leaves when an answer has come.
func (r *run) closed() error {
	from := clock.Now() + int64(r.Warmup)
	to := from + int64(r.Duration)
	sampled := make(chan error, 1)
	go func() { sampled <- r.sample(from, to) }()
	tallies := make([]tally, len(r.conns))
	err := r.each(func(n int, c Conn) (err error) {
		next, err := r.source(n)
		if err != nil {
			return err
		}
		if r.Shape.Depth > 1 {
			s := &Stream{next: next, from: from, to: to, left: -1}
			err = c.Pipe(r.Shape.Op, r.Shape.Depth, s)
			tallies[n] = s.tally
			return err
		}
		tallies[n], err = synchronous(c, r.Shape.Op, next, from, to)
		return err
	})
	if err != nil {
		return err // the samples are of no use to anyone
	}
	for i := range tallies {
		r.r.Orders += tallies[i].orders
		r.r.SendToEnd.Merge(tallies[i].latency)
	}
	r.r.Elapsed = r.Duration
	return <-sampled
}

// source makes the requests of client n.
func (r *run) source(n int) (func() []byte, error) {
	if r.Shape.Op == Get {
		return keys(fixorder.ID{Run: r.id, Probe: heldProbe}, r.Held, n), nil
	}
	o, err := r.newOrders(1 + n)
	if err != nil {
		return nil, err
	}
	return o.next, nil
}

func synchronous(c Conn, op Op, next func() []byte, from, to int64) (tally, error) {
	var t tally
	request := c.Submit
	if op == Get {
		request = c.Get
	}
	for {
		m := next()
		sent := clock.Now()
		if sent >= to {
			return t, nil
		}
		if err := request(m); err != nil {
			return t, err
		}
		if now := clock.Now(); now >= from && now < to {
			t.latency.Record(now - sent)
			t.orders++
		}
	}
}

// sample measures CPU time between two moments.
func (r *run) sample(from, to int64) error {
	time.Sleep(time.Duration(from - clock.Now()))
	a, err := take(r.PIDs)
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(to - clock.Now()))
	b, err := take(r.PIDs)
	if err != nil {
		return err
	}
	r.use(a, b)
	return nil
}

// sampled is the machine and each process of the system at one moment.
type sampled struct {
	host.Sample
	each []time.Duration
}

func take(pids []int) (s sampled, err error) {
	if s.Sample, err = host.Take(pids); err != nil {
		return s, err
	}
	for i := range pids {
		one, err := host.Take(pids[i : i+1])
		if err != nil {
			return s, err
		}
		s.each = append(s.each, one.Others)
	}
	return s, nil
}

func (r *run) use(a, b sampled) {
	r.r.OwnCPU, r.r.SystemCPU = b.Own-a.Own, b.Others-a.Others
	r.r.EachCPU = nil
	for i := range b.each {
		r.r.EachCPU = append(r.r.EachCPU, b.each[i]-a.each[i])
	}
	r.r.Use = host.Between(a.Sample, b.Sample, true)
}

// resident is the memory of the first process in bytes, 0 if unknown.
func resident(pids []int) int64 {
	if len(pids) == 0 {
		return 0
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pids[0]))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
