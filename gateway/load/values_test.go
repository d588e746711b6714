package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/verify"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// regionGrid starts a grid with a region for the tests.
func regionGrid(t *testing.T) *testgrid.Grid {
	t.Helper()
	return testgrid.Run(t, "--", "--regions", write(t, "regions.yaml", "memory: 256Mi\nregions:\n- name: positions\n- {name: small, maxBytes: 64Ki}\n"))
}

func openAs(t *testing.T, name string, shape Shape) Source {
	t.Helper()
	src, err := Open(t.Context(), name, "", "", shape)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close() })
	return src
}

// into loads a file into a region.
func into(t *testing.T, ctx context.Context, r *client.Region, p Puts, name string, e Entries, o Options) (Counts, error) {
	t.Helper()
	src, err := Open(t.Context(), name, "", "", e)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	l, err := New(Values(r, p), "dev, region positions", src, o)
	if err != nil {
		t.Fatal(err)
	}
	return l.Run(ctx)
}

// scanned are the values of a region.
func scanned(t *testing.T, r *client.Region) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := r.Scan(t.Context(), nil, func(e client.Entry) error { all[string(e.Key)] = string(e.Value); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func wantOf(all []position) map[string]string {
	want := map[string]string{}
	for i := range all {
		want[all[i].Account+"/"+all[i].Symbol] = all[i].object()
	}
	return want
}

func TestLoadValues(t *testing.T) {
	c := downstream.Dial(t, regionGrid(t))
	r := c.Region("positions")
	all := positions(3000)
	if _, err := r.Put(t.Context(), []byte("ACC-1/VOD.L"), []byte("of another")); err != nil {
		t.Fatal(err)
	}
	text := positionsCSV(all) + all[6].csv() + "ACC-9,VOD.L,changed,,,,\n" + "short\n" + "ACC-X," + strings.Repeat("k", 65440) + ",1,,,,\n"
	name, dir := write(t, "a.csv", text), t.TempDir()
	o := Options{State: filepath.Join(dir, "state"), Refusals: filepath.Join(dir, "refused")}
	want := Counts{Rows: 3004, Accepted: 2999, Present: 1, Refused: 4}
	for range 2 { // the second time the rows are sent again
		if n, err := into(t, t.Context(), r, Puts{}, name, positionEntries, o); err != nil || n != want {
			t.Fatalf("%+v, %v, want %+v", n, err, want)
		}
		want.Accepted, want.Present = 0, 3000
	}
	refused := refusals(t, o.Refusals)
	if len(refused) != 4 || refused[0].Key != "ACC-1/VOD.L" || refused[0].Where != "line 5" || refused[0].By != "grid" || !strings.Contains(refused[0].Reason, "another value, of version") ||
		refused[1].Key != "ACC-9/VOD.L" || !strings.Contains(refused[1].Message, "changed") || refused[2].By != "source" || refused[2].Key != "" ||
		!strings.Contains(refused[3].Reason, "together at most 65440") {
		t.Errorf("refused: %.900s", fmt.Sprint(refused))
	}
	has := wantOf(all)
	has["ACC-1/VOD.L"] = "of another"
	if got := scanned(t, r); !maps.Equal(got, has) {
		t.Errorf("the region has %d values, want %d, all of them as loaded", len(got), len(has))
	}
	has["ACC-1/VOD.L"], has["ACC-9/VOD.L"] = all[3].object(), `{"symbol":"VOD.L","quantity":"changed"}`
	if n, err := into(t, t.Context(), r, Puts{Replace: true}, name, positionEntries, Options{}); err != nil || n.Accepted != 3002 || n.Refused != 2 {
		t.Errorf("with replace: %+v, %v", n, err)
	}
	if got := scanned(t, r); !maps.Equal(got, has) {
		t.Errorf("with replace: ACC-1/VOD.L is %s, ACC-9/VOD.L %s", got["ACC-1/VOD.L"], got["ACC-9/VOD.L"])
	}
}

// A state is of a load that was interrupted, as it was begun: values that are put in another way are another load, which says
// what the rows would do, and a load that has ended keeps none, so that the same source is loaded again.
func TestStateOfValues(t *testing.T) {
	c := downstream.Dial(t, regionGrid(t))
	r := c.Region("positions")
	all := positions(3000)
	name := write(t, "a.csv", positionsCSV(all))
	o := Options{State: filepath.Join(t.TempDir(), "state"), Every: time.Millisecond, InFlight: 16, Rate: 5000}
	ctx, cancel := context.WithCancel(t.Context())
	o.Notify = func(p Progress) {
		if p.Rows > 500 {
			cancel()
		}
	}
	week := Puts{Replace: true, Life: 7 * 24 * time.Hour}
	if n, err := into(t, ctx, r, week, name, positionEntries, o); !errors.Is(err, context.Canceled) || n.Rows == int64(len(all)) {
		t.Fatalf("%+v, %v, want an interrupted load", n, err)
	}
	src := openAs(t, name, positionEntries)
	for _, p := range []Puts{{}, {Replace: true}, {Replace: true, Life: time.Hour}, {Replace: true, Forever: true}, {Life: week.Life}} {
		again := map[bool]string{false: "are left as they are", true: "over what others have written"}[p.Replace]
		if _, err := New(Values(r, p), "dev, region positions", src, o); !errors.Is(err, ErrOtherSource) || !strings.Contains(err.Error(), "replacing values, life 168h0m0s, allowed") || !strings.Contains(err.Error(), again) {
			t.Errorf("resumed as %+v: %v, want another load, and %q", p, err, again)
		}
	}
	if _, err := New(Values(r, week), "dev, region small", src, o); !errors.Is(err, ErrOtherSource) {
		t.Errorf("state of another region: %v", err)
	}
	o.Notify, o.Rate, o.InFlight = nil, 0, 0
	for _, drop := range []bool{false, true, false} {
		if drop {
			if err := r.Clear(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := into(t, t.Context(), r, week, name, positionEntries, o); err != nil || n.Rows != 3000 || n.Accepted != 3000 {
			t.Errorf("dropped %v: %+v, %v, want 3000 rows accepted", drop, n, err)
		}
		if _, err := os.Stat(o.State); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the state of a load that has ended: %v", err)
		}
		if got, want := scanned(t, r), wantOf(all); !maps.Equal(got, want) {
			t.Errorf("dropped %v: the region has %d values, want %d", drop, len(got), len(want))
		}
	}
	if e, err := r.Get(t.Context(), []byte("ACC-0/VOD.L")); err != nil || e.Expires.IsZero() {
		t.Errorf("a value with a life: %+v, %v", e, err)
	}
	if err := os.WriteFile(o.State, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Values(r, week), "dev, region positions", src, o); err == nil || !strings.Contains(err.Error(), "over what others have written") {
		t.Errorf("a state that cannot be read: %v", err)
	}
}

// Rows of one key are settled in their order, however many are on their way: the last one stays, or the first.
func TestRowsOfOneKey(t *testing.T) {
	c := downstream.Dial(t, regionGrid(t))
	r := c.Region("positions")
	var b strings.Builder
	b.WriteString("key,value\n")
	for i := range 4000 {
		fmt.Fprintf(&b, "K%d,%d\n", i%7, i)
	}
	name := write(t, "a.csv", b.String())
	for _, replace := range []bool{false, true} {
		n, err := into(t, t.Context(), r, Puts{Replace: replace}, name, Entries{}, Options{})
		if want := map[bool]Counts{false: {4000, 7, 0, 3993}, true: {4000, 4000, 0, 0}}[replace]; err != nil || n != want {
			t.Errorf("replace %v: %+v, %v, want %+v", replace, n, err, want)
		}
		for k, v := range scanned(t, r) {
			var i int
			if _, err := fmt.Sscanf(k, "K%d", &i); err != nil {
				t.Fatal(err)
			}
			want := i
			if replace {
				want = 3999 - (3999-i)%7
			}
			if v != fmt.Sprint(want) {
				t.Errorf("replace %v: %s is %s, want %d", replace, k, v, want)
			}
		}
	}
}

// A region that is full ends the load when no row was taken for as long as it is patient, and is resumed once there is room.
func TestFullRegion(t *testing.T) {
	c := downstream.Dial(t, regionGrid(t))
	r := c.Region("small")
	all := positions(2000)
	name := write(t, "a.csv", positionsCSV(all))
	o := Options{State: filepath.Join(t.TempDir(), "state"), InFlight: 16, Patience: 200 * time.Millisecond}
	n, err := into(t, t.Context(), r, Puts{}, name, positionEntries, o)
	if !errors.Is(err, client.ErrCapacity) || !strings.Contains(err.Error(), "resume when the grid takes rows again") || n.Rows == 0 || n.Refused != 0 {
		t.Fatalf("a full region: %+v, %v", n, err)
	}
	if err := r.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m, err := into(t, t.Context(), r, Puts{}, name, positionEntries, o); m.Rows <= n.Rows {
		t.Errorf("resumed behind %d: %+v, %v", n.Rows, m, err)
	}
}

// While values are loaded primaries are killed, and the loader is interrupted again and again, also as in a crash, where
// what it keeps of its progress is old. In the end every row is there with its value, and each was applied once: the grid
// has one change for each key.
func TestResumeValues(t *testing.T) {
	g := regionGrid(t)
	c := downstream.Dial(t, g)
	r := c.Region("positions")
	all := positions(30000)
	name, dir := write(t, "a.csv", positionsCSV(all)), t.TempDir()
	o := Options{State: filepath.Join(dir, "state"), Refusals: filepath.Join(dir, "refused"), Every: time.Millisecond, InFlight: 512, Rate: 10000}
	stop := make(chan struct{})
	var killing sync.WaitGroup
	kills := 0
	killing.Go(func() {
		for ; kills < 4 && inSync(t, c, stop); kills++ {
			killPrimary(t, c, g)
		}
	})
	var n Counts
	for attempt := 0; ; attempt++ {
		ctx, cancel := context.WithCancel(t.Context())
		seen := n.Rows
		o.Notify = func(p Progress) {
			if attempt < 5 && p.Rows > seen+3000 {
				cancel()
			}
		}
		var err error
		n, err = into(t, ctx, r, Puts{}, name, positionEntries, o)
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if attempt%2 == 0 {
			n.Rows = crashed(t, o.State, 300)
		}
	}
	close(stop)
	killing.Wait()
	if n.Rows != 30000 || n.Accepted+n.Present != 30000 || n.Present < 300 {
		t.Errorf("%+v, want 30000 rows, all in the region, 300 or more compared", n)
	}
	if kills == 0 {
		t.Error("no primary was killed under the load")
	}
	if got, want := scanned(t, r), wantOf(all); !maps.Equal(got, want) {
		t.Errorf("the region has %d values, want %d", len(got), len(want))
	}
	inSync(t, c, nil)
	changes := 0
	for _, p := range c.Table() {
		if _, err := c.ReadLog(t.Context(), p.ID, "", 1, func(e client.LogEntry) error {
			if e.Kind == order.KindRegion && e.ClientSeq != 0 {
				changes++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if changes != len(all) {
		t.Errorf("the logs have %d changes of clients, want %d: one for each row", changes, len(all))
	}
	if result, err := verify.Run(t.Context(), verify.FromClient(c), verify.Options{}); err != nil || result.ExitCode() != verify.ExitEqual {
		t.Errorf("the replicas: %+v, %v", result, err)
	}
	t.Logf("%d kills, %+v", kills, n)
}

// crashed takes the state of a load back, as it is after a crash, by so many rows, and returns how many it has then.
func crashed(t *testing.T, file string, rows int64) int64 {
	t.Helper()
	var s state
	text, err := os.ReadFile(file)
	if err := errors.Join(err, json.Unmarshal(text, &s)); err != nil {
		t.Fatal(err)
	}
	s.Rows, s.Accepted = s.Rows-rows, s.Accepted-rows
	if text, err = json.Marshal(s); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return s.Rows
}

// inSync waits until each partition has a primary and two copies, and reports whether it has before stop is closed.
func inSync(t *testing.T, c *client.Client, stop <-chan struct{}) bool {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		select {
		case <-stop:
			return false
		default:
		}
		whole := c.Refresh(t.Context()) == nil
		for _, p := range c.Table() {
			n := 0
			for _, m := range p.Members {
				if m.InSync {
					n++
				}
			}
			whole = whole && n == 2 && p.Primary.ID != ""
		}
		if whole {
			return true
		}
		if time.Now().After(end) {
			t.Error("the copies are not in sync in 2 min")
			return false
		}
	}
}

func killPrimary(t *testing.T, c *client.Client, g *testgrid.Grid) {
	t.Helper()
	p := c.Table()[0]
	pid, err := g.PIDOf(p.Primary.Address)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Errorf("kill of %s: %v", p.Primary.Address, err)
	}
	for end := time.Now().Add(2 * time.Minute); c.Refresh(t.Context()) != nil || c.Table()[0].Epoch == p.Epoch; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Error("no other primary in 2 min")
			return
		}
	}
}
