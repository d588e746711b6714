package writebehind

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/store"
)

// testLog is a real store that a test appends to as the replica does.
type testLog struct {
	*store.Store
	t *testing.T
}

func newLog(t *testing.T) *testLog {
	t.Helper()
	s, err := store.New(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &testLog{Store: s, t: t}
}

func (l *testLog) add(e order.Entry, payload []byte) {
	l.t.Helper()
	if err := l.Append(&e, payload); err != nil {
		l.t.Fatal(err)
	}
}

func u64s(v ...uint64) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

func (l *testLog) noop(epoch uint32, lineage, boot uint64) {
	l.add(order.Entry{Kind: order.KindNoop, Epoch: epoch}, u64s(lineage, boot))
}

func (l *testLog) session(epoch, slot uint32, hi, lo uint64) {
	l.add(order.Entry{Kind: order.KindSessionOpen, Epoch: epoch, Session: slot}, u64s(hi, lo))
}

func (l *testLog) order(epoch, slot uint32, id string) {
	msg := []byte("8=FIX.4.2\x0111=" + id + "\x0158=tab\there|and\\there\x0110=000\x01")
	l.add(order.Entry{Kind: order.KindOrder, Epoch: epoch, Session: slot, ClientSeq: 7, TimeNs: 1234,
		Fields: order.Fields{ClOrdIDOff: 13, ClOrdIDLen: uint8(len(id))}}, msg)
}

func (l *testLog) commit() { seq, _ := l.Last(); l.SetCommitted(seq) }

// fill makes a log of one epoch with n orders.
func (l *testLog) fill(boot uint64, n int) {
	l.noop(1, 1, boot)
	l.session(1, 0, 0xc, 0xd) // slot 0 is not "no session"
	l.session(1, 3, 0xa, 0xb)
	l.add(order.Entry{Kind: order.KindCursor, Epoch: 1}, u64s(1))
	for i := range n {
		l.order(1, 3, fmt.Sprintf("id%d", i))
	}
	l.commit()
}

type harness struct {
	q        *Queue
	dir      string
	mu       sync.Mutex
	cursors  []uint64
	advanced chan struct{}
	stop     func()
}

func start(t *testing.T, log Log, dir string, epoch, lineage, cursor uint64) *harness {
	t.Helper()
	h := &harness{dir: dir, advanced: make(chan struct{}, 1024)}
	m := metrics.NewRegistry(&metrics.Collector{}).Sink
	h.q = New(Options{Name: "s0p0", Log: log, Metrics: m, Logger: slog.New(slog.DiscardHandler),
		Sink: NewFile(dir, "pod0", "g", "s0p0", m),
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

func (h *harness) path() string { return filepath.Join(h.dir, "pod0", "g-s0p0.log") }

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
	log := newLog(t)
	log.fill(0x1, 2)
	h := start(t, log, t.TempDir(), 1, 1, 0)
	h.await(t, 6)
	log.order(1, 3, "late")
	log.order(1, 3, "uncommitted")
	log.SetCommitted(7)
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
	log := newLog(t)
	log.fill(0x1, 10)
	dir := t.TempDir()
	h := start(t, log, dir, 1, 1, 0)
	h.await(t, 14)
	h.stop()
	whole, _ := os.ReadFile(h.path())
	for cut := 1; cut < 200; cut += 7 { // in the last line, in the one before, at a line's end
		if err := os.WriteFile(h.path(), whole[:len(whole)-cut], 0o644); err != nil {
			t.Fatal(err)
		}
		h = start(t, log, dir, 1, 1, 0)
		h.await(t, 14)
		h.stop()
		if again, _ := os.ReadFile(h.path()); !bytes.Equal(again, whole) {
			t.Fatalf("cut %d: the file differs from the one written without a crash", cut)
		}
	}
}

func TestAnotherHistoryIsSetAside(t *testing.T) {
	first := newLog(t)
	first.fill(0x1, 10)
	dir := t.TempDir()
	h := start(t, first, dir, 5, 1, 0)
	h.await(t, 14)
	h.stop()
	old, _ := os.ReadFile(h.path())
	second := newLog(t) // a fresh grid of the same name: shorter, another boot id
	second.fill(0x2, 3)
	h = start(t, second, dir, 5, 1, 0)
	h.await(t, 7)
	h.stop()
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

// A new primary with an empty sink begins behind the replicated cursor; one that
// was primary before goes on where its own file ends.
func TestNewPrimaryBeginsBehindTheCursor(t *testing.T) {
	log := newLog(t)
	log.fill(0x1, 10)
	dir := t.TempDir()
	h := start(t, log, dir, 2, 1, 7)
	h.await(t, 14)
	h.stop()
	lines := h.lines(t)
	if len(lines) != 7 || lines[0][0] != "8" || lines[0][2] != "1" || lines[0][4] == "-" {
		t.Fatalf("lines %q", lines)
	}
	log.order(2, 3, "more")
	log.commit()
	h = start(t, log, dir, 3, 1, 15) // elsewhere they were written already
	h.await(t, 15)
	h.stop()
	if n := len(h.lines(t)); n != 8 {
		t.Fatalf("%d lines, want 8", n)
	}
}

// Reporting a cursor makes a cursor entry, which is written too: it must not be
// reported again, for ever.
func TestCursorEntriesAreNotReported(t *testing.T) {
	log := newLog(t)
	log.fill(0x1, 1)
	h := start(t, log, t.TempDir(), 1, 1, 0)
	<-h.advanced
	log.add(order.Entry{Kind: order.KindCursor, Epoch: 1}, u64s(5))
	log.commit()
	h.await(t, 6)
	log.order(1, 3, "news")
	log.commit()
	h.await(t, 7)
	<-h.advanced
	h.stop()
	if got := fmt.Sprint(h.cursors); got != "[5 7]" {
		t.Fatalf("reported %v, want [5 7]", got)
	}
}

func TestInactiveWritesNothing(t *testing.T) {
	log := newLog(t)
	log.fill(0x1, 1)
	m := metrics.NewRegistry(&metrics.Collector{}).Sink
	dir := t.TempDir()
	q := New(Options{Log: log, Metrics: m, Logger: slog.New(slog.DiscardHandler), Sink: NewFile(dir, "p", "g", "s0p0", m), Advance: func(uint64) {}})
	for range 3 {
		if worked, err := q.work(); worked || err != nil {
			t.Fatalf("worked %v, %v", worked, err)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Fatalf("files %v", files)
	}
}

// failing is a file sink whose next writes fail half-way, as on a full disk.
type failing struct {
	*File
	fail int
}

var errDisk = errors.New("disk full")

func (s *failing) Write(b *Batch) error {
	if s.fail > 0 {
		s.fail--
		_, _ = s.f.WriteString("12\t1\t1\thalf a li")
		return errDisk
	}
	return s.File.Write(b)
}

func TestFailedWriteIsRepeatedFromTheLastSync(t *testing.T) {
	log := newLog(t)
	log.fill(0x1, 3)
	m := metrics.NewRegistry(&metrics.Collector{}).Sink
	sink := &failing{File: NewFile(t.TempDir(), "pod0", "g", "s0p0", m)}
	q := New(Options{Log: log, Metrics: m, Logger: slog.New(slog.DiscardHandler), Sink: sink, Advance: func(uint64) {}})
	q.SetActive(true, 1, 1, 0)
	step := func(want error) {
		t.Helper()
		if _, err := q.work(); !errors.Is(err, want) {
			t.Fatalf("work: %v, want %v", err, want)
		}
		if want != nil {
			q.open = false // as Run does
		}
	}
	step(nil)
	log.order(1, 3, "more")
	log.commit()
	sink.fail = 2
	step(errDisk)
	step(errDisk)
	step(nil)
	if q.Durable() != 8 {
		t.Fatalf("durable %d, want 8", q.Durable())
	}
	b, _ := os.ReadFile(sink.path)
	if n := bytes.Count(b, []byte{'\n'}); n != 9 || bytes.Contains(b, []byte("half")) {
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
			s := NewFile(dir, "p", "g", "s0p0", metrics.NewRegistry(&metrics.Collector{}).Sink)
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
