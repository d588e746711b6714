package node

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// later is a time of the loop that its own ticks do not reach: the samples are the test's.
const later = int64(1 << 60)

// second gives the node the sample of second i and returns its status then.
func (r *running) second(t *testing.T, i int) (m nodestatus.Memory) {
	t.Helper()
	if err := r.onLoop(func() {
		if r.data.room.n > 0 && r.data.room.at[0] < later { // those of its own
			r.data.room = room{process: r.data.process, parts: &r.data.parts}
		}
		r.data.room.tick(later + int64(i)*int64(time.Second))
		m = r.data.room.memory()
	}); err != nil {
		t.Fatal(err)
	}
	return m
}

// burst submits so many orders, several at a time, and returns the first refusal.
func burst(t *testing.T, c *client.Client, prefix string, n int) error {
	t.Helper()
	const workers = 32
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += workers {
				_, errs[w] = c.Submit(t.Context(), fix(fmt.Sprintf("%s-%d", prefix, i)))
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// logLines keeps what a node logs.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logLines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

// TestFullNodeIsForetold: at a steady rate the node predicts when it will reject orders,
// correctly. Then it logs one line for all rejections of a minute, with advice.
func TestFullNodeIsForetold(t *testing.T) {
	g := newGrid(t, 1, 1)
	log := &logLines{}
	g.base.MemoryLimit, g.base.Log = 64<<20, slog.New(slog.NewTextHandler(log, nil))
	g.up()
	n, c := g.nodes[0], g.client()
	const batch = 8000 // orders a second, by the clock of the samples
	told := map[int]float64{}
	second, refused := 0, error(nil)
	for ; refused == nil; second++ {
		if second > 60 {
			t.Fatalf("%d orders fit: %+v", second*batch, n.second(t, second))
		}
		refused = burst(t, c, fmt.Sprint("R", second), batch)
		if m := n.second(t, second); m.SecondsUntilFull != nil && refused == nil {
			told[second] = *m.SecondsUntilFull
		}
	}
	full := second - 1 // the second in which it was
	if len(told) < 5 {
		t.Fatalf("full in second %d, and predicted it %d times", full, len(told))
	}
	for at, in := range told {
		if got := float64(at) + in; got < 0.85*float64(full) || got > 1.15*float64(full)+1 {
			t.Errorf("in second %d it foretold %.1f s more; it was full in second %d", at, in, full)
		}
	}
	m := n.second(t, second)
	if !m.Full || m.SecondsUntilFull == nil || *m.SecondsUntilFull != 0 || m.Refused == 0 || m.UsedShare() < 0.99 {
		t.Errorf("full: %+v", m)
	}
	if !errors.Is(refused, client.ErrCapacity) || !strings.Contains(refused.Error(), "KeepAll without spec.sinks frees nothing: raise spec.memory") {
		t.Errorf("refused with %v", refused)
	}
	for i := range 30 {
		_ = burst(t, c, fmt.Sprint("F", i), 32)
		n.second(t, second+1+i)
	}
	if got := log.count("orders are refused: the memory for orders is full"); got != 1 {
		t.Errorf("%d lines about refusals in half a minute, want 1", got)
	}
	_ = burst(t, c, "G", 32)
	n.second(t, second+90)
	if got := log.count("orders are refused: the memory for orders is full"); got != 2 {
		t.Errorf("%d lines about refusals in a minute and a half, want 2", got)
	}
}

// TestFreeingNodeForetellsOnlyWhatStays: a node that frees what its sink holds never
// predicts to be full while the sink keeps up, however often its memory fills to the
// watermark; once the sink stalls it does.
func TestFreeingNodeForetellsOnlyWhatStays(t *testing.T) {
	dir := t.TempDir()
	g := newGrid(t, 1, 1)
	g.base.MemoryLimit, g.base.Sink, g.base.SinkDir, g.base.Retention = 64<<20, SinkFile, dir, RetentionFreeDownstream
	g.up()
	n, c := g.nodes[0], g.client()
	sunk := func() bool {
		return n.data.parts.list[0].inc.outlets[0].queue.Durable() >= n.data.parts.list[0].replica.Status().DataSeq
	}
	most := 0.0
	for second := range 40 { // nearly twice its memory
		if err := burst(t, c, fmt.Sprint("K", second), 8000); err != nil {
			t.Fatal(err)
		}
		g.until(func() (ok bool) { _ = n.onLoop(func() { ok = sunk() }); return ok }, "the sink does not keep up")
		m := n.second(t, second)
		most = max(most, float64(m.UsedBytes)/float64(m.RefuseBytes))
		if m.SecondsUntilFull != nil && *m.SecondsUntilFull < 3600 || m.UsedShare() > 0.3 || m.Full {
			t.Errorf("second %d: %+v", second, m)
		}
	}
	if most < 0.7 {
		t.Errorf("at most %.0f %% of the memory was used: the test is inconclusive", 100*most)
	}
	g.kill(0)

	// The next one cannot write where its files should be.
	g.base.SinkDir = filepath.Join(dir, "file")
	if err := os.WriteFile(g.base.SinkDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g = newGrid(t, 1, 1)
	g.base.MemoryLimit, g.base.Sink, g.base.SinkDir, g.base.Retention = 64<<20, SinkFile, filepath.Join(dir, "file"), RetentionFreeDownstream
	g.up()
	n, c = g.nodes[0], g.client()
	var m nodestatus.Memory
	for second := range 10 {
		if err := burst(t, c, fmt.Sprint("S", second), 8000); err != nil {
			t.Fatal(err)
		}
		m = n.second(t, second)
	}
	if m.SecondsUntilFull == nil || *m.SecondsUntilFull > 30 {
		t.Errorf("the sink stands still, half of the memory is used: %+v", m)
	}
}
