//go:build e2e

package operations

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
)

const (
	// fixedValues never change: every scan has to have each of them once. They are large enough for a move to take seconds.
	fixedValues, fixedSize = 60_000, 700
	// keysOfKind are counters, watched values and records, each.
	keysOfKind = 8
	// nearAge bounds the age of what the near cache answers.
	nearAge = time.Second
)

// regionLoad changes and reads a region from here, and judges each answer as it comes.
type regionLoad struct {
	c    *client.Client
	r    *client.Region
	near *client.NearCache
	stop atomic.Bool
	wg   sync.WaitGroup

	raised  [keysOfKind]atomic.Int64
	watched [keysOfKind]watched
	patched [keysOfKind]atomic.Int64
	tokens  atomic.Int64
	scans   atomic.Int64
	reads   [4]atomic.Int64 // by readModes, the near cache last

	mu    sync.Mutex
	taken map[string]int
	wrong []error
}

// watched is a value that one writer raises by one at a time.
type watched struct {
	mu    sync.Mutex
	begun int64
	acked []time.Time // when value i+1 was acknowledged
}

// at is the last value that was acknowledged at a time.
func (w *watched) at(t time.Time) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.acked)
	for n > 0 && w.acked[n-1].After(t) {
		n--
	}
	return int64(n)
}

// last is the last value that a put was begun with.
func (w *watched) last() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.begun
}

// useRegion fills a region and begins to use it.
func (f *field) useRegion(ctx context.Context, name string) *regionLoad {
	f.Helper()
	c, err := f.dial(ctx, nil)
	if err != nil {
		f.Fatalf("%v; this part uses a region from here, which takes a cluster whose pods are reachable from here", err)
	}
	l := &regionLoad{c: c, r: c.Region(name), taken: map[string]int{}}
	if l.near, err = l.r.NearCache(client.NearCacheOptions{MaxAge: nearAge}); err != nil {
		f.Fatal(err)
	}
	l.fill(ctx, f.T)
	for k := range keysOfKind {
		l.wg.Go(func() { l.loop(func() error { return l.raise(ctx, k) }) })
		l.wg.Go(func() { l.loop(func() error { return l.raise(ctx, k) }) }) // two writers of each counter
		l.wg.Go(func() { l.loop(func() error { return l.write(ctx, k) }) })
		l.wg.Go(func() { l.loop(func() error { return l.read(ctx, k) }) })
		l.wg.Go(func() { l.loop(func() error { return l.patch(ctx, k) }) })
	}
	for range 4 {
		l.wg.Go(func() { l.loop(func() error { return l.take(ctx) }) })
	}
	l.wg.Go(func() { l.loop(func() error { return l.scan(ctx) }) })
	f.Cleanup(func() {
		l.end()
		_ = l.near.Close() // neither fails
		_ = c.Close()
	})
	return l
}

// fill puts the values that stay, and the records that are patched.
func (l *regionLoad) fill(ctx context.Context, t *testing.T) {
	t.Helper()
	var wg sync.WaitGroup
	for w := range 32 {
		wg.Go(func() {
			for i := w; i < fixedValues && ctx.Err() == nil; i += 32 {
				if _, err := l.r.Put(ctx, fmt.Appendf(nil, "fixed-%05d", i), make([]byte, fixedSize)); err != nil {
					t.Errorf("put of fixed-%05d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for k := range keysOfKind {
		if _, err := l.r.Put(ctx, fmt.Appendf(nil, "record-%d", k), fmt.Appendf(nil, "position=%016d;", 0)); err != nil {
			t.Fatal(err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

func (l *regionLoad) loop(once func() error) {
	for !l.stop.Load() {
		if err := once(); err != nil {
			l.mu.Lock()
			l.wrong = append(l.wrong, err)
			l.mu.Unlock()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// raise adds one to a counter, by put if version.
func (l *regionLoad) raise(ctx context.Context, k int) error {
	key := fmt.Appendf(nil, "counter-%d", k)
	for {
		e, err := l.r.Get(ctx, key)
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return fmt.Errorf("get of %s: %w", key, err)
		}
		n, _ := strconv.ParseInt(string(e.Value), 10, 64) // empty: none yet
		switch _, err = l.r.PutIf(ctx, key, strconv.AppendInt(nil, n+1, 10), e.Version); {
		case errors.Is(err, client.ErrConditionFailed):
			continue // the other writer was first
		case err != nil:
			return fmt.Errorf("put of %s if version %d: %w", key, e.Version, err)
		}
		l.raised[k].Add(1)
		return nil
	}
}

// write raises a watched value.
func (l *regionLoad) write(ctx context.Context, k int) error {
	w := &l.watched[k]
	w.mu.Lock()
	w.begun++
	n := w.begun
	w.mu.Unlock()
	if _, err := l.r.Put(ctx, fmt.Appendf(nil, "watched-%d", k), strconv.AppendInt(nil, n, 10)); err != nil {
		return fmt.Errorf("put %d of watched-%d: %w", n, k, err)
	}
	w.mu.Lock()
	w.acked = append(w.acked, time.Now())
	w.mu.Unlock()
	return nil
}

// read reads a watched value in every way, and judges how old the answers are.
func (l *regionLoad) read(ctx context.Context, k int) error {
	w, key := &l.watched[k], fmt.Appendf(nil, "watched-%d", k)
	get := func(mode client.ReadMode) func() (client.Entry, error) {
		return func() (client.Entry, error) { return l.r.Get(ctx, key, client.WithMode(mode)) }
	}
	for i, way := range []struct {
		name string
		age  time.Duration // the most that an answer may be behind; below 0: no bound
		get  func() (client.Entry, error)
	}{
		{"confirmed", 0, get(client.Confirmed)},
		{"leased", 0, get(client.Leased)},
		{"backup", -1, get(client.Backup)},
		{"near cache", nearAge, func() (client.Entry, error) { return l.near.Get(ctx, key) }},
	} {
		least := w.at(time.Now().Add(-way.age))
		if way.age < 0 {
			least = 0
		}
		e, err := way.get()
		if errors.Is(err, client.ErrNotFound) {
			e.Value, err = []byte("0"), nil
		}
		if err != nil {
			return fmt.Errorf("%s get of %s: %w", way.name, key, err)
		}
		n, err := strconv.ParseInt(string(e.Value), 10, 64)
		if most := w.last(); err != nil || n < least || n > most {
			return fmt.Errorf("%s get of %s: value %q, allowed: %d..%d", way.name, key, e.Value, least, most)
		}
		l.reads[i].Add(1)
	}
	return nil
}

// patch overwrites the field of a record.
func (l *regionLoad) patch(ctx context.Context, k int) error {
	n := l.patched[k].Load() + 1
	if _, err := l.r.Patch(ctx, fmt.Appendf(nil, "record-%d", k), len("position="), fmt.Appendf(nil, "%016d", n)); err != nil {
		return fmt.Errorf("patch %d of record-%d: %w", n, k, err)
	}
	l.patched[k].Store(n)
	return nil
}

// take puts a token, and has two callers take it.
func (l *regionLoad) take(ctx context.Context) error {
	token := fmt.Appendf(nil, "token-%d", l.tokens.Add(1))
	if _, err := l.r.Put(ctx, token, token); err != nil {
		return fmt.Errorf("put of %s: %w", token, err)
	}
	var wg sync.WaitGroup
	var failed [2]error
	for i := range failed {
		wg.Go(func() {
			value, _, err := l.r.Take(ctx, token)
			if errors.Is(err, client.ErrNotFound) {
				return
			}
			if failed[i] = err; err == nil {
				l.mu.Lock()
				l.taken[string(value)]++
				l.mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(failed[:]...)
}

// scan wants each of the values that stay, once.
func (l *regionLoad) scan(ctx context.Context) error {
	seen := make([]uint8, fixedValues)
	err := l.r.Scan(ctx, []byte("fixed-"), func(e client.Entry) error {
		i, err := strconv.Atoi(string(e.Key[len("fixed-"):]))
		if err == nil && (i < 0 || i >= fixedValues || len(e.Value) != fixedSize) {
			err = errors.New("no such value was put")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.Key, err)
		}
		seen[i]++
		return nil
	})
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	for i, n := range seen {
		if n != 1 {
			return fmt.Errorf("scan: fixed-%05d is there %d times", i, n)
		}
	}
	l.scans.Add(1)
	return nil
}

// more waits for n further raises of each counter.
func (l *regionLoad) more(t *testing.T, n int64) {
	t.Helper()
	var from [keysOfKind]int64
	for k := range from {
		from[k] = l.raised[k].Load()
	}
	for k, end := 0, time.Now().Add(patience); k < keysOfKind; {
		if l.raised[k].Load() >= from[k]+n {
			k++
		} else if time.Sleep(100 * time.Millisecond); time.Now().After(end) {
			t.Fatalf("counter-%d was raised %d times in %v, want %d", k, l.raised[k].Load()-from[k], patience, n)
		}
	}
}

func (l *regionLoad) end() {
	l.stop.Store(true)
	l.wg.Wait()
}

// judge ends the load, and holds what is in the region against what was acknowledged.
func (l *regionLoad) judge(ctx context.Context, t *testing.T) {
	t.Helper()
	l.end()
	if err := l.scan(ctx); err != nil {
		t.Error(err)
	}
	for _, err := range l.wrong[:min(len(l.wrong), 5)] {
		t.Error(err)
	}
	is := func(key string, want string) {
		if e, err := l.r.Get(ctx, []byte(key)); err != nil || string(e.Value) != want {
			t.Errorf("%s is %q (%v), acknowledged: %q", key, e.Value, err, want)
		}
	}
	var raised, puts, patched int64
	for k := range keysOfKind {
		n, w, p := l.raised[k].Load(), l.watched[k].last(), l.patched[k].Load()
		is(fmt.Sprintf("counter-%d", k), strconv.FormatInt(n, 10))
		is(fmt.Sprintf("watched-%d", k), strconv.FormatInt(w, 10))
		is(fmt.Sprintf("record-%d", k), fmt.Sprintf("position=%016d;", p))
		raised, puts, patched = raised+n, puts+w, patched+p
	}
	for i := range l.tokens.Load() {
		if n := l.taken[fmt.Sprintf("token-%d", i+1)]; n != 1 {
			t.Errorf("token-%d was taken %d times", i+1, n)
		}
	}
	s := l.near.Stats()
	t.Logf("%d errors or wrong answers; %d raises, %d puts, %d patches, %d tokens, %d scans of %d values; reads: %d confirmed, %d leased, %d of backups, %d of the near cache (%d from memory)",
		len(l.wrong), raised, puts, patched, l.tokens.Load(), l.scans.Load(), fixedValues, l.reads[0].Load(), l.reads[1].Load(), l.reads[2].Load(), l.reads[3].Load(), s.Hits)
	if l.scans.Load() < 2 || l.reads[3].Load() < 100 || s.Hits == 0 {
		t.Error("too little was scanned or read to judge")
	}
}
