package load

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// Waiting threads keep their scheduler processors, as order-probe arranges.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(12)
	os.Exit(m.Run())
}

// server answers after a fixed time and numbers orders like a partition does.
type server struct {
	mu      sync.Mutex
	service time.Duration
	seq     uint64
	ids     map[string]int
	fail    func(seq uint64) error
}

var errRefused = errors.New("refused")

func (s *server) Submit(ctx context.Context, fix []byte) (Receipt, error) {
	if err := fixorder.Check(fix); err != nil {
		return Receipt{}, err
	}
	clock.SleepUntil(clock.Now() + int64(s.service))
	if err := ctx.Err(); err != nil {
		return Receipt{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		if err := s.fail(s.seq + 1); err != nil {
			s.seq++
			return Receipt{}, err
		}
	}
	s.seq++
	if s.ids == nil {
		s.ids = map[string]int{}
	}
	off := bytes.Index(fix, []byte("\x0111=")) + 4
	s.ids[string(fix[off:off+fixorder.IDSize])]++
	return Receipt{Seq: s.seq, Epoch: 3, Copies: 2}, nil
}

func (s *server) Fate(err error) Fate {
	if errors.Is(err, errRefused) {
		return Rejected
	}
	return Unknown
}

func probe(s *server, threads int) *Probe {
	p := &Probe{Name: "A", ID: fixorder.ID{Run: 1}, Version: fixorder.FIX42}
	for range threads {
		p.Threads = append(p.Threads, s)
	}
	return p
}

func run(ctx context.Context, t *testing.T, p *Probe, rate int, n int64, drain time.Duration) (Step, []Order, Outcome) {
	t.Helper()
	room, err := NewOrders(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { room.Close() })
	sched, err := NewSteady(rate, 0)
	if err != nil {
		t.Fatal(err)
	}
	step := Step{Schedule: sched, Start: clock.Now() + int64(time.Millisecond), DrainLimit: drain}
	orders := room.First(n)
	out, err := p.Run(ctx, step, orders)
	if err != nil {
		t.Fatal(err)
	}
	return step, orders, out
}

func TestEveryOrderIsPublishedOnce(t *testing.T) {
	for _, threads := range []int{1, 4, 7} {
		s := &server{}
		_, orders, out := run(t.Context(), t, probe(s, threads), 20_000, 2000, time.Minute)
		if out.Created != 2000 || len(s.ids) != 2000 || out.Failed != 0 {
			t.Fatalf("%d threads: created %d, %d distinct at the server, %d failed", threads, out.Created, len(s.ids), out.Failed)
		}
		seen := map[uint64]bool{}
		for i, o := range orders {
			if o.Fate != Acked || o.Copies != 2 || o.Epoch != 3 || seen[o.Seq] {
				t.Fatalf("%d threads: order %d: %+v", threads, i, o)
			}
			seen[o.Seq] = true
			if o.T1 > o.T2 || o.T2 > o.T3 {
				t.Fatalf("order %d: times run backwards: %+v", i, o)
			}
		}
	}
}

// observed counts the creator's progress.
type observed struct {
	Schedule
	asked atomic.Int64
}

func (o *observed) Offset(i int64) int64 {
	o.asked.Store(i)
	return o.Schedule.Offset(i)
}

// A stalled server must not delay creation: that is the difference between an open and a closed
// loop. The server stalls here until the creator has gone on; a creator that waited for publishing
// would never end the test.
func TestStallDoesNotReachTheCreator(t *testing.T) {
	steady, err := NewSteady(5000, 0)
	if err != nil {
		t.Fatal(err)
	}
	const n, during = 300, 200
	sched := &observed{Schedule: steady}
	s := &server{fail: func(seq uint64) error {
		for seq == 1 && sched.asked.Load() < during { // holds the lock: all threads stall
			clock.SleepUntil(clock.Now() + int64(time.Millisecond))
		}
		return nil
	}}
	room, err := NewOrders(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { room.Close() })
	orders := room.First(n)
	out, err := probe(s, 4).Run(t.Context(), Step{Schedule: sched, Start: clock.Now(), DrainLimit: time.Minute}, orders)
	if err != nil || out.Created != n {
		t.Fatalf("%+v, %v", out, err)
	}
	firstAck := orders[0].T3
	for _, o := range orders {
		firstAck = min(firstAck, o.T3)
	}
	for i, o := range orders[4:during] { // the first four went to the threads
		if o.T1 >= firstAck || o.T2 < firstAck {
			t.Fatalf("order %d was created or sent at the wrong side of the stall: %+v, stall ended %d", i+4, o, firstAck)
		}
	}
}

func TestFates(t *testing.T) {
	timeout := errors.New("timed out")
	s := &server{fail: func(seq uint64) error {
		switch seq % 10 {
		case 3:
			return errRefused
		case 7:
			return timeout
		}
		return nil
	}}
	_, orders, out := run(t.Context(), t, probe(s, 4), 10_000, 100, time.Minute)
	var counts [4]int
	for _, o := range orders {
		counts[o.Fate]++
	}
	if counts != [4]int{Unsent: 0, Acked: 80, Rejected: 10, Unknown: 10} || out.Failed != 20 || len(out.Errors) == 0 {
		t.Errorf("counts %v, outcome %+v", counts, out)
	}
}

func TestDrainLimitLeavesOrdersUnsent(t *testing.T) {
	s := &server{service: 20 * time.Millisecond}
	_, orders, out := run(t.Context(), t, probe(s, 1), 10_000, 200, 50*time.Millisecond)
	unsent := 0
	for _, o := range orders {
		if o.Fate == Unsent {
			unsent++
		}
	}
	if out.Created != 200 || unsent == 0 || unsent == 200 {
		t.Errorf("created %d, unsent %d", out.Created, unsent)
	}
}

func TestCancelStopsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(30*time.Millisecond, cancel)
	_, _, out := run(ctx, t, probe(&server{}, 4), 100, 1_000_000, time.Hour)
	if out.Created > 100 {
		t.Errorf("created %d orders", out.Created)
	}
}

func TestIndexBound(t *testing.T) {
	p := probe(&server{}, 1)
	_, err := p.Run(t.Context(), Step{First: fixorder.MaxIndex}, make([]Order, 2))
	if err == nil {
		t.Error("an index that does not fit the ClOrdID was accepted")
	}
}

// Threads that race for few orders must neither lose one nor sleep for ever.
func TestGateUnderRace(t *testing.T) {
	const threads, n = 4, 20_000
	g := newGate(threads)
	var taken [n]atomic.Int32
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() {
			for {
				i, ok := g.take()
				if !ok {
					return
				}
				taken[i].Add(1)
			}
		})
	}
	for i := range int64(n) {
		g.put(i)
		if i%64 == 0 {
			clock.SleepUntil(clock.Now() + 50_000) // let threads run out of orders
		}
	}
	g.close()
	wg.Wait()
	for i := range taken {
		if c := taken[i].Load(); c != 1 {
			t.Fatalf("order %d was taken %d times", i, c)
		}
	}
}

// From creation to acknowledgement nothing is allocated per order: a garbage collection of the
// probe would be counted as the grid's latency.
func TestLoadAllocatesNothingPerOrder(t *testing.T) {
	p := &Probe{Name: "A", ID: fixorder.ID{Run: 1}, Version: fixorder.FIX42}
	for range 4 {
		p.Threads = append(p.Threads, &instant{})
	}
	const n = 50_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, orders, out := run(t.Context(), t, p, 500_000, n, time.Minute)
	runtime.ReadMemStats(&after)
	if out.Created != n || orders[n-1].Fate != Acked {
		t.Fatalf("%+v", out)
	}
	// Threads, gate and records cost a fixed number of allocations.
	if got := after.Mallocs - before.Mallocs; got > n/100 {
		t.Errorf("%d allocations for %d orders", got, n)
	}
}
