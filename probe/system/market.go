package system

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/published"
)

const (
	// symbolsEach are traded by each queue.
	symbolsEach = 8
	// reference is the price around which all orders are, and farthest how far from it at most.
	reference, farthest = 500, 5
	// restingPct of the orders are on the far side of the reference, so that they rest.
	restingPct = 5
	// toldWithin is how long after the last answer all executions have to be told.
	toldWithin = 10 * time.Second
)

// market is a grid that matches.
type market struct {
	grid    *devgrid.Grid
	symbols [][]string // by partition
	tapes   []*tape    // likewise
	next    []uint64   // entry from which a tape goes on
	kept    []client.Execution
	sent    map[uint64]sale // those of the kept ones
	step    int
}

// newMarket starts one with so many queues, for so many orders.
func (o *Options) newMarket(ctx context.Context, queues, orders int) (_ *market, err error) {
	m := &market{symbols: make([][]string, queues), next: make([]uint64, queues), sent: map[uint64]sale{}}
	var text []byte
	for i, left := 0, queues*symbolsEach; left > 0; i++ {
		symbol := fmt.Sprintf("S%05d", i)
		if q := order.HashClOrdID([]byte(symbol)) % uint64(queues); len(m.symbols[q]) < symbolsEach {
			m.symbols[q] = append(m.symbols[q], symbol)
			text = append(text, instrumentText(symbol, reference, "open")...)
			left--
		}
	}
	for q := range queues {
		m.tapes, m.next[q] = append(m.tapes, newTape()), 1
	}
	m.grid, err = o.exchange(ctx, fmt.Sprintf("instruments-%d", queues), text, queues, gridMiB(orders*5/2)) // executions have a part of a node's memory
	return m, err
}

// instrumentText is an instrument of a file of them, with prices up to twice its reference.
func instrumentText(symbol string, reference int, state string) []byte {
	return fmt.Appendf(nil, "- {symbol: %s, tick: \"1\", lot: \"1\", low: \"1\", high: \"%d\", reference: \"%d\", state: %s}\n", symbol, 2*reference, reference, state)
}

// exchange starts a grid of two nodes that matches, with so many partitions and nodes of so many MiB.
func (o *Options) exchange(ctx context.Context, name string, instruments []byte, partitions int, nodeMiB int64) (*devgrid.Grid, error) {
	file, err := filepath.Abs(filepath.Join(o.Dir, name+".yaml"))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, instruments, 0o600); err != nil {
		return nil, err
	}
	return o.pair(ctx, nodeMiB, "--partitions", strconv.Itoa(partitions), "--", "--execution", "match", "--instruments", file)
}

// sold is an order of a step, with its times in nanoseconds since the step began.
type sold struct {
	sale
	due, sent, acked, traded int64
	receipt                  client.Receipt
}

// feeder sends the orders of the users that a concentrator has in a queue.
type feeder struct {
	session *client.Session
	number  int
	users   []int
	symbols []string
	orders  []sold
	window  chan struct{} // an answer has come
	open    atomic.Int64
	failed  atomic.Pointer[error]

	mu    sync.Mutex
	fills []told
}

// told is an execution, as it was pushed.
type told struct {
	order   uint64
	at      int64
	passive bool
}

// demand is how a step sends.
type demand struct {
	row   published.Exchange
	rate  int // orders/s of all; 0: as fast as the windows let them
	lasts time.Duration
	most  int // orders
}

// traded is what came of a step.
type traded struct {
	orders, trades, lost     int
	tps                      float64
	waited, acked, trade     []time.Duration // sorted
	unserved, untold, toldTo int             // users without an order; executions
	wrong                    string
}

// run sends the orders of one step and holds what the grid says of them against what was sent.
func (m *market) run(ctx context.Context, d demand) (_ *traded, err error) {
	m.step++
	begun := time.Now()
	feeders := make([]*feeder, d.row.Concentrators*d.row.Queues)
	for c := range d.row.Concentrators {
		g, err := client.Dial(ctx, client.Config{Endpoints: m.grid.Endpoints, RequestTimeout: time.Minute, MaxInFlight: d.row.Matchmaker, OnExecutions: func(list []client.Execution) {
			feeders[c*d.row.Queues+int(list[0].Partition)].told(list, int64(time.Since(begun)))
		}})
		if err != nil {
			return nil, err
		}
		defer g.Close() //nolint:errcheck // it never fails
		for q := range d.row.Queues {
			f := &feeder{number: c*d.row.Queues + q, symbols: m.symbols[q], window: make(chan struct{}, 1)}
			for u := c + d.row.Concentrators*q; u < d.row.Users; u += d.row.Concentrators * d.row.Queues {
				f.users = append(f.users, u)
			}
			feeders[f.number] = f
			if f.session, err = g.OpenSession(ctx, wire.PartitionID(q)); err != nil {
				return nil, err
			}
		}
	}
	begun = time.Now()
	if err := eachBy(ctx, len(feeders), len(feeders), func(ctx context.Context, i int) error {
		return feeders[i].send(ctx, d, m.step, begun, len(feeders))
	}); err != nil {
		return nil, err
	}
	return m.settle(ctx, feeders)
}

func (f *feeder) told(list []client.Execution, at int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range list {
		if list[i].Kind == client.ExecFilled {
			f.fills = append(f.fills, told{list[i].Order, at, list[i].Passive})
		}
	}
}

// make draws the order of a user: half of them buy, the other half sells.
func (f *feeder) make(n, step int, rng *rand.Rand, buf []byte) (sale, []byte) {
	u := n % len(f.users)
	s := sale{symbol: f.symbols[u/2%len(f.symbols)], side: uint8(1 + u%2), qty: 1 + rng.Int64N(100), by: f.number, step: step}
	off := rng.Int64N(farthest + 1)
	if rng.IntN(100) < restingPct {
		off = -off - 1
	}
	if s.price = reference + off; s.side == 2 {
		s.price = reference - off
	}
	user := strconv.Itoa(f.users[u])
	body := fmt.Appendf(nil, "35=D\x0149=USER%s\x0156=GRID\x0134=%d\x0152=20261123-09:30:00\x0111=%d-%s-%d\x011=U%s\x0121=1\x0155=%s\x0154=%d\x0160=20261123-09:30:00\x0138=%d\x0140=2\x0144=%d\x0159=0\x01",
		user, n/len(f.users)+1, step, user, n/len(f.users)+1, user, s.symbol, s.side, s.qty, s.price)
	buf = append(append(append(buf[:0], "8=FIX.4.2\x019="...), strconv.Itoa(len(body))...), '\x01')
	buf = append(buf, body...)
	return s, fmt.Appendf(buf, "10=%03d\x01", order.CheckSum(buf))
}

// send sends what is due, as many orders in one go as a feeder commits together, and waits for their answers.
func (f *feeder) send(ctx context.Context, d demand, step int, begun time.Time, of int) error {
	rng := rand.New(rand.NewPCG(uint64(step), uint64(f.number)))
	n := max(d.most/of, len(f.users))
	f.orders = make([]sold, n)
	var buf []byte
	together := 0
	for i := range n {
		due := time.Since(begun)
		if d.rate > 0 {
			due = time.Duration(i*of+f.number) * time.Second / time.Duration(d.rate)
			if early := due - time.Since(begun); early > 0 {
				f.session.Push()
				together = 0
				if err := clock.Wait(ctx, early); err != nil {
					return err
				}
			}
		}
		if due > d.lasts && i >= len(f.users) || f.failed.Load() != nil {
			f.orders = f.orders[:i]
			break
		}
		o := &f.orders[i]
		if o.sale, buf = f.make(i, step, rng, buf); d.rate == 0 {
			due = time.Since(begun)
		}
		o.due = int64(due)
		if err := f.enqueue(ctx, o, buf, begun); err != nil {
			return err
		}
		if together++; together >= d.row.Feeder {
			f.session.Push()
			together = 0
		}
	}
	f.session.Push()
	return f.settled(ctx)
}

// enqueue hands an order to the session, when its window lets it.
func (f *feeder) enqueue(ctx context.Context, o *sold, fix []byte, begun time.Time) error {
	for {
		f.open.Add(1)
		err := f.session.Enqueue(fix, func(r client.Receipt, err error) {
			if err != nil {
				err = fmt.Errorf("an order of %s: %w", o.symbol, err)
				f.failed.CompareAndSwap(nil, &err)
			}
			o.receipt, o.acked = r, int64(time.Since(begun))
			f.open.Add(-1)
			select {
			case f.window <- struct{}{}:
			default:
			}
		})
		if err == nil {
			o.sent = int64(time.Since(begun))
			return nil
		}
		f.open.Add(-1)
		if !errors.Is(err, client.ErrWindowFull) {
			return err
		}
		f.session.Push()
		if err := f.answer(ctx); err != nil {
			return err
		}
	}
}

func (f *feeder) answer(ctx context.Context) error {
	select {
	case <-f.window:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute):
		return fmt.Errorf("%d orders were not answered in a minute", f.open.Load())
	}
}

// settle reads the executions of all partitions and judges them.
func (m *market) settle(ctx context.Context, feeders []*feeder) (*traded, error) {
	x := &traded{}
	last := int64(0)
	for _, t := range m.tapes {
		t.step, t.told = m.step, map[int]int{}
	}
	for _, f := range feeders {
		x.unserved += max(0, len(f.users)-len(f.orders))
		for i := range f.orders {
			o := &f.orders[i]
			own := o.sale
			m.tapes[o.receipt.Partition].sent[o.receipt.Seq] = &own
			if m.step == 1 && o.receipt.Partition == 0 {
				m.sent[o.receipt.Seq] = o.sale
			}
			last = max(last, o.acked)
			x.orders++
			x.waited, x.acked = append(x.waited, time.Duration(o.sent-o.due)), append(x.acked, time.Duration(o.acked-o.due))
		}
	}
	x.tps = float64(x.orders) / time.Duration(last).Seconds()
	slices.Sort(x.waited)
	slices.Sort(x.acked)
	return x, m.judge(ctx, x, feeders)
}

// judge holds executions and books against what was sent, and what was pushed against the executions.
func (m *market) judge(ctx context.Context, x *traded, feeders []*feeder) error {
	c, err := client.Dial(ctx, client.Config{Endpoints: m.grid.Endpoints, RequestTimeout: time.Minute})
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // it never fails
	note := func(text string) {
		if text != "" && x.wrong == "" {
			x.wrong = text
		}
	}
	want := make([]int, len(feeders))
	for q, t := range m.tapes {
		before := t.fills
		m.next[q], err = c.ReadExecutions(ctx, wire.PartitionID(q), "", m.next[q], func(e client.Execution) error {
			if m.step == 1 && q == 0 {
				m.kept = append(m.kept, e)
			}
			if x.wrong == "" { // what follows would follow from it
				note(t.read(e))
			}
			return nil
		})
		if err != nil {
			return err
		}
		if x.wrong == "" {
			note(t.end())
		}
		if n := t.lost(); n > 0 {
			note(fmt.Sprintf("partition %d: %d acknowledged orders are neither executed nor in a book", q, n))
		}
		if t.traded[1] != t.traded[2] {
			note(fmt.Sprintf("partition %d: %d were bought and %d sold", q, t.traded[1], t.traded[2]))
		}
		for _, symbol := range m.symbols[q] {
			b, err := c.ReadBook(ctx, symbol, client.MostLevels, "")
			if err != nil {
				return err
			}
			note(t.shows(b))
		}
		for by, n := range t.told {
			want[by] += n
		}
		x.trades += t.fills - before
		x.lost += t.lost()
	}
	return m.pushed(ctx, x, feeders, want)
}

// pushed waits until all executions were told, and takes the times of the trades of incoming orders.
func (m *market) pushed(ctx context.Context, x *traded, feeders []*feeder, want []int) error {
	for by, f := range feeders {
		count := func() int { f.mu.Lock(); defer f.mu.Unlock(); return len(f.fills) }
		for until := time.Now().Add(toldWithin); count() < want[by] && time.Now().Before(until); {
			if err := clock.Wait(ctx, time.Millisecond); err != nil {
				return err
			}
		}
		x.toldTo += count()
		x.untold += want[by] - count()
		at := map[uint64]*sold{}
		for i := range f.orders {
			at[f.orders[i].receipt.Seq] = &f.orders[i]
		}
		for _, e := range f.fills {
			if o := at[e.order]; o != nil && !e.passive && o.traded == 0 {
				o.traded = e.at
				x.trade = append(x.trade, time.Duration(o.traded-o.due))
			}
		}
	}
	slices.Sort(x.trade)
	return nil
}
