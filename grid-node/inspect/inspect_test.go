package inspect

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/feed"
	"github.com/ordergrid/ordergrid/grid-node/feed/feedtest"
)

// damaged is a log with corrupted entries.
type damaged struct {
	*feedtest.Log
	first uint64 // entry that is held
	at    map[uint64]func([]byte) []byte
}

func (l *damaged) Read(seq uint64) []byte {
	entry := bytes.Clone(l.Log.Read(seq))
	if f := l.at[seq]; f != nil {
		return f(entry)
	}
	return entry
}

func inspector(t *testing.T, l *damaged) (*Inspector, *bytes.Buffer) {
	t.Helper()
	r, err := feed.New(l).Reader("inspect")
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	return New(Options{Name: "p0", Log: r, Turns: NewTurns(), Logger: slog.New(slog.NewTextHandler(&said, nil)), Hold: func(seq uint64) (uint64, error) {
		seq = max(seq, l.first)
		r.Hold(seq)
		return seq, nil
	}}), &said
}

func look(t *testing.T, i *Inspector) {
	t.Helper()
	if err := i.look(); err != nil {
		t.Fatal(err)
	}
}

func TestBrokenEntriesAreFound(t *testing.T) {
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[at] ^= 4; return b }
	}
	for name, c := range map[string]struct {
		harm  func([]byte) []byte
		found uint64 // entries
		want  string
	}{
		"nothing":   {func(b []byte) []byte { return b }, 0, ""},
		"payload":   {flip(80), 1, "seq=9 reason=\"it follows an entry of hash"}, // found at the next entry
		"number":    {flip(8), 2, "seq=8 reason=\"entry 12 stands at place 8"},
		"chain":     {flip(16), 2, "seq=8 reason=\"it follows an entry of hash"},
		"flags":     {flip(55), 2, "seq=8 reason=\"entry 8: flags is 4"},
		"cut short": {func(b []byte) []byte { return b[:63] }, 2, "seq=8 reason=\"entry 0: bytes"},
		"not there": {func([]byte) []byte { return nil }, 2, "seq=8 reason=\"entry 0: bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &damaged{Log: feedtest.NewLog(t), at: map[uint64]func([]byte) []byte{8: c.harm}}
			l.Fill(1, 20)
			i, said := inspector(t, l)
			look(t, i)
			if i.Broken() != c.found || i.Seq() != 24 || !strings.Contains(said.String(), c.want) || c.found == 0 && said.Len() > 0 {
				t.Errorf("%d broken of %d, want %d of 24: %s", i.Broken(), i.Seq(), c.found, said)
			}
			l.at = nil
			l.Order(1, 3, "more")
			l.Commit()
			if look(t, i); i.Broken() != c.found || i.Seq() != 25 {
				t.Errorf("%d broken of %d later, want as before", i.Broken(), i.Seq())
			}
			if pin := l.Freeable(10); pin != 10 {
				t.Errorf("entries up to %d may be freed, want 10: it holds nothing between slices", pin)
			}
		})
	}
}

// Entries freed before they were checked are not a finding.
func TestFreedEntriesArePassedOver(t *testing.T) {
	l := &damaged{Log: feedtest.NewLog(t)}
	l.Fill(1, 20)
	i, _ := inspector(t, l)
	look(t, i)
	for range 20 {
		l.Order(1, 3, "more")
	}
	l.Commit()
	l.first = 30
	l.at = map[uint64]func([]byte) []byte{29: func([]byte) []byte { t.Error("it read what is freed"); return nil }}
	if look(t, i); i.Broken() != 0 || i.Seq() != 44 {
		t.Errorf("%d broken of %d, want none of 44", i.Broken(), i.Seq())
	}
}

func TestRunFollowsTheLog(t *testing.T) {
	l := &damaged{Log: feedtest.NewLog(t)}
	l.Fill(1, 3)
	r := l.Reader()
	i := New(Options{Name: "p0", Log: r, Turns: NewTurns(), Logger: slog.New(slog.DiscardHandler), Hold: func(seq uint64) (uint64, error) { r.Hold(seq); return seq, nil }})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { i.Run(ctx) })
	for _, id := range []string{"a", "b"} {
		l.Order(1, 3, id)
		l.Commit()
		last, _ := l.Last()
		for seen := l.Reader(); i.Seq() != last; { // the test's own limit ends it
			seen.Await(ctx, feed.Never, Every/10)
			if i.Broken() != 0 {
				t.Fatal("a sound log is broken")
			}
		}
	}
	cancel()
	wg.Wait()
}

// A log that is written while it is read costs a wake-up for each slice, not for each entry.
func TestPassEnds(t *testing.T) {
	l := &damaged{Log: feedtest.NewLog(t)}
	l.Fill(1, 3*slice)
	i, _ := inspector(t, l)
	looks, hold := 0, i.o.Hold
	i.o.Hold = func(seq uint64) (uint64, error) {
		if looks++; looks > 4 {
			return 0, errors.New("the pass never ends")
		}
		l.Order(1, 3, "more")
		l.Commit()
		return hold(seq)
	}
	if i.pass(t.Context()); looks != 4 { // what Fill opens it with are entries too
		t.Errorf("it looked %d times, want 4: what is there when it begins", looks)
	}
}

// A node with many partitions inspects one at a time, at the cost of one.
func TestInspectorsTakeTurns(t *testing.T) {
	turns, looking := NewTurns(), make(chan struct{}, 1)
	var wg sync.WaitGroup
	for range 8 {
		l := &damaged{Log: feedtest.NewLog(t)}
		l.Fill(1, 2*slice)
		i, _ := inspector(t, l)
		i.o.Turns = turns
		l.at = map[uint64]func([]byte) []byte{5: func(b []byte) []byte {
			select {
			case looking <- struct{}{}:
			default:
				t.Error("two look at the same time")
			}
			time.Sleep(time.Millisecond)
			<-looking
			return b
		}}
		wg.Go(func() {
			if i.pass(t.Context()); i.Seq() < 2*slice {
				t.Errorf("a pass ended at entry %d", i.Seq())
			}
		})
	}
	wg.Wait()
	turns.c <- struct{}{} // another inspector runs
	l := &damaged{Log: feedtest.NewLog(t)}
	l.Fill(1, 3)
	i, _ := inspector(t, l)
	i.o.Turns = turns
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if i.pass(ctx); i.Seq() != 0 {
		t.Error("it looked out of turn")
	}
}

// A process that was suspended in the middle of a slice, or got no processor, does not
// pause for a multiple of that time.
func TestPausesAreBounded(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: 0, 80 * time.Microsecond: 3920 * time.Microsecond, time.Millisecond: maxPause, time.Hour: maxPause,
	} {
		if got := pauseAfter(took); got != want {
			t.Errorf("a slice that took %v is followed by %v, want %v", took, got, want)
		}
	}
}

// An inspector that is far behind keeps at most a slice from being freed, and only while
// it reads it: a node that frees what is downstream would reject orders.
func TestNoMoreThanASliceIsHeld(t *testing.T) {
	l := &damaged{Log: feedtest.NewLog(t)}
	l.Fill(1, 4*slice)
	i, _ := inspector(t, l)
	l.at = map[uint64]func([]byte) []byte{slice / 2: func(b []byte) []byte {
		if pin := l.Freeable(slice); pin != 0 {
			t.Errorf("entries up to %d may be freed while it looks at them, want none", pin)
		}
		return b
	}}
	if look(t, i); i.Seq() != slice {
		t.Errorf("it looked at %d entries, want %d at a time", i.Seq(), slice)
	}
	if pin := l.Freeable(slice); pin != slice {
		t.Errorf("entries up to %d may be freed, want %d: it holds nothing between slices", pin, slice)
	}
}
