package sink_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/metricsdoc"
)

func TestMain(m *testing.M) {
	defer downstream.Clean()
	m.Run()
}

// memory is a target that fails as systems do: before a batch, after it, when it is opened. What it holds is entries and
// the position behind them, in one step. Real systems are in the tests of the packages below.
type memory struct {
	mu     sync.Mutex
	logs   map[wire.PartitionID]*memoryLog
	random *rand.Rand
	faults float64       // share of calls that fail
	slow   time.Duration // of a write
	broken error         // of every Open
	writes int
}

type memoryLog struct {
	writer  int
	at      client.Position
	entries []uint64 // hashes, by seq
}

var errInjected = errors.New("injected")

func (m *memory) fails() bool { return m.random.Float64() < m.faults }

func (m *memory) Open(_ context.Context, p wire.PartitionID) (sink.Writer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return nil, m.broken
	}
	if m.fails() {
		return nil, errInjected
	}
	l := m.logs[p]
	if l == nil {
		l = &memoryLog{}
		m.logs[p] = l
	}
	l.writer++
	return &memoryWriter{m: m, log: l, term: l.writer, at: l.at}, nil
}

func (m *memory) Close() error { return nil }

type memoryWriter struct {
	m    *memory
	log  *memoryLog
	term int
	at   client.Position
}

func (w *memoryWriter) Position() client.Position { return w.at }
func (w *memoryWriter) Close() error              { return nil }

func (w *memoryWriter) Write(ctx context.Context, b *sink.Batch) error {
	select {
	case <-time.After(w.m.slow):
	case <-ctx.Done():
		return ctx.Err()
	}
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	w.m.writes++
	switch {
	case w.term != w.log.writer:
		return sink.ErrFenced
	case w.m.fails():
		return errInjected
	case b.From != w.log.at.Seq+1 || len(b.Entries) != int(b.Through.Seq-w.log.at.Seq):
		return fmt.Errorf("batch %d..%d with %d entries behind entry %d", b.From, b.Through.Seq, len(b.Entries), w.log.at.Seq)
	}
	for i := range b.Entries {
		w.log.entries = append(w.log.entries, order.Hash(b.Entries[i].Bytes))
	}
	w.log.at, w.at = b.Through, b.Through
	if w.m.fails() { // the answer is lost
		return errInjected
	}
	return nil
}

// gridWith is a grid with a sink of the name memory, and a client of it.
func gridWith(t *testing.T) *client.Client {
	t.Helper()
	g := downstream.Grid(t, "--external-sink", "memory")
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints, Grid: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func submit(t *testing.T, c *client.Client, from, n int) {
	t.Helper()
	for i := range n {
		if _, err := c.Submit(t.Context(), downstream.Order(fmt.Sprintf("R%07d", from+i), 305)); err != nil {
			t.Fatal(err)
		}
	}
}

// run starts a Runner; stop ends it.
func run(t *testing.T, c *client.Client, m *memory, change func(*sink.Config)) (r *sink.Runner, stop func()) {
	t.Helper()
	cfg := sink.Config{Client: c, Target: m, Grid: "dev", Sink: "memory", MaxEntries: 64, WriteTimeout: 5 * time.Second}
	if change != nil {
		change(&cfg)
	}
	r, err := sink.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	return r, func() { cancel(); <-done }
}

// awaitAll waits until the target holds every order, and checks that it has the log's entries, each once, in order.
func awaitAll(t *testing.T, c *client.Client, m *memory) {
	t.Helper()
	for _, p := range c.Table() {
		var want []uint64
		lastOrder := 0
		if _, err := c.ReadLog(t.Context(), p.ID, "", 1, func(e client.LogEntry) error {
			want = append(want, order.Hash(e.Bytes))
			if e.Kind == order.KindOrder {
				lastOrder = len(want)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		await(t, func() bool { m.mu.Lock(); defer m.mu.Unlock(); return m.logs[p.ID] != nil && len(m.logs[p.ID].entries) >= lastOrder })
		m.mu.Lock()
		got := m.logs[p.ID].entries
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("%s: entry %d of the target has hash %016x, that of the log %016x", p.ID, i+1, got[i], want[i])
			}
		}
		m.mu.Unlock()
	}
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in two minutes")
		}
	}
}

func newMemory(faults float64) *memory {
	return &memory{logs: map[wire.PartitionID]*memoryLog{}, random: rand.New(rand.NewPCG(1, 2)), faults: faults}
}

// Each entry is in the target once, in order, though a third of all opens and writes fail, some of them after the target
// has taken the batch.
func TestEachEntryOnceThroughFailures(t *testing.T) {
	c, m := gridWith(t), newMemory(0.3)
	_, stop := run(t, c, m, nil)
	submit(t, c, 0, 500)
	stop() // and the next process goes on where the target is
	submit(t, c, 500, 300)
	r, stop := run(t, c, m, nil)
	defer stop()
	submit(t, c, 800, 200)
	awaitAll(t, c, m)
	m.mu.Lock()
	m.faults = 0
	m.mu.Unlock()
	submit(t, c, 1000, 20) // status is well after the next batch
	awaitAll(t, c, m)
	await(t, func() bool { return r.Status().Ready })
}

// Of two processes of one sink the older one is fenced; together they write each entry once.
func TestTwoProcessesOfOneSink(t *testing.T) {
	c, m := gridWith(t), newMemory(0)
	m.slow = 2 * time.Millisecond
	first, stopFirst := run(t, c, m, nil)
	defer stopFirst()
	submit(t, c, 0, 100)
	await(t, func() bool { return first.Status().Ready })
	_, stopSecond := run(t, c, m, nil)
	defer stopSecond()
	for i := 100; ; i += 20 {
		submit(t, c, i, 20)
		if s := first.Status(); s.Partitions[0].Error != nil && s.Partitions[0].Error.Kind == "fenced" {
			break
		}
		if i > 100_000 {
			t.Fatalf("the older process is not fenced: %+v", first.Status())
		}
	}
	awaitAll(t, c, m)
}

// A slow target holds the follower back: no more than two batches of a partition are in memory.
func TestSlowTargetBoundsMemory(t *testing.T) {
	c, m := gridWith(t), newMemory(0)
	m.slow = 50 * time.Millisecond
	submit(t, c, 0, 1500)
	const batch = 8 << 10
	r, stop := run(t, c, m, func(cfg *sink.Config) { cfg.MaxBytes = batch })
	defer stop()
	most := 0
	await(t, func() bool {
		lag := uint64(0)
		for _, p := range r.Status().Partitions {
			most, lag = max(most, p.BufferedBytes), lag+p.LagEntries
		}
		return most > batch && lag < 300 // it has caught up with most of it
	})
	if most > 2*(batch+1024) {
		t.Errorf("%d bytes of a partition in memory, allowed: two batches of %d and an entry each", most, batch)
	}
}

// An error that no retry mends is in status with its remedy, and its metric is that of the alert SinkFailing.
func TestPermanentError(t *testing.T) {
	c, m := gridWith(t), newMemory(0)
	m.broken = &sink.PermanentError{What: `table "orders" has no column "hash"`, Remedy: "run migrate"}
	r, stop := run(t, c, m, nil)
	defer stop()
	reg := prometheus.NewRegistry()
	reg.MustRegister(r.Collector())
	await(t, func() bool { return r.Status().Partitions[0].Error != nil })
	s := r.Status()
	if e := s.Partitions[0].Error; s.Ready || e.Kind != "permanent" || !strings.Contains(e.Text, "run migrate") {
		t.Errorf("status %+v, error %+v", s, e)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "ordergrid_sink_failing" && f.Metric[0].Gauge.GetValue() == 1 {
			metricsdoc.Check(t, "../../docs/metrics.md", reg, func(name string) bool { return strings.HasPrefix(name, "ordergrid_sink_") })
			return
		}
	}
	t.Error("ordergrid_sink_failing is not 1")
}

// The grid refuses a sink that its configuration does not have, and the error names those it has.
func TestSinkThatTheGridDoesNotHave(t *testing.T) {
	c, m := gridWith(t), newMemory(0)
	r, stop := run(t, c, m, func(cfg *sink.Config) { cfg.Sink = "kafka" })
	defer stop()
	await(t, func() bool { return r.Status().Partitions[0].Error != nil })
	if e := r.Status().Partitions[0].Error; e.Kind != "permanent" || !strings.Contains(e.Text, "memory") || !strings.Contains(e.Text, "spec.sinks") {
		t.Errorf("%+v", e)
	}
}

func TestConfigIsChecked(t *testing.T) {
	c := gridWith(t)
	for want, change := range map[string]func(*sink.Config){
		`name of the sink is "No"`:      func(cfg *sink.Config) { cfg.Sink = "No" },
		"MaxEntries of a batch is -1":   func(cfg *sink.Config) { cfg.MaxEntries = -1 },
		"MaxBytes of a batch is 2":      func(cfg *sink.Config) { cfg.MaxBytes = 2 << 30 },
		"Linger of a batch is 2m0s":     func(cfg *sink.Config) { cfg.Linger = 2 * time.Minute },
		"partition is p9, allowed: p0.": func(cfg *sink.Config) { cfg.Partitions = []wire.PartitionID{9} },
	} {
		cfg := sink.Config{Client: c, Target: newMemory(0), Grid: "dev", Sink: "memory"}
		change(&cfg)
		if _, err := sink.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
