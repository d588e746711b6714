package system

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/host"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

const (
	// maxLate is how late messages may be sent, and maxReader what share of a core the thread of the clients may use: beyond
	// that the probe is what was measured.
	maxLate   = 20 * time.Millisecond
	maxReader = 0.8
	// maxGrowth is how often the median of the fewest clients that of the most may be; published 2.05.
	maxGrowth = 3
	// maxSpread is how unevenly clients may be served, and minRanked of how many messages that is judged.
	maxSpread, minRanked = 0.10, 500
	// streamWarm is how long the messages of a step are counted and not timed.
	streamWarm = 500 * time.Millisecond
	// stepLead is how long before the first message of a step all is ready.
	stepLead = 100 * time.Millisecond
	// fanoutTail is how long after the last one was sent messages may still come.
	fanoutTail = 5 * time.Second
	// gigabit is the published line, in Mbit/s.
	gigabit = 1000
	// stepIDs are the numbers of messages of a step.
	stepIDs = 10_000_000
)

// fanoutOf returns the parameters of a mode.
func fanoutOf(d *published.Data, s published.Scenario, mode scenario.Mode) (published.Fanout, error) {
	exact, scaled, err := d.Fanout(s)
	if mode == scenario.Exact || err != nil {
		return exact, err
	}
	if mode == scenario.Quick {
		scaled.MeasureS = 2
		scaled.Clients = []int{scaled.Clients[0] / 5, scaled.Clients[0] / 2}
		if s.Name != published.FanoutScenario {
			scaled.Clients = scaled.Clients[:1]
		}
		scaled.ManyClients = scaled.Clients
		if len(scaled.Discard) > 0 {
			scaled.Discard = []int{0, 20_000}
		}
	}
	return scaled, nil
}

// flood is one step: a preset, to so many clients.
type flood struct {
	name    string
	preset  published.Preset
	clients int
	discard int  // messages/s besides, that no client wants
	orders  bool // of the grid, in place of messages of a client
	step    int  // of its grid
}

// sent is what was published in a step.
type sent struct {
	timetable
	topics    []account       // what there is of each
	late      []time.Duration // of each message
	took      time.Duration   // until the last one was sent
	discarded float64         // messages/s besides
}

// flooded is what came of it.
type flooded struct {
	tally
	latencies []float64 // us, sorted
	lists     [][]arrival
	payload   float64 // bytes of a message's data, mean
	user      float64 // of the data, in Mbit/s
	mbits     float64
	egress    float64 // messages/s
	discarded float64
	late      time.Duration
	reader    float64 // share of a core
	busy      float64 // of all cores
}

// streams is a grid with a gateway and its clients.
type streams struct {
	*Options
	p    published.Fanout
	grid *devgrid.Grid
	gate *gateway
	step int
}

// newStreams starts a grid for so many orders, and a gateway for so many clients.
func (o *Options) newStreams(ctx context.Context, p published.Fanout, orders, clients int) (*streams, error) {
	g, err := o.grid(ctx, orders)
	if err != nil {
		return nil, err
	}
	w, err := o.streaming(ctx, g, clients)
	if err != nil {
		return nil, errors.Join(err, g.Stop())
	}
	return &streams{Options: o, p: p, grid: g, gate: w}, nil
}

func (s *streams) end() error {
	s.gate.end()
	return s.grid.Stop()
}

// topic by number, as clients subscribe to it.
func (f *flood) topic(n int) string {
	if f.orders {
		return fmt.Sprintf("orders.%s.SYM.buy", f.account(n))
	}
	return fmt.Sprintf("user.%05d", n)
}

// account of the orders of a topic.
func (f *flood) account(n int) string { return fmt.Sprintf("T%05d", n) }

// topicOf is the topic of a message by number: all in turn. Both published numbers of topics have no factor of 7,919.
func (f *flood) topicOf(index int) int { return index * 7919 % f.preset.Topics }

// wanted are the topics of a client: those of clients i and i + topics/subs are the same.
func (f *flood) wanted(client int) []int {
	list := make([]int, f.preset.Subs)
	for i := range list {
		list[i] = (client*f.preset.Subs + i) % f.preset.Topics
	}
	return list
}

// measured are the clients whose messages are timed: they want the same topics, and have connected first to last.
func (f *flood) measured(most int) (list []int) {
	same := f.preset.Topics / f.preset.Subs
	last := (f.clients - 1) / same
	most = max(1, min(most, last+1))
	for i := range most {
		list = append(list, same*(i*last/max(1, most-1)))
	}
	return list
}

// flood runs a step. lose makes two clients faulty: one passes a message over, another takes one twice.
func (s *streams) flood(ctx context.Context, f flood, lose bool) (_ *flooded, err error) {
	f.step, s.step = s.step, s.step+1
	send := s.quotes
	if f.orders {
		send = s.orders
	} else if f.preset.Payload < minPayload {
		return nil, fmt.Errorf("payload of messages is %d bytes, allowed: %d or more", f.preset.Payload, minPayload)
	}
	s.Say("%s: %d clients, %d messages/s in, %d/s out, %d/s that no client wants", f.name, f.clients, f.preset.Pub, f.clients*f.preset.RateEach, f.discard)
	w, err := newSwarm([]*gateway{s.gate}, f.clients, s.p.FlushMs, func(client int) []string {
		list := make([]string, 0, f.preset.Subs)
		for _, n := range f.wanted(client) {
			list = append(list, f.topic(n))
		}
		return list
	})
	if err != nil {
		return nil, err
	}
	defer w.close()
	measured := f.measured(s.p.Measured)
	for _, i := range measured {
		w.clients[i].measured = true
	}
	for _, l := range w.clients {
		if !f.orders {
			l.payload = f.preset.Payload
		}
	}
	if lose {
		w.clients[0].loses, w.clients[len(w.clients)-1].repeats = 5, 7
	}
	runtime.GC()
	before, err := host.Take(nil)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- w.run() }()
	x, err := send(ctx, f)
	if err == nil {
		err = settle(ctx, w, f, x)
	}
	w.stop.Store(true)
	if err := errors.Join(err, <-ended); err != nil {
		return nil, fmt.Errorf("%w; the gateway says: %.1000s", err, s.gate.Log())
	}
	after, err := host.Take(nil)
	if err != nil {
		return nil, err
	}
	out := &flooded{late: lateness(x.late), reader: w.busy.Seconds() / after.At.Sub(before.At).Seconds(), discarded: x.discarded}
	if total := after.Total - before.Total; total > 0 {
		out.busy = float64(after.Busy-before.Busy) / float64(total)
	}
	out.count(w, f, x)
	out.time(w, f, x, measured)
	return out, nil
}

// count takes over what all clients have got.
func (out *flooded) count(w *swarm, f flood, x *sent) {
	out.tally = w.tally(f.expected(x))
	out.egress = float64(out.received) / x.took.Seconds()
	out.mbits = float64(w.bytes.Load()) * 8 / 1e6 / x.took.Seconds()
	out.user = float64(w.data) * 8 / 1e6 / x.took.Seconds()
	out.payload = float64(w.data) / float64(max(1, out.received+out.repeated))
}

// time takes over when those that are measured got theirs.
func (out *flooded) time(w *swarm, f flood, x *sent, measured []int) {
	for _, i := range measured {
		out.lists = append(out.lists, w.clients[i].arrivals)
		for _, a := range w.clients[i].arrivals {
			due := a.due
			if f.orders {
				due = x.due(a.index - f.step*stepIDs).Sub(x.begun)
			}
			if due >= streamWarm {
				out.latencies = append(out.latencies, float64(a.at.Sub(x.begun)-due)/float64(time.Microsecond))
			}
		}
	}
	slices.Sort(out.latencies)
}

// orders submits those of a step.
func (s *streams) orders(ctx context.Context, f flood) (*sent, error) {
	c, err := client.Dial(ctx, client.Config{Endpoints: s.grid.Endpoints, RequestTimeout: time.Minute})
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // it never fails
	x := &sent{timetable: timetable{time.Now().Add(stepLead), f.preset.Pub}, topics: make([]account, f.preset.Topics)}
	p, err := publish(ctx, c, x.timetable, f.preset.Pub*s.p.MeasureS, func() bool { return false }, func(dst []byte, i int) []byte {
		return newOrder(dst, fmt.Sprintf("%s%0*d", idPrefix, idDigits, f.step*stepIDs+i), f.account(f.topicOf(i)), "SYM", 100, "")
	})
	if err != nil {
		return nil, err
	}
	x.took, x.late = time.Since(x.begun), p.late
	for i := range p.sent() {
		x.topics[f.topicOf(i)].add(uint32(p.receipts[i].Partition), p.receipts[i].Seq)
	}
	return x, nil
}

// expected are the accounts of the clients.
func (f *flood) expected(x *sent) func(client int) account {
	return func(client int) (all account) {
		for _, n := range f.wanted(client) {
			all.join(x.topics[n])
		}
		return all
	}
}

// settle waits until all messages have come, or none comes any more.
func settle(ctx context.Context, w *swarm, f flood, x *sent) error {
	want, expected := int64(0), f.expected(x)
	for i := range w.clients {
		want += int64(expected(i).count)
	}
	return arrived(ctx, w, want)
}

// arrived waits until so many messages have come, or none comes any more.
func arrived(ctx context.Context, w *swarm, want int64) error {
	for last, at := int64(-1), time.Now(); w.received.Load() < want && time.Since(at) < fanoutTail; {
		if n := w.received.Load(); n != last {
			last, at = n, time.Now()
		}
		if err := clock.Wait(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// stats of latencies: mean, median, p99, p99.9, deviation, maximum.
func (out *flooded) stats() (mean, p50, p99, p999, deviation, most float64) {
	n := len(out.latencies)
	if n == 0 {
		return
	}
	square := 0.0
	for _, v := range out.latencies {
		mean += v / float64(n)
		square += v * v / float64(n)
	}
	at := func(q float64) float64 { return out.latencies[min(n-1, int(q*float64(n)))] }
	return mean, at(0.5), at(0.99), at(0.999), math.Sqrt(max(0, square-mean*mean)), out.latencies[n-1]
}
