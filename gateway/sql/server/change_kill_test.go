package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// ledger is what the listener said of each key.
type ledger struct {
	mu                       sync.Mutex
	inserted, taken, unknown map[string]int
}

func (l *ledger) note(of map[string]int, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of[key]++
}

// TestChangesWhilePrimariesAreKilled: rows that were acknowledged are there, each row is taken by one DELETE RETURNING, and
// what is not known is told to be unknown. Each key is inserted by two connections and taken by two.
func TestChangesWhilePrimariesAreKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "regions.yaml")
	if err := os.WriteFile(file, []byte("memory: 64Mi\nregions: [{name: work}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := testgrid.Run(t, "--", "--regions", file)
	own, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	s := serve(t, Config{Open: true, OpenWrites: true, Grid: own})
	l := &ledger{inserted: map[string]int{}, taken: map[string]int{}, unknown: map[string]int{}}
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	const pairs = 3
	for pair := range pairs {
		for side := range 2 {
			c := mustConnect(t, s)
			wg.Go(func() {
				for i := 0; !stop.Load() && !t.Failed(); i++ {
					l.work(t, c, fmt.Sprintf("k-%d-%05d", pair, i/2*2+(i+side)%2))
				}
			})
		}
	}
	for range 2 {
		redundant(t, own)
		time.Sleep(100 * time.Millisecond) // some traffic at full redundancy
		kill(t, own, g)
	}
	redundant(t, own)
	time.Sleep(100 * time.Millisecond)
	stop.Store(true)
	wg.Wait()
	l.judge(t, own.Region("work"))
}

// work inserts a key and, of every other one, takes it.
func (l *ledger) work(t *testing.T, c *pgconn.PgConn, key string) {
	switch got := told(t, c, fmt.Sprintf("insert into regions.work values ('%s', '%s')", key, key)); got {
	case "INSERT 0 1":
		l.note(l.inserted, key)
	case "23505":
	case "08007":
		l.note(l.unknown, key)
	default:
		t.Errorf("insert of %s: %s", key, got)
	}
	if key[len(key)-1]%2 == 0 {
		return
	}
	switch got := told(t, c, fmt.Sprintf("delete from regions.work where key = '%s' returning value", key)); got {
	case "DELETE 1 " + key:
		l.note(l.taken, key)
	case "DELETE 0":
	case "08007":
		l.note(l.unknown, key)
	default:
		t.Errorf("delete of %s: %s", key, got)
	}
}

// judge compares the ledger with the region: an insert that was acknowledged is taken once or there, and the other way
// round, but for what is unknown.
func (l *ledger) judge(t *testing.T, r *client.Region) {
	there := map[string]int{}
	if err := r.Scan(t.Context(), nil, func(e client.Entry) error {
		there[string(e.Key)]++
		if string(e.Key) != string(e.Value) {
			return fmt.Errorf("%s has value %s", e.Key, e.Value)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	taken := 0
	for key, n := range l.inserted {
		taken += l.taken[key]
		if got := there[key] + l.taken[key]; got != n && l.unknown[key] == 0 {
			t.Errorf("%s was inserted %d times, taken %d times, and is there %d times", key, n, l.taken[key], there[key])
		}
	}
	for key := range there {
		if l.inserted[key] == 0 && l.unknown[key] == 0 {
			t.Errorf("%s is there and was not inserted", key)
		}
	}
	if len(l.inserted) < 100 || taken < 50 || len(l.unknown)*10 > len(l.inserted) {
		t.Errorf("%d keys inserted, %d taken, %d unknown: it tests nothing", len(l.inserted), taken, len(l.unknown))
	}
	t.Logf("%d keys inserted, %d taken, %d unknown, %d there", len(l.inserted), taken, len(l.unknown), len(there))
}

// redundant waits until every partition has two copies in sync.
func redundant(t *testing.T, c *client.Client) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		ok := c.Refresh(t.Context()) == nil
		for _, p := range c.Table() {
			n := 0
			for _, m := range p.Members {
				if m.InSync {
					n++
				}
			}
			ok = ok && n >= 2 && p.Primary.ID != ""
		}
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatal(errors.New("the grid is not redundant again after 60s"))
		}
	}
}

// kill kills the process that is primary of the first partition.
func kill(t *testing.T, c *client.Client, g *testgrid.Grid) {
	t.Helper()
	pid, err := g.PIDOf(c.Table()[0].Primary.Address)
	if err != nil {
		t.Fatal(err)
	}
	before := c.Table()[0].Epoch
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(60 * time.Second); c.Refresh(t.Context()) != nil || c.Table()[0].Epoch == before; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(errors.New("no other primary after 60s"))
		}
	}
}
