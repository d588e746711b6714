package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// These tests run against `grid-node dev`: real nodes, real replication, real
// kills. What only a broken node does is in hostile_test.go.

func TestMain(m *testing.M) {
	code := m.Run()
	if exampleGrid != nil {
		exampleGrid.Stop()
	}
	os.Exit(code)
}

func dial(t testing.TB, g *testgrid.Grid, change ...func(*client.Config)) *client.Client {
	t.Helper()
	cfg := client.Config{Endpoints: g.Endpoints, Grid: "dev", DialTimeout: time.Minute, RequestTimeout: time.Minute}
	for _, f := range change {
		f(&cfg)
	}
	c, err := client.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func eachIO(t *testing.T, f func(t *testing.T, io func(*client.Config))) {
	for _, m := range []client.IO{client.IONet, client.IOBlocking, client.IOPinned} {
		t.Run(m.String(), func(t *testing.T) { f(t, func(c *client.Config) { c.IO = m }) })
	}
}

func TestGridSubmitAndRead(t *testing.T) {
	g := testgrid.Run(t)
	c := dial(t, g)
	if n := len(c.Table()); n != 2 {
		t.Fatalf("%d partitions, want 2", n)
	}
	perPartition := map[wire.PartitionID]int{}
	for i := range 50 {
		id := fmt.Sprintf("READ-%d", i)
		fix := testgrid.Order(id, 305)
		r, err := c.Submit(t.Context(), fix)
		if err != nil {
			t.Fatal(err)
		}
		if r.Copies != 2 || r.Epoch == 0 || r.Duplicate {
			t.Fatalf("receipt %v, want two copies", r)
		}
		perPartition[r.Partition]++
		for _, mode := range []client.ReadMode{client.Confirmed, client.Leased} {
			o, err := c.Get(t.Context(), r.ID(), client.WithMode(mode))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(o.FIX, fix) || o.ClOrdID != id || o.Symbol != "IBM" || o.Account != "ACC" || o.Side != '1' || o.ID != r.ID() {
				t.Fatalf("mode %d: order %+v", mode, o)
			}
		}
		o, err := c.GetByClOrdID(t.Context(), id)
		if err != nil || o.ID != r.ID() {
			t.Fatalf("by ClOrdID: %v %v, want %v", o.ID, err, r.ID())
		}
	}
	if len(perPartition) != 2 {
		t.Fatalf("orders went to %v: routing does not spread", perPartition)
	}
	// A backup may be behind: it catches up.
	last := c.Table()[0].ID
	r, err := c.SubmitTo(t.Context(), last, testgrid.Order("BACKUP", 305))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		o, err := c.Get(t.Context(), r.ID(), client.WithMode(client.Backup))
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil && o.ClOrdID == "BACKUP" && o.From != c.Table()[0].Primary.Address
	})
}

func waitFor(t testing.TB, f func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !f(); time.Sleep(time.Millisecond) { // a hang, not a busy machine
		if time.Now().After(end) {
			t.Fatal("it did not happen")
		}
	}
}

func TestGridRefusals(t *testing.T) {
	g := testgrid.Run(t)
	c := dial(t, g)
	good := testgrid.Order("ONCE", 305)
	first, err := c.Submit(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	badSum := bytes.Clone(testgrid.Order("BADSUM", 305))
	badSum[len(badSum)-2] ^= 1
	noSymbol := bytes.ReplaceAll(testgrid.Order("NOSYM", 305), []byte("55=IBM"), []byte("65=IBM"))
	for name, tc := range map[string]struct {
		fix  []byte
		want error
		tag  uint32
	}{
		"duplicate":  {good, client.ErrDuplicateClOrdID, 11},
		"checksum":   {badSum, client.ErrBadFIX, 10},
		"no symbol":  {noSymbol, client.ErrBadFIX, 10},
		"no ClOrdID": {[]byte("8=FIX.4.2\x01"), client.ErrBadFIX, 11},
		"empty":      {nil, client.ErrBadFIX, 11},
		"too large":  {testgrid.Order("LARGE", 20<<10), client.ErrTooLarge, 0},
		"giant":      {append(testgrid.Order("GIANT", 305), make([]byte, 1<<17)...), client.ErrTooLarge, 0},
	} {
		_, err := c.Submit(t.Context(), tc.fix)
		var reject *client.RejectError
		if !errors.Is(err, tc.want) || !errors.As(err, &reject) || reject.Tag != tc.tag || client.FateOf(err) != client.FateRefused {
			t.Errorf("%s: error %v, want %v, tag %d", name, err, tc.want, tc.tag)
		}
		t.Log(err)
	}
	if _, err := c.GetByClOrdID(t.Context(), "NEVER"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	if _, err := c.Get(t.Context(), wire.OrderID{Partition: first.Partition, Seq: 1 << 40}); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	if _, err := c.SubmitTo(t.Context(), 99, good); !errors.Is(err, client.ErrNotSent) {
		t.Errorf("error %v", err)
	}
	if _, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints, Grid: "other", DialTimeout: time.Second}); !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("another grid's name: error %v", err)
	} else {
		t.Log(err)
	}
}

func TestGridLogsAreEqual(t *testing.T) {
	g := testgrid.Run(t)
	c := dial(t, g)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 250 {
				if _, err := c.Submit(t.Context(), testgrid.Order(fmt.Sprintf("LOG-%d-%d", w, i), 305)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	orders := 0
	for _, p := range c.Table() {
		logs := make([][]byte, len(p.Members))
		for i, m := range p.Members {
			waitFor(t, func() bool {
				logs[i] = logs[i][:0]
				end, err := c.ReadLog(t.Context(), p.ID, m.Address, 1, func(e client.LogEntry) error {
					logs[i] = append(logs[i], e.Bytes...)
					if i == 0 && e.Kind == order.KindOrder {
						orders++
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				return i == 0 || end.CommitSeq == end.LastSeq && len(logs[i]) == len(logs[0])
			})
		}
		if !bytes.Equal(logs[0], logs[1]) {
			t.Fatalf("%s: the replicas' logs differ", p.ID)
		}
	}
	if orders != 1000 {
		t.Fatalf("%d orders in the logs, want 1000", orders)
	}
}

func TestGridSubmitAllocatesNothing(t *testing.T) {
	eachIO(t, func(t *testing.T, io func(*client.Config)) {
		g := testgrid.Run(t)
		c := dial(t, g, io)
		s, err := c.Session(c.Table()[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		const runs = 2000
		orders := make([][]byte, runs+1)
		for i := range orders {
			orders[i] = testgrid.Order(fmt.Sprintf("ALLOC-%d", i), 305)
		}
		ctx, i := context.Background(), 0
		if n := testing.AllocsPerRun(runs, func() {
			if _, err := s.Submit(ctx, orders[i]); err != nil {
				t.Fatal(err)
			}
			i++
		}); n != 0 {
			t.Errorf("%v allocations per Session.Submit, want 0", n)
		}
		for i := range orders {
			orders[i] = testgrid.Order(fmt.Sprintf("ROUTED-%d", i), 305)
		}
		for i = range 100 { // both sessions of the client are open, their buffers grown
			if _, err := c.Submit(ctx, testgrid.Order(fmt.Sprintf("WARM-%d", i), 305)); err != nil {
				t.Fatal(err)
			}
		}
		i = 0
		if n := testing.AllocsPerRun(runs, func() {
			if _, err := c.Submit(ctx, orders[i]); err != nil {
				t.Fatal(err)
			}
			i++
		}); n != 0 {
			t.Errorf("%v allocations per Client.Submit, want 0", n)
		}
	})
}

// TestGridSeveralShards: one endpoint of one shard is enough, it knows the whole grid.
func TestGridSeveralShards(t *testing.T) {
	g := testgrid.Run(t, "--shards", "3")
	c := dial(t, g, func(c *client.Config) { c.Endpoints = c.Endpoints[:1] })
	if n := len(c.Table()); n != 6 {
		t.Fatalf("%d partitions, want 6", n)
	}
	perPartition := map[wire.PartitionID]int{}
	for i := range 120 {
		id := fmt.Sprintf("SHARD-%d", i)
		r, err := c.Submit(t.Context(), testgrid.Order(id, 305))
		if err != nil {
			t.Fatal(err)
		}
		if r.Partition != c.RouteClOrdID([]byte(id)) {
			t.Errorf("order %s went to %s", id, r.Partition)
		}
		perPartition[r.Partition]++
	}
	if len(perPartition) != 6 {
		t.Errorf("orders went to %v: routing does not spread", perPartition)
	}
	// An order that is not where its ClOrdID belongs is found all the same.
	home := c.RouteClOrdID([]byte("STRAY"))
	for _, p := range c.Table() {
		if p.ID != home {
			if _, err := c.SubmitTo(t.Context(), p.ID, testgrid.Order("STRAY", 305)); err != nil {
				t.Fatal(err)
			}
			o, err := c.GetByClOrdID(t.Context(), "STRAY")
			if err != nil || o.ID.Partition != p.ID {
				t.Fatalf("found %v, %v, want it in %s", o.ID, err, p.ID)
			}
			break
		}
	}
}

// BenchmarkGridSubmit is one synchronous client against `grid-node dev`, per IO.
func BenchmarkGridSubmit(b *testing.B) {
	g := testgrid.Run(b)
	for _, mode := range []client.IO{client.IONet, client.IOBlocking, client.IOPinned} {
		b.Run(mode.String(), func(b *testing.B) {
			c := dial(b, g, func(c *client.Config) { c.IO = mode })
			s, err := c.Session(c.Table()[0].ID)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			orders := make([][]byte, b.N)
			run := benchRun.Add(1)
			for i := range orders {
				orders[i] = testgrid.Order(fmt.Sprintf("B%d-%d", run, i), 305)
			}
			b.ResetTimer()
			for i := range b.N {
				if _, err := s.Submit(context.Background(), orders[i]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var benchRun atomic.Int64
