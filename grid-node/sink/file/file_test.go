package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/feed/feedtest"
	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/sink"
)

type harness struct {
	q        *sink.Queue
	dir      string
	mu       sync.Mutex
	cursors  []uint64
	advanced chan struct{}
	stop     func()
}

func start(t *testing.T, log *feedtest.Log, dir string, epoch, lineage, cursor uint64) *harness {
	t.Helper()
	return startWith(t, log, dir, epoch, lineage, cursor, func(s *Sink) sink.Sink { return s })
}

func startWith(t *testing.T, log *feedtest.Log, dir string, epoch, lineage, cursor uint64, to func(*Sink) sink.Sink) *harness {
	t.Helper()
	h := &harness{dir: dir, advanced: make(chan struct{}, 1024)}
	m := metrics.NewRegistry(&metrics.Collector{}).Sink("file")
	h.q = sink.New(sink.Options{Name: "p0", Log: log.Reader(), Metrics: m, Logger: slog.New(slog.DiscardHandler),
		Sink: to(New(dir, "pod0", "g", "p0", m)),
		Advance: func(seq uint64) {
			h.mu.Lock()
			h.cursors = append(h.cursors, seq)
			h.mu.Unlock()
			h.advanced <- struct{}{}
		}})
	h.q.SetActive(true, epoch, lineage, cursor)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { h.q.Run(ctx); close(done) }()
	h.stop = func() { cancel(); <-done }
	t.Cleanup(h.stop)
	return h
}

// written has the entries up to seq written by a sink that is stopped then.
func written(t *testing.T, log *feedtest.Log, dir string, epoch, lineage, cursor, seq uint64) *harness {
	t.Helper()
	h := start(t, log, dir, epoch, lineage, cursor)
	h.await(t, seq)
	h.stop()
	return h
}

func (h *harness) path() string { return filepath.Join(h.dir, "pod0", "g-p0.log") }

func (h *harness) await(t *testing.T, seq uint64) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for h.q.Durable() < seq {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatalf("durable is %d after 20 s, want %d", h.q.Durable(), seq)
		}
	}
}

// lines are the entry lines of the file, checked to be dense.
func (h *harness) lines(t *testing.T) [][]string {
	t.Helper()
	b, err := os.ReadFile(h.path())
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for i, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		if i == 0 {
			if !strings.HasPrefix(line, headerPrefix) {
				t.Fatalf("header %q", line)
			}
			continue
		}
		out = append(out, strings.Split(line, "\t"))
	}
	for i := 1; i < len(out); i++ {
		if out[i][0] != fmt.Sprint(i+atoi(out[0][0])) {
			t.Fatalf("line %d has sequence %s behind %s", i, out[i][0], out[i-1][0])
		}
	}
	return out
}

func atoi(s string) (n int) { _, _ = fmt.Sscan(s, &n); return n }

func TestFileHoldsEveryEntryOnce(t *testing.T) {
	log := feedtest.NewLog(t)
	log.Fill(0x1, 2)
	h := start(t, log, t.TempDir(), 1, 1, 0)
	h.await(t, 6)
	log.Order(1, 3, "late")
	log.Order(1, 3, "uncommitted")
	log.CommitTo(7)
	h.await(t, 7)
	h.stop()
	lines := h.lines(t)
	if len(lines) != 7 {
		t.Fatalf("%d lines, want the 7 committed entries", len(lines))
	}
	hash := fmt.Sprintf("%016x", log.HashAt(7))
	want := []string{"7", "1", "1", "order", "000000000000000a000000000000000b", "7", "1234", hash, "late",
		`8=FIX.4.2|11=late|58=tab\x09here\x7cand\x5cthere|10=000|`}
	if got := lines[6]; strings.Join(got, "\t") != strings.Join(want, "\t") {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
	if strings.Join(lines[0][3:6], " ") != "noop - 0" || strings.Join(lines[3][3:6], " ") != "cursor - 0" || lines[1][4] != "000000000000000c000000000000000d" {
		t.Fatalf("lines %q", lines[:2])
	}
}

func TestResumesBehindATornLine(t *testing.T) {
	log := feedtest.NewLog(t)
	log.Fill(0x1, 10)
	dir := t.TempDir()
	h := written(t, log, dir, 1, 1, 0, 14)
	whole, _ := os.ReadFile(h.path())
	for cut := 1; cut < 200; cut += 7 { // in the last line, in the one before, at a line's end
		if err := os.WriteFile(h.path(), whole[:len(whole)-cut], 0o644); err != nil {
			t.Fatal(err)
		}
		h = written(t, log, dir, 1, 1, 0, 14)
		if again, _ := os.ReadFile(h.path()); !bytes.Equal(again, whole) {
			t.Fatalf("cut %d: the file differs from the one written without a crash", cut)
		}
	}
}

func TestAnotherHistoryIsSetAside(t *testing.T) {
	first := feedtest.NewLog(t)
	first.Fill(0x1, 10)
	dir := t.TempDir()
	h := written(t, first, dir, 5, 1, 0, 14)
	old, _ := os.ReadFile(h.path())
	second := feedtest.NewLog(t) // a fresh grid of the same name: shorter, another boot id
	second.Fill(0x2, 3)
	h = written(t, second, dir, 5, 1, 0, 7)
	if n := len(h.lines(t)); n != 7 {
		t.Fatalf("%d lines, want 7", n)
	}
	kept, _ := filepath.Glob(h.path() + ".*")
	if len(kept) != 1 {
		t.Fatalf("set aside: %v", kept)
	}
	if b, _ := os.ReadFile(kept[0]); !bytes.Equal(b, old) {
		t.Fatal("what was set aside is not what was there")
	}
}

// A new primary with an empty sink begins after the replicated cursor; one that was
// primary before continues where its own file ends.
func TestNewPrimaryBeginsBehindTheCursor(t *testing.T) {
	log := feedtest.NewLog(t)
	log.Fill(0x1, 10)
	dir := t.TempDir()
	h := written(t, log, dir, 2, 1, 7, 14)
	lines := h.lines(t)
	if len(lines) != 7 || lines[0][0] != "8" || lines[0][2] != "1" || lines[0][4] == "-" {
		t.Fatalf("lines %q", lines)
	}
	log.Order(2, 3, "more")
	log.Commit()
	h = written(t, log, dir, 3, 1, 15, 15) // elsewhere they were written already
	if n := len(h.lines(t)); n != 8 {
		t.Fatalf("%d lines, want 8", n)
	}
}

// Reporting a cursor makes a cursor entry, which is written too: it must not be reported
// again, endlessly.
func TestCursorEntriesAreNotReported(t *testing.T) {
	log := feedtest.NewLog(t)
	log.Fill(0x1, 1)
	h := start(t, log, t.TempDir(), 1, 1, 0)
	<-h.advanced
	log.Cursor(1, 5)
	log.Commit()
	h.await(t, 6)
	log.Order(1, 3, "news")
	log.Commit()
	h.await(t, 7)
	<-h.advanced
	h.stop()
	if got := fmt.Sprint(h.cursors); got != "[5 7]" {
		t.Fatalf("reported %v, want [5 7]", got)
	}
}

// failing is a file sink whose next writes fail half-way, as on a full disk.
type failing struct {
	*Sink
	fail atomic.Int32
}

func (s *failing) Write(b *sink.Batch) error {
	if s.fail.Load() > 0 {
		s.fail.Add(-1)
		_, _ = s.f.WriteString("12\t1\t1\thalf a li")
		return errors.New("disk full")
	}
	return s.Sink.Write(b)
}

func TestFailedWriteIsRepeatedFromTheLastSync(t *testing.T) {
	log := feedtest.NewLog(t)
	log.Fill(0x1, 3)
	var to failing
	h := startWith(t, log, t.TempDir(), 1, 1, 0, func(s *Sink) sink.Sink { to.Sink = s; return &to })
	h.await(t, 7)
	to.fail.Store(2)
	log.Order(1, 3, "more")
	log.Commit()
	h.await(t, 8)
	h.stop()
	b, _ := os.ReadFile(h.path())
	if n := bytes.Count(b, []byte{'\n'}); to.fail.Load() != 0 || n != 9 || bytes.Contains(b, []byte("half")) {
		t.Fatalf("%d lines:\n%s", n, b)
	}
}

func TestBrokenFilesAreRefused(t *testing.T) {
	line := "1\t1\t1\tnoop\t-\t0\t0\t0000000000000001\t-\t-\n"
	for name, c := range map[string]struct{ content, want string }{
		"no header":     {line, "the first line is"},
		"gap":           {headerPrefix + "\n" + line + strings.Replace(line, "1", "3", 1), "sequence 3 follows 1, allowed: 2"},
		"epoch back":    {headerPrefix + "\n" + "1\t2" + line[3:] + strings.Replace(line, "1", "2", 1), "goes back to epoch 1"},
		"not a number":  {headerPrefix + "\nx" + line, "column 1 (seq)"},
		"columns":       {headerPrefix + "\n1\t2\t3\n", "3 columns, allowed: 10"},
		"binary":        {headerPrefix + "\n\x00\xff\n", "columns"},
		"repeated line": {headerPrefix + "\n" + line + line, "sequence 1 follows 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := New(dir, "p", "g", "p0", metrics.NewRegistry(&metrics.Collector{}).Sink("file"))
			_ = os.MkdirAll(filepath.Dir(s.path), 0o755)
			if err := os.WriteFile(s.path, []byte(c.content), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Open(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if b, _ := os.ReadFile(s.path); string(b) != c.content {
				t.Fatal("a refused file was changed")
			}
		})
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte("5\t1\t1\torder\t-\t7\t1234\t0123456789abcdef\tid\t8=FIX.4.2|"))
	f.Add([]byte("\t\t\t\t\t\t\t\t\t"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := parseLine(b); err == nil && bytes.Count(b, []byte{'\t'}) != columns-1 {
			t.Fatalf("%q parsed as %+v", b, h)
		}
	})
}
