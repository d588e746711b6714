package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
)

// near makes a cache that ends with the test.
func near(t *testing.T, r *client.Region, o client.NearCacheOptions) *client.NearCache {
	t.Helper()
	n, err := r.NearCache(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// hit reads until the answer comes from memory.
func hit(t *testing.T, n *client.NearCache, key []byte) (e client.Entry) {
	t.Helper()
	waitFor(t, func() bool {
		was := n.Stats().Hits
		var err error
		if e, err = n.Get(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		return n.Stats().Hits > was
	})
	return e
}

func TestGridNearCache(t *testing.T) {
	c := dial(t, regions(t))
	ctx, r := t.Context(), c.Region("positions")
	n := near(t, r, client.NearCacheOptions{MaxAge: 500 * time.Millisecond, MaxBytes: 20_000})
	key := []byte("ACC-1/IBM")
	if _, err := n.Get(ctx, key); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("of a key without a value: %v", err)
	}
	put := func(value string) {
		t.Helper()
		if _, err := r.Put(ctx, key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	put("100")
	if e := hit(t, n, key); string(e.Value) != "100" || !bytes.Equal(e.Key, key) {
		t.Errorf("kept: %+v", e)
	}
	shows := func(what, want string) {
		t.Helper()
		waitFor(t, func() bool {
			e, err := n.Get(ctx, key)
			return want == "" && errors.Is(err, client.ErrNotFound) || err == nil && string(e.Value) == want && want != ""
		})
	}
	put("150")
	shows("another value", "150")
	if _, err := r.Patch(ctx, key, 1, []byte("75")); err != nil {
		t.Fatal(err)
	}
	shows("a patch", "175")
	hit(t, n, key)
	if _, _, err := r.Take(ctx, key); err != nil {
		t.Fatal(err)
	}
	shows("a take", "")
	put("1")
	hit(t, n, key)
	if err := r.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	shows("a clear", "")
	if _, err := r.Put(ctx, key, []byte("brief"), client.Expires(300*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	shows("expiry", "")
	if s := n.Stats(); s.Invalidated == 0 || s.Hits == 0 || s.Misses == 0 {
		t.Errorf("%+v", s)
	}
	// Memory is bounded, and what is read is what was put.
	for i := range 300 {
		if _, err := r.Put(ctx, fmt.Appendf(nil, "K%d", i), bytes.Repeat([]byte{byte(i)}, i)); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 3 {
		for i := range 300 {
			e, err := n.Get(ctx, fmt.Appendf(nil, "K%d", i))
			if err != nil || !bytes.Equal(e.Value, bytes.Repeat([]byte{byte(i)}, i)) {
				t.Fatalf("round %d: K%d: %d bytes, %v", round, i, len(e.Value), err)
			}
		}
	}
	if s := n.Stats(); s.Bytes > 20_000 || s.Bytes < 10_000 || s.Evicted == 0 || s.Entries == 0 {
		t.Errorf("%+v", s)
	}
	for _, o := range []client.NearCacheOptions{{MaxBytes: -1}, {MaxAge: time.Millisecond}, {MaxAge: -1}} {
		if _, err := r.NearCache(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if _, err := n.Get(ctx, []byte("K1")); err != nil {
		t.Errorf("behind Close values are read from the grid: %v", err)
	}
}

// written are the values of a key that were acknowledged, by when.
type written struct {
	mu sync.Mutex
	at []time.Time // of value i+1
}

// least is what a read may show that began at a time, with an answer of an age.
func (w *written) least(began time.Time, age time.Duration) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n = len(w.at); n > 0 && !w.at[n-1].Before(began.Add(-age)); n-- {
	}
	return n
}

// A cache never gives an answer that is older than it may be, while the replica that it follows is stopped, and primaries
// are killed. One that may give older answers does: what is checked here does happen.
func TestGridNearCacheAge(t *testing.T) {
	const age, keys = 200 * time.Millisecond, 4
	g := regions(t)
	c := dial(t, g)
	r := c.Region("positions")
	var names [][]byte
	for i := 0; len(names) < keys; i++ {
		key := fmt.Appendf(nil, "C%d", i)
		if c.RouteClOrdID(key) != 0 {
			continue
		}
		if _, err := r.Put(t.Context(), key, []byte("0")); err != nil {
			t.Fatal(err)
		}
		names = append(names, key)
	}
	strict, loose := near(t, r, client.NearCacheOptions{MaxAge: age}), near(t, r, client.NearCacheOptions{MaxAge: time.Hour})
	var all [keys]written
	var stop atomic.Bool
	var olderStrict, olderLoose, reads atomic.Int64
	var work sync.WaitGroup
	read := func(n *client.NearCache, i int, older *atomic.Int64) bool {
		began := time.Now()
		least := all[i].least(began, age)
		e, err := n.Get(t.Context(), names[i])
		got, _ := strconv.Atoi(string(e.Value))
		if err != nil {
			t.Errorf("%s: %v", names[i], err)
			return false
		}
		if reads.Add(1); got < least {
			older.Add(1)
		}
		return true
	}
	for i := range keys {
		work.Go(func() {
			for v := 1; !stop.Load(); v++ {
				if _, err := r.Put(t.Context(), names[i], []byte(strconv.Itoa(v))); err != nil {
					t.Errorf("%s: %v", names[i], err)
					return
				}
				all[i].mu.Lock()
				all[i].at = append(all[i].at, time.Now())
				all[i].mu.Unlock()
				time.Sleep(20 * time.Millisecond)
			}
		})
		work.Go(func() {
			for !stop.Load() && read(strict, i, &olderStrict) && read(loose, i, &olderLoose) {
				time.Sleep(time.Millisecond)
			}
		})
	}
	for round := range 3 {
		waitForRedundancy(t, c)
		hit(t, strict, names[0])
		hit(t, loose, names[0])
		if round == 2 {
			killPrimary(t, c, g)
			break
		}
		stopBackup(t, c, g, 1200*time.Millisecond)
	}
	waitForRedundancy(t, c)
	hit(t, strict, names[0])
	stop.Store(true)
	work.Wait()
	if olderStrict.Load() > 0 {
		t.Errorf("%d of %d answers are older than %v", olderStrict.Load(), reads.Load(), age)
	}
	if olderLoose.Load() == 0 {
		t.Error("no answer of the cache that may give old ones was: nothing was tested")
	}
	t.Logf("%d reads, %d old ones of the cache that may; %+v", reads.Load(), olderLoose.Load(), strict.Stats())
}

// stopBackup keeps the backup of partition 0, which followers are at, from running for a while.
func stopBackup(t *testing.T, c *client.Client, g interface{ PIDOf(string) (int, error) }, d time.Duration) {
	t.Helper()
	p := c.Table()[0]
	for _, m := range p.Members {
		if m.ID == p.Primary.ID {
			continue
		}
		pid, err := g.PIDOf(m.Address)
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGSTOP)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(d)
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("partition 0 has no backup")
}
