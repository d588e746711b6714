package feed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// counter is a log of meaningless entries.
type counter struct {
	committed atomic.Uint64
	lowest    func() uint64
	looks     atomic.Uint64 // how often a reader asked how far it is committed
}

func (l *counter) Committed() uint64          { l.looks.Add(1); return l.committed.Load() }
func (l *counter) Read(uint64) []byte         { return []byte{} }
func (l *counter) PinBy(lowest func() uint64) { l.lowest = lowest }

func reader(t *testing.T, f *Feed, name string) *Reader {
	t.Helper()
	r, err := f.Reader(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// No reader misses the last commit, whenever it begins to wait.
func TestReadersAreWokenByCommits(t *testing.T) {
	log := &counter{}
	f := New(log)
	const entries = 20_000
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		r := reader(t, f, name)
		wg.Go(func() {
			for at := uint64(0); at < entries; {
				r.Await(t.Context(), at+1, 0)
				at = max(at, r.Committed())
			}
		})
	}
	for seq := uint64(1); seq <= entries; seq += 1 + rand.Uint64N(3) {
		log.committed.Store(min(seq, entries))
		f.Wake()
	}
	log.committed.Store(entries)
	f.Wake()
	wg.Wait() // the test's own limit ends it
}

// A reader that waits for a later entry is still woken after the wake-up of another one.
func TestLaterReadersAreWokenToo(t *testing.T) {
	log := &counter{}
	f := New(log)
	readers := map[uint64]*Reader{1: reader(t, f, "next"), 3: reader(t, f, "later"), 5: reader(t, f, "last")}
	woken := make(chan uint64, len(readers))
	for seq, r := range readers {
		go func() {
			r.Await(t.Context(), seq, 0)
			woken <- seq
		}()
		for r.awaits.Load() != seq || f.next.Load() > seq {
			time.Sleep(time.Millisecond)
		}
	}
	for seq := uint64(1); seq <= 5; seq++ {
		log.committed.Store(seq)
		f.Wake()
		if readers[seq] == nil {
			continue
		}
		if got := <-woken; got != seq { // the test's own limit ends it
			t.Errorf("entry %d woke the reader that awaits %d", seq, got)
		}
	}
}

// A reader that waits for an entry far ahead, or for none, is left alone.
func TestReadersAreWokenForWhatTheyAwait(t *testing.T) {
	log := &counter{}
	f := New(log)
	far, none := reader(t, f, "far"), reader(t, f, "none")
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() { far.Await(ctx, 100, 0) })
	wg.Go(func() { none.Await(ctx, Never, 0) })
	for far.awaits.Load() != 100 {
		time.Sleep(time.Millisecond)
	}
	for seq := uint64(1); seq < 100; seq++ {
		log.committed.Store(seq)
		f.Wake()
		if len(far.wake) != 0 || far.awaits.Load() != 100 {
			t.Fatalf("woken by entry %d, it awaits entry 100", seq)
		}
	}
	log.committed.Store(100)
	f.Wake()
	none.Nudge()
	wg.Wait()
	cancel()
}

func TestAwaitEnds(t *testing.T) {
	log := &counter{}
	r := reader(t, New(log), "a")
	r.Nudge()
	r.Nudge() // one is enough
	r.Await(t.Context(), Never, 0)
	r.Await(t.Context(), Never, time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Await(ctx, Never, 0)
	log.committed.Store(1)
	r.Await(t.Context(), 1, 0)
	if r.awaits.Load() != Never {
		t.Error("it is still woken by commits")
	}
}

// The log keeps what the slowest reader holds.
func TestTheLogKeepsWhatAnyReaderHolds(t *testing.T) {
	log := &counter{}
	f := New(log)
	a, b := reader(t, f, "a"), reader(t, f, "b")
	for i, step := range []struct {
		r         *Reader
		seq, want uint64
	}{{a, 5, 5}, {b, 3, 3}, {b, 7, 5}, {a, 9, 7}, {b, 0, 9}, {a, 0, 0}} {
		step.r.Hold(step.seq)
		if got := log.lowest(); got != step.want || step.r.Held() != step.seq {
			t.Errorf("step %d: the log keeps from %d on, want %d", i, got, step.want)
		}
	}
}

func TestNamesOfReadersAreUnique(t *testing.T) {
	f := New(&counter{})
	reader(t, f, "a")
	if _, err := f.Reader("a"); err == nil {
		t.Error("two readers have one name")
	}
}

func TestWakeAllocatesNothing(t *testing.T) {
	log := &counter{}
	f := New(log)
	if n := testing.AllocsPerRun(100, f.Wake); n != 0 || log.looks.Load() != 0 {
		t.Errorf("without readers: %v allocations, looked at the log %d times", n, log.looks.Load())
	}
	r := reader(t, f, "a")
	if n := testing.AllocsPerRun(100, func() {
		r.awaits.Store(0)
		f.Wake()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkWake(b *testing.B) {
	for _, c := range []struct {
		name    string
		readers []string
	}{{"none", nil}, {"busy", []string{"a", "b"}}} {
		b.Run(c.name, func(b *testing.B) {
			f := New(&counter{})
			for _, name := range c.readers {
				if _, err := f.Reader(name); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				f.Wake()
			}
		})
	}
}

// A reader that is closed holds nothing, is woken no more, and leaves its name.
func TestClosedReadersHoldNothing(t *testing.T) {
	log := &counter{}
	f := New(log)
	a, b := reader(t, f, "a"), reader(t, f, "b")
	a.Hold(3)
	b.Hold(7)
	a.Close()
	if pin := log.lowest(); pin != 7 {
		t.Errorf("entries from %d on stay, want from 7 on", pin)
	}
	reader(t, f, "a")
	b.Close()
	if pin := log.lowest(); pin != 0 || b.Held() != 0 {
		t.Errorf("entries from %d on stay for no reader", pin)
	}
}

// A thousand readers that are closed are gone, but for as many as there are others; one more costs no list of all.
func TestReadersComeAndGo(t *testing.T) {
	f := New(&counter{})
	kept := reader(t, f, "kept")
	kept.Hold(5)
	var all []*Reader
	for i := range 1000 {
		r := reader(t, f, fmt.Sprint(i))
		r.Hold(2)
		all = append(all, r)
	}
	lists := 0
	for _, r := range all {
		before := f.readers.Load()
		r.Close()
		if f.readers.Load() != before {
			lists++
		}
	}
	all[0].Close()
	if n := len(*f.readers.Load()); n > 2 || f.lowest() != 5 || lists > 11 {
		t.Errorf("%d readers are listed, entries from %d on stay, %d lists were made", n, f.lowest(), lists)
	}
	if reader(t, f, "7"); len(f.names) != 2 {
		t.Errorf("%d names are taken", len(f.names))
	}
}
