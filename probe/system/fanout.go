package system

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/host"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

const (
	// maxLate is how late orders may be sent, and maxReader what share of a core the thread of the clients may use: beyond
	// that the probe is what was measured.
	maxLate   = 20 * time.Millisecond
	maxReader = 0.8
	// maxGrowth is how often the median of the fewest clients that of the most may be; published 2.05.
	maxGrowth = 3
	// maxSpread is how unevenly clients may be served, and minRanked of how many messages that is judged.
	maxSpread, minRanked = 0.10, 500
	// streamWarm is how long the messages of a step are counted and not timed.
	streamWarm = 500 * time.Millisecond
	// fanoutTail is how long after the last order messages may still come.
	fanoutTail = 5 * time.Second
	// gigabit is the published line, in Mbit/s.
	gigabit = 1000
	// longest is of ClOrdID, account and symbol, in bytes.
	longest = 64
	// stepIDs are the numbers of orders of a step.
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
			scaled.Discard = []int{0, 2000}
		}
	}
	return scaled, nil
}

// flood is one step: a preset, to so many clients.
type flood struct {
	name    string
	preset  published.Preset
	clients int
	discard int // messages/s besides, that no client wants
	long    bool
	step    int // of its grid
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

// account of topic n; long ones are as long as a grid takes them.
func (f *flood) account(n int) string {
	if f.long {
		return fmt.Sprintf("T%0*d", longest-1, n)
	}
	return fmt.Sprintf("T%05d", n)
}

func (f *flood) symbol() string {
	if f.long {
		return strings.Repeat("S", longest)
	}
	return "SYM"
}

// id of an order: FAN-, its number, and more where it is a long one.
func (f *flood) id(prefix string, index int) string {
	id := fmt.Sprintf("%s%0*d", prefix, idDigits, index)
	if f.long {
		id += strings.Repeat("-", longest-len(id))
	}
	return id
}

// topicOf is the topic of an order by number: all in turn. Both published numbers of topics have no factor of 7,919.
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
	s.Say("%s: %d clients, %d messages/s in, %d/s out, %d/s that no client wants", f.name, f.clients, f.preset.Pub, f.clients*f.preset.RateEach, f.discard)
	w, err := newSwarm([]*gateway{s.gate}, f.clients, s.p.FlushMs, func(client int) []string {
		list := make([]string, 0, f.preset.Subs)
		for _, n := range f.wanted(client) {
			list = append(list, fmt.Sprintf("orders.%s.%s.buy", f.account(n), f.symbol()))
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
	at := time.Now().Add(100 * time.Millisecond)
	sent, discarded, err := s.send(ctx, f, at)
	took := time.Since(at)
	if err == nil {
		err = settle(ctx, w, f, sent)
	}
	w.stop.Store(true)
	if err := errors.Join(err, <-ended); err != nil {
		return nil, fmt.Errorf("%w; the gateway says: %.1000s", err, s.gate.Log())
	}
	after, err := host.Take(nil)
	if err != nil {
		return nil, err
	}
	out := &flooded{late: sent.lateness(), reader: w.busy.Seconds() / after.At.Sub(before.At).Seconds(), discarded: float64(discarded) / took.Seconds()}
	if total := after.Total - before.Total; total > 0 {
		out.busy = float64(after.Busy-before.Busy) / float64(total)
	}
	out.tally = w.tally(f.expected(sent))
	out.egress = float64(out.received) / took.Seconds()
	out.mbits = float64(w.bytes.Load()) * 8 / 1e6 / took.Seconds()
	out.user = float64(w.data) * 8 / 1e6 / took.Seconds()
	out.payload = float64(w.data) / float64(max(1, out.received+out.repeated))
	for _, i := range measured {
		out.lists = append(out.lists, w.clients[i].arrivals)
		for _, a := range w.clients[i].arrivals {
			if due := sent.due(a.index - f.step*stepIDs); due.Sub(at) >= streamWarm {
				out.latencies = append(out.latencies, float64(a.at.Sub(due))/float64(time.Microsecond))
			}
		}
	}
	slices.Sort(out.latencies)
	return out, nil
}

// send submits the orders of a step, and beside them those that no client wants; it returns how many of these were taken.
func (s *streams) send(ctx context.Context, f flood, at time.Time) (_ *publisher, discarded int, err error) {
	var clients [2]*client.Client
	for i := range clients {
		if clients[i], err = client.Dial(ctx, client.Config{Endpoints: s.grid.Endpoints, RequestTimeout: time.Minute}); err != nil {
			return nil, 0, err
		}
		defer clients[i].Close() //nolint:errcheck // it never fails
	}
	over := at.Add(time.Duration(s.p.MeasureS) * time.Second)
	none := make(chan error, 1)
	go func() {
		if f.discard == 0 {
			none <- nil
			return
		}
		p, err := publish(ctx, clients[1], timetable{at, f.discard}, f.discard*s.p.MeasureS, func() bool { return time.Now().After(over) }, func(dst []byte, i int) []byte {
			return newOrder(dst, f.id(fmt.Sprintf("NONE-%d-", at.UnixNano()), i), "NONE", "SYM", 100, "")
		})
		if err == nil {
			discarded = p.sent()
		}
		none <- err
	}()
	p, err := publish(ctx, clients[0], timetable{at, f.preset.Pub}, f.preset.Pub*s.p.MeasureS, func() bool { return false }, func(dst []byte, i int) []byte {
		return newOrder(dst, f.id(idPrefix, f.step*stepIDs+i), f.account(f.topicOf(i)), f.symbol(), 100, "")
	})
	return p, discarded, errors.Join(err, <-none)
}

// expected are the accounts of the clients.
func (f *flood) expected(sent *publisher) func(client int) account {
	topics := make([]account, f.preset.Topics)
	for i := range sent.sent() {
		r := &sent.receipts[i]
		topics[f.topicOf(i)].add(uint32(r.Partition), r.Seq)
	}
	return func(client int) (all account) {
		for _, n := range f.wanted(client) {
			all.join(topics[n])
		}
		return all
	}
}

// settle waits until all messages have come, or none comes any more.
func settle(ctx context.Context, w *swarm, f flood, sent *publisher) error {
	want, expected := int64(0), f.expected(sent)
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
		if err := wait(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// stats of latencies: mean, median, p99, p99.9, deviation, maximum.
func (f *flooded) stats() (mean, p50, p99, p999, deviation, most float64) {
	n := len(f.latencies)
	if n == 0 {
		return
	}
	square := 0.0
	for _, v := range f.latencies {
		mean += v / float64(n)
		square += v * v / float64(n)
	}
	at := func(q float64) float64 { return f.latencies[min(n-1, int(q*float64(n)))] }
	return mean, at(0.5), at(0.99), at(0.999), math.Sqrt(max(0, square-mean*mean)), f.latencies[n-1]
}
