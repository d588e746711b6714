package system

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/published"
)

// Fields that stand for those of the published caches: which cache a row is of, the key of a position, the state of a trade.
const (
	tagCache  view.Field = 5001
	tagKey    view.Field = 5002
	tagStatus view.Field = 5003
	tagSettle view.Field = 64
	tagTrade  view.Field = 75
)

// cacheColumns are these in flags of nodes and gateway.
const cacheColumns = "5001:text:Cache,5002:text:PositionKey,5003:text:TradeStatus,64:text:SettlDate,75:text:TradeDate"

// Published rows of a million that questions by a date find.
const (
	positionDates = 343_909
	tradeDates    = 360_671
	perMillion    = 1_000_000
)

// hotRows are how many rows of a cache other questions find, whatever its size.
var hotRows = map[string]int{"K": 914, "PA": 914, "S0": 147, "X": 1000, "AA": 37}

// caches is a grid whose orders are the rows of caches: three of positions, P0 to P2, three of activities, A0 to A2, or
// multiples of these.
type caches struct {
	p     published.Caches
	grid  *devgrid.Grid
	c     *client.Client
	after []client.Receipt // of its rows
	// written are the rows of no cache that were acknowledged to clients beside, and last the latest of each partition.
	written struct {
		sync.Mutex
		rows int
		last map[wire.PartitionID]client.Receipt
	}
}

// newCaches starts a grid with views and loads the rows.
func (o *Options) newCaches(ctx context.Context, p published.Caches) (*caches, error) {
	return o.newCachesOn(ctx, p, 1, 2)
}

// newCachesOn is newCaches with so many shards of so many copies.
func (o *Options) newCachesOn(ctx context.Context, p published.Caches, shards, replicas int) (*caches, error) {
	k, err := o.emptyCaches(ctx, p, p.Rows*p.Caches, shards, replicas)
	if err != nil {
		return nil, err
	}
	if err := k.load(ctx, o, k.row); err != nil {
		return nil, errors.Join(err, k.end())
	}
	return k, nil
}

// emptyCaches starts a grid with views, with memory for so many orders of up to a KiB.
func (o *Options) emptyCaches(ctx context.Context, p published.Caches, orders, shards, replicas int) (*caches, error) {
	rows := p.Rows * p.Caches
	views := int64(256) + int64(rows)/4096 // 256 bytes a row, to spare
	k := &caches{p: p}
	var err error
	k.grid, err = o.nodes(ctx, shards, replicas, gridMiB(orders)+views, "--views", fmt.Sprintf("%dMi", views), "--view-rows", fmt.Sprint(max(1<<18, (rows/(1<<16)+2)<<16)), "--order-index", cacheColumns)
	if err != nil {
		return nil, err
	}
	if k.c, err = client.Dial(ctx, client.Config{Endpoints: k.grid.Endpoints, RequestTimeout: time.Minute}); err != nil {
		return nil, errors.Join(err, k.end())
	}
	return k, nil
}

// load writes all rows.
func (k *caches) load(ctx context.Context, o *Options, row func(dst []byte, i int) []byte) (err error) {
	o.Say("%d rows in %d caches", k.p.Rows*k.p.Caches, k.p.Caches)
	k.after, err = submitAll(ctx, k.c, k.p.Rows*k.p.Caches, row)
	return err
}

func (k *caches) end() error {
	if k.c != nil {
		_ = k.c.Close() // it never fails
	}
	return k.grid.Stop()
}

// row is order i: caches in turn, so that the rows of each are all over the log.
func (k *caches) row(dst []byte, i int) []byte {
	kind, region := "P", i%k.p.Caches/2
	if i%2 == 1 {
		kind = "A"
	}
	return cacheRow(dst, rowID(kind, region, i/k.p.Caches), kind, region, shuffled(i/k.p.Caches, k.p.Rows), k.p.Rows)
}

// rowID is the key of row n of a cache.
func rowID(kind string, region, n int) string { return fmt.Sprintf("%s%d-%09d", kind, region, n) }

// shuffled spreads the numbers of rows: it is a bijection unless rows is a multiple of 7,919.
func shuffled(n, rows int) int { return n * 7919 % rows }

// cacheRow is an order whose fields follow from its number j among the rows of its cache.
func cacheRow(dst []byte, id, kind string, region, j, rows int) []byte {
	account, key, status, settle, trade := fmt.Sprintf("ACC%03d", j%500), "-", fmt.Sprintf("ST%d", j%7), fmt.Sprintf("S%d", 1+j%250), fmt.Sprintf("D%d", 1+j%3)
	date := tradeDates
	if kind == "P" {
		date = positionDates
		if j < hotRows["K"] {
			key = "K"
		}
	} else {
		if j < hotRows["X"] {
			status = "X"
		}
		if j < hotRows["S0"] {
			settle = "S0"
		}
	}
	if j < hotRows[kind+"A"] { // three accounts
		account = fmt.Sprintf("%sA%d", kind, j%3)
	}
	if j < date*rows/perMillion {
		trade = "D0"
	}
	more := fmt.Sprintf("64=%s\x0175=%s\x015001=%s%d\x015002=%s\x015003=%s\x01", settle, trade, kind, region, key, status)
	return newOrder(dst, id, account, fmt.Sprintf("SYM%02d", j%64), 1+j%1000, more)
}

func equal(f view.Field, values ...string) query.Expr {
	e := query.Expr{Op: query.Eq, Field: f}
	if len(values) > 1 {
		e.Op = query.In
	}
	for _, v := range values {
		e.Values = append(e.Values, view.TextValue(v))
	}
	return e
}

func both(a, b query.Expr) query.Expr { return query.Expr{Op: query.And, Args: []query.Expr{a, b}} }

// object are the fields of a row that an answer has.
var object = []view.Field{view.ClOrdID, view.Account, view.Symbol, view.Price, view.OrderQty, tagCache, tagStatus, tagSettle, tagTrade}

// ask fetches all rows that a question finds, and counts them.
func (k *caches) ask(ctx context.Context, where query.Expr) (rows int, err error) {
	err = k.pages(ctx, object, where, func(page [][]view.Value) { rows += len(page) })
	return rows, err
}

// pages fetches fields of all rows that a question finds, page by page.
func (k *caches) pages(ctx context.Context, fields []view.Field, where query.Expr, visit func([][]view.Value)) error {
	q := client.Query{Query: query.Query{Select: fields, Where: &where, Limit: 10_000}, After: k.after}
	for {
		a, err := k.c.Query(ctx, q)
		if err != nil {
			return err
		}
		visit(a.Rows)
		if a.Next == nil {
			return nil
		}
		q.Page = a.Next
	}
}

// keys gets so many rows by key, many at the same time, and counts those that were there.
func (k *caches) keys(ctx context.Context, n int) (int, error) {
	var there atomic.Int64
	err := each(ctx, n, func(ctx context.Context, i int) error {
		_, err := k.c.GetByClOrdID(ctx, rowID("A", 0, i%k.p.Rows))
		if err == nil {
			there.Add(1)
		} else if errors.Is(err, client.ErrNotFound) {
			err = nil
		}
		return err
	})
	return int(there.Load()), err
}

// together is how many requests are under way where one client sends many.
const together = 128

// each calls f for 0 to n-1, many at the same time, until one fails.
func each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	return eachBy(ctx, n, together, f)
}

// eachBy is each, so many at the same time.
func eachBy(ctx context.Context, n, most int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, most) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := f(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// user is the account of rows of no cache.
const user = "USER"

// beside has clients ask for accounts and write rows of no cache until stop is called.
func (k *caches) beside(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for u := range k.p.Users {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, err := k.ask(ctx, both(equal(tagCache, "A0"), equal(view.Account, fmt.Sprintf("ACC%03d", (u*37+i)%500))))
				if err == nil {
					var receipt client.Receipt
					receipt, err = k.c.Submit(ctx, newOrder(nil, fmt.Sprintf("U%d-%d-%d", u, i, time.Now().UnixNano()), user, "SYM", 100, ""))
					if err == nil {
						k.acked(receipt)
					}
				}
				if err != nil && ctx.Err() == nil {
					failed.Store(&err)
					return
				}
				_ = clock.Wait(ctx, time.Duration(k.p.SleepMs)*time.Millisecond)
			}
		})
	}
	return func() error {
		cancel()
		all.Wait()
		if err := failed.Load(); err != nil {
			return *err
		}
		return nil
	}
}

func (k *caches) acked(r client.Receipt) {
	k.written.Lock()
	defer k.written.Unlock()
	if k.written.last == nil {
		k.written.last = map[wire.PartitionID]client.Receipt{}
	}
	if k.written.rows++; r.Seq > k.written.last[r.Partition].Seq {
		k.written.last[r.Partition] = r
	}
}

// timed is the median of the seconds that a function takes, and whether it counted the same each time.
func timed(loops, want int, ask func() (int, error)) (seconds float64, counted int, err error) {
	var all []float64
	counted = want
	for range loops {
		begun := time.Now()
		n, err := ask()
		if err != nil {
			return 0, 0, err
		}
		all = append(all, time.Since(begun).Seconds())
		if n != want {
			counted = n
		}
	}
	return median(all), counted, nil
}

// leastTime is how long two ways are asked at the least: of a question that takes a tenth of a millisecond, ten loops are
// over before caches of processors and of processes are what they are under way.
const leastTime = time.Second

// taken is what a way of asking took, in the median, and whether it counted the same each time.
type taken struct {
	all     []float64
	seconds float64
	counted int
}

// byTurns asks in two ways by turns, so that both have what else the machine does.
func byTurns(loops, want int, one, other func() (int, error)) (a, b taken, err error) {
	a.counted, b.counted = want, want
	begun := time.Now()
	for i := 0; i < loops || time.Since(begun) < leastTime; i++ {
		for _, way := range []struct {
			ask func() (int, error)
			t   *taken
		}{{one, &a}, {other, &b}} {
			began := time.Now()
			n, err := way.ask()
			if err != nil {
				return a, b, err
			}
			way.t.all = append(way.t.all, time.Since(began).Seconds())
			if n != want {
				way.t.counted = n
			}
		}
	}
	a.seconds, b.seconds = median(a.all), median(b.all)
	return a, b, nil
}

// control writes one row more that a question finds: it has to be counted.
func (k *caches) control(ctx context.Context, r *Report) error {
	where := both(equal(tagCache, "A0"), equal(view.Account, "AA0", "AA1", "AA2"))
	before, err := k.ask(ctx, where)
	if err != nil {
		return err
	}
	receipt, err := k.c.Submit(ctx, cacheRow(nil, fmt.Sprintf("CONTROL-%d", time.Now().UnixNano()), "A", 0, 0, k.p.Rows))
	if err != nil {
		return err
	}
	k.after = append(k.after, receipt)
	after, err := k.ask(ctx, where)
	if err != nil {
		return err
	}
	r.Control = fmt.Sprintf("one row more was written: a question found %d rows before it and %d after", before, after)
	if after != before+1 {
		r.judge(Invalid, "the control found %d rows, and %d with one more: the counts are not to be believed", before, after)
	}
	return nil
}
