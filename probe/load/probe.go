package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/flow"
)

// Receipt is a grid's answer to an accepted order.
type Receipt struct {
	Seq     uint64 // position in the partition's log
	Epoch   uint64
	Hash    uint64 // of the log entry; 0 where the grid gives none
	Lineage uint32 // of the partition; likewise
	Copies  uint8  // servers that held the order when it was acknowledged
}

// Submitter is one publishing thread's connection to the grid. Submit returns when the order is
// acknowledged, or with an error that determines its fate.
type Submitter interface {
	Submit(ctx context.Context, fix []byte) (Receipt, error)
	// Fate returns the fate of an order from an error of Submit.
	Fate(err error) Fate
}

// Probe is one creator and its publishing threads.
type Probe struct {
	// Name is the letter of the published tests: A, B, C ...
	Name    string
	ID      fixorder.ID
	Version fixorder.Version
	// Threads are the publishing threads' connections, one each.
	Threads []Submitter

	makers []*fixorder.Maker
	record fixorder.Record    // of makers
	varied []*fixorder.Varied // of the threads; nil until a step needs them
	seqs   []int64            // last MsgSeqNum of each thread
}

// maker writes the message of an order.
type maker interface {
	Make(index, seqNum int64, created, sent time.Time) []byte
}

// Step is one rate held for a time.
type Step struct {
	Schedule Schedule
	Start    int64 // on the scale of clock.Now
	First    int64 // index of the step's first order within the run
	// Messages are the contents of the orders; nil: all alike.
	Messages *flow.Messages
	// Record is the content of every order where Messages is nil.
	Record fixorder.Record
	// DrainLimit bounds how long created orders may still wait to be sent after the last one was
	// created; the rest stays Unsent.
	DrainLimit time.Duration
	// Progress, if not nil, can be read during the step.
	Progress *Progress
}

// Progress of a step, for any goroutine. It does not slow the step.
type Progress struct{ gate atomic.Pointer[gate] }

// Created is how many orders were created so far.
func (p *Progress) Created() int64 {
	if g := p.gate.Load(); g != nil {
		return g.created.Load()
	}
	return 0
}

// Outcome is the result of a step.
type Outcome struct {
	Created int64 // orders[:Created] were created
	Ended   int64 // when the last thread was done, on the scale of clock.Now
	// Errors are examples of errors of Submit, at most one per thread, and Failed the number of
	// failed calls.
	Errors []error
	Failed int64
}

// Run fills orders, whose length is the number of orders of the step. It returns when every created
// order has a fate. A cancelled context stops creation and abandons unsent orders.
func (p *Probe) Run(ctx context.Context, s Step, orders []Order) (Outcome, error) {
	if err := p.prepare(s, int64(len(orders))); err != nil {
		return Outcome{}, err
	}
	g := newGate(len(p.Threads))
	if s.Progress != nil {
		s.Progress.gate.Store(g)
	}
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() {
		stop.Store(true)
		g.abandon()
	})()

	threads := make([]threadOutcome, len(p.Threads))
	var publishing sync.WaitGroup
	for n := range p.Threads {
		publishing.Go(func() { threads[n] = p.publish(ctx, g, n, s, orders) })
	}
	created, err := p.create(g, s, orders, &stop)
	drained := time.AfterFunc(s.DrainLimit, g.abandon)
	publishing.Wait()
	drained.Stop()

	out := Outcome{Created: created, Ended: clock.Now()}
	for n, t := range threads {
		out.Failed += t.failed
		if t.example != nil {
			out.Errors = append(out.Errors, fmt.Errorf("probe %s thread %d: %w", p.Name, n, t.example))
		}
		err = errors.Join(err, t.fatal)
	}
	return out, err
}

func (p *Probe) prepare(s Step, n int64) error {
	if len(p.Threads) == 0 || len(p.Threads) > 255 {
		return fmt.Errorf("probe %s: %d publishing threads, must be 1 to 255", p.Name, len(p.Threads))
	}
	if s.First < 0 || s.First+n-1 > fixorder.MaxIndex {
		return fmt.Errorf("probe %s: orders %d to %d, the last must not exceed %d: shorten the run", p.Name, s.First, s.First+n-1, fixorder.MaxIndex)
	}
	if s.Messages != nil && s.Messages.Len() < n {
		return fmt.Errorf("probe %s: %d messages for %d orders", p.Name, s.Messages.Len(), n)
	}
	if err := p.prepareMakers(s.Record); err != nil {
		return fmt.Errorf("probe %s: %w", p.Name, err)
	}
	if s.Messages == nil {
		return nil
	}
	for i := range p.Threads {
		if i == len(p.varied) {
			m, err := fixorder.NewVaried(p.Version, p.ID)
			if err != nil {
				return fmt.Errorf("probe %s: %w", p.Name, err)
			}
			p.varied = append(p.varied, m)
		}
		p.varied[i].Use(s.First, s.Messages)
	}
	return nil
}

func (p *Probe) prepareMakers(r fixorder.Record) error {
	if p.makers != nil && p.record == r {
		return nil
	}
	makers := make([]*fixorder.Maker, len(p.Threads))
	for i := range makers {
		m, err := fixorder.NewRecordMaker(p.Version, r, p.ID)
		if err != nil {
			return err
		}
		makers[i] = m
	}
	p.makers, p.record = makers, r
	if p.seqs == nil {
		p.seqs = make([]int64, len(p.Threads))
	}
	return nil
}

// create runs the creator on a thread of its own and closes the gate.
func (p *Probe) create(g *gate, s Step, orders []Order, stop *atomic.Bool) (created int64, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer g.close()
		if err = clock.Thread(); err != nil {
			return
		}
		created = Pace(s.Schedule, s.Start, int64(len(orders)), stop, func(i, t1 int64) {
			orders[i].T1 = t1
			g.put(i)
		})
	}()
	<-done
	return created, err
}

type threadOutcome struct {
	failed  int64
	example error
	fatal   error
}

// publish is one publishing thread. The message is written between taking the
// order and T2, so its cost is part of create-to-end and not of send-to-end.
func (p *Probe) publish(ctx context.Context, g *gate, n int, s Step, orders []Order) (out threadOutcome) {
	if out.fatal = clock.Thread(); out.fatal != nil {
		return out
	}
	to, maker := p.Threads[n], maker(p.makers[n])
	if s.Messages != nil {
		maker = p.varied[n]
	}
	for {
		i, ok := g.take()
		if !ok {
			return out
		}
		o := &orders[i]
		p.seqs[n] = p.seqs[n]%fixorder.MaxSeqNum + 1
		fix := maker.Make(s.First+i, p.seqs[n], clock.Wall(o.T1), clock.Wall(clock.Now()))
		o.Thread = uint8(n)
		o.T2 = clock.Now()
		r, err := to.Submit(ctx, fix)
		o.T3 = clock.Now()
		if err != nil {
			o.Fate = to.Fate(err)
			out.failed++
			if out.example == nil {
				out.example = fmt.Errorf("order %d: %w", s.First+i, err)
			}
		} else {
			o.Seq, o.Epoch, o.Hash, o.Lineage, o.Copies, o.Fate = r.Seq, r.Epoch, r.Hash, r.Lineage, r.Copies, Acked
		}
		o.complete()
	}
}
