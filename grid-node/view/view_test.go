package view_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/query/querytest"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/internal/race"
)

func newCase(t testing.TB, base uint64, rows int) *querytest.Case {
	t.Helper()
	c, err := querytest.New(base, rows)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// second makes another view of a case's log, from an entry on.
func second(t testing.TB, c *querytest.Case, o view.Options) *view.View {
	t.Helper()
	v, err := view.New(o)
	must(t, err)
	t.Cleanup(v.Close)
	last, _ := c.Store.Last()
	for seq := o.Base + 1; seq <= last; seq++ {
		must(t, v.Apply(c.Store.Read(seq)))
	}
	v.Publish()
	return v
}

// TestCopiesHaveOneHash builds views of one log from different entries on: texts have
// other numbers, values are the same.
func TestCopiesHaveOneHash(t *testing.T) {
	c := newCase(t, 0, 1<<16)
	must(t, c.Add(rand.New(rand.NewPCG(1, 1)), 1500))
	o := querytest.Options(c.Store, 0, 1<<16)
	all := second(t, c, o)
	o.Base = 500
	late := second(t, c, o)
	hash := func(v *view.View, from, to uint64) uint64 {
		s, err := v.Snapshot(to)
		must(t, err)
		defer s.Release()
		h, err := s.Hash(from, to, nil)
		must(t, err)
		return h
	}
	if a, b := hash(all, 700, 1400), hash(c.View, 700, 1400); a != b {
		t.Errorf("hash of rows 700..1400 is %x in one view and %x in another of the same log", a, b)
	}
	// An order from before the late view begins cannot be ended in it; those after can.
	if a, b := hash(all, 700, 1400), hash(late, 700, 1400); a != b {
		t.Errorf("hash of rows 700..1400 is %x, and %x in a view that begins at 501", a, b)
	}
	if hash(all, 700, 1400) == hash(all, 700, 1399) {
		t.Error("the hash does not depend on the last row")
	}
	s, err := late.Snapshot(0)
	must(t, err)
	defer s.Release()
	if _, err := s.Hash(500, 1400, nil); !errors.As(err, new(*view.TooOldError)) {
		t.Errorf("hash from before the view: %v", err)
	}
	if _, err := s.Hash(501, 1400, func() bool { return false }); err == nil {
		t.Error("a hash goes on when it is stopped")
	}
}

func TestChain(t *testing.T) {
	c := newCase(t, 0, 1<<16)
	var seqs []string
	put := func(kind, id, orig string) { seqs = append(seqs, id); must(t, c.AddMessage(kind, id, orig)) }
	put("D", "a", "")
	put("D", "x", "")
	put("G", "b", "a")
	put("G", "c", "b")
	put("F", "d", "b") // too late: b was replaced
	put("F", "e", "c")
	put("F", "y", "nobody")
	s, err := c.View.Snapshot(0)
	must(t, err)
	defer s.Release()
	for _, row := range []uint64{1, 4, 6} {
		rows, cut := s.Chain(row)
		if want := []uint64{1, 3, 4, 5, 6}; !reflect.DeepEqual(rows, want) || cut {
			t.Errorf("chain of %s is %v (truncated %v), want %v", seqs[row-1], rows, cut, want)
		}
	}
	state := c.View.Field(view.State)
	for row, want := range []string{`"replaced"`, `"new"`, `"replaced"`, `"cancelled"`, "null", "null", "null"} {
		if got := s.Value(state, uint64(row+1)).String(); got != want {
			t.Errorf("state of %s is %s, want %s", seqs[row], got, want)
		}
	}
	old, err := c.View.Snapshot(3)
	must(t, err)
	defer old.Release()
	if got := old.Value(state, 3).Text; got != view.StateNew {
		t.Errorf("state of b at entry 3 is %s: it was replaced by entry 4", got)
	}
}

// TestFullViewKeepsItsRows fills each kind of memory.
func TestFullViewKeepsItsRows(t *testing.T) {
	const base = 1<<16 - 1000
	c := newCase(t, base, 1<<16)
	must(t, c.Add(rand.New(rand.NewPCG(1, 1)), 2000))
	for name, change := range map[string]func(*view.Options){
		"values": func(o *view.Options) { o.Values = 40 },
		"rows":   func(o *view.Options) { o.Memory = 8 << 20 },
		"postings": func(o *view.Options) {
			o.Memory, o.Extra, o.Postings, o.Ordered, o.Values = 3875<<10, nil, nil, []view.Field{}, 1024
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := querytest.Options(c.Store, base, 1<<16)
			change(&o)
			v, err := view.New(o)
			must(t, err)
			defer v.Close()
			seq := uint64(base + 1)
			for ; seq <= base+2000 && err == nil; seq++ {
				err = v.Apply(c.Store.Read(seq))
			}
			full := (*view.FullError)(nil)
			if !errors.As(err, &full) || full.Seq != seq-1 || v.Incomplete() == nil {
				t.Fatalf("entry %d: %v, want a FullError", seq-1, err)
			}
			t.Log(err)
			if again := v.Apply(c.Store.Read(seq - 1)); !errors.Is(again, err) {
				t.Errorf("a view that is full takes another entry: %v", again)
			}
			v.Publish()
			if v.Applied() != seq-2 {
				t.Errorf("ends at %d, want %d", v.Applied(), seq-2)
			}
			if _, err := v.Snapshot(seq - 1); !errors.As(err, new(*view.NotAppliedError)) {
				t.Errorf("snapshot beyond the end: %v", err)
			}
			if v.Used() > o.Memory {
				t.Errorf("uses %d bytes of %d", v.Used(), o.Memory)
			}
		})
	}
}

// TestMemoryOfRowsIsBounded applies more rows than were asked for.
func TestMemoryOfRowsIsBounded(t *testing.T) {
	if race.Enabled {
		t.Skip("many rows and one goroutine: run without the race detector")
	}
	c := newCase(t, 5<<16-10, 1<<16)
	s, err := c.View.Snapshot(0)
	must(t, err)
	s.Release()
	err = c.AddBulk(5<<16-9, 11<<16, true, 1000)
	if full := (*view.FullError)(nil); !errors.As(err, &full) || full.What != "the row" {
		t.Fatalf("six chunks in a view of one: %v", err)
	}
}

func TestApplyRefusesOtherEntries(t *testing.T) {
	c := newCase(t, 0, 1<<16)
	must(t, c.AddBulk(1, 5, true, 1))
	v := second(t, c, querytest.Options(c.Store, 3, 1<<16))
	if err := v.Apply(c.Store.Read(4)); err == nil || !strings.Contains(err.Error(), "allowed: 6, the next") {
		t.Errorf("an entry that was applied: %v", err)
	}
	v = second(t, c, querytest.Options(c.Store, 4, 1<<16))
	if err := v.Apply([]byte("short")); err == nil {
		t.Error("an entry of 5 bytes was taken")
	}
}

func TestSnapshots(t *testing.T) {
	c := newCase(t, 0, 1<<16)
	must(t, c.AddBulk(1, 100, true, 1))
	var all []*view.Snapshot
	for {
		s, err := c.View.Snapshot(50)
		if err != nil {
			if len(all) != 64 {
				t.Errorf("%d snapshots, then %v", len(all), err)
			}
			break
		}
		all = append(all, s)
	}
	all[7].Release()
	all[9].Release()
	s, err := c.View.Snapshot(0)
	must(t, err)
	if s.At() != 100 || s.Base() != 0 || all[8].At() != 50 {
		t.Errorf("rows %d..%d, want 0..100", s.Base(), s.At())
	}
	c.View.Drop(60)
	if s, err := c.View.Snapshot(50); !errors.As(err, new(*view.TooOldError)) {
		t.Errorf("snapshot of dropped rows: %v %v", s, err)
	}
	if !all[8].Has(1) || all[8].Has(51) {
		t.Error("a snapshot lost a row, or has one too many, since rows were dropped")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	s, err := store.New(store.Options{})
	must(t, err)
	defer s.Close()
	for want, change := range map[string]func(*view.Options){
		"Log is nil":              func(o *view.Options) { o.Log = nil },
		"Rows is 0":               func(o *view.Options) { o.Rows = 0 },
		"Values is -1":            func(o *view.Options) { o.Values = -1 },
		"Memory is":               func(o *view.Options) { o.Memory = 1000 },
		"further tag is 55":       func(o *view.Options) { o.Extra = []view.Extra{{Tag: 55, Kind: view.Text}} },
		"kind of tag 5 is":        func(o *view.Options) { o.Extra = []view.Extra{{Tag: 5, Kind: view.Int}} },
		"name of tag 5":           func(o *view.Options) { o.Extra = []view.Extra{{Tag: 5, Kind: view.Text, Name: "a b"}} },
		"is there twice":          func(o *view.Options) { o.Extra = []view.Extra{{Tag: 5, Kind: view.Text, Name: "Price"}} },
		"postings of field 44":    func(o *view.Options) { o.Postings = []view.Field{view.Price} },
		"sorted runs of field 55": func(o *view.Options) { o.Ordered = []view.Field{view.Symbol} },
		"further tags, allowed":   func(o *view.Options) { o.Extra = make([]view.Extra, 33) },
	} {
		o := querytest.Options(s, 0, 1000)
		change(&o)
		if _, err := view.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one with %q", err, want)
		}
	}
}

func TestApplyAllocsNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	c := newCase(t, 0, 1<<20)
	must(t, c.AddBulk(1, 70_000, false, 1000))
	last := uint64(70_000)
	for n := last + 1; n <= last+20_000; n++ {
		must(t, c.StoreBulk(n, false))
	}
	next := last + 1
	if n := testing.AllocsPerRun(19_000, func() {
		if err := c.View.Apply(c.Store.Read(next)); err != nil {
			t.Fatal(err)
		}
		c.View.Publish()
		next++
	}); n != 0 {
		t.Errorf("Apply allocates %v times an order, want 0", n)
	}
}

// TestMemoryPerOrder holds the columns of every view and two postings to 64 bytes an order.
func TestMemoryPerOrder(t *testing.T) {
	if race.Enabled || testing.Short() {
		t.Skip("a million orders: run by make test without the race detector")
	}
	const n = 1<<20 - 1
	s, err := store.New(store.Options{})
	must(t, err)
	c := &querytest.Case{Store: s}
	c.View, err = view.New(view.Options{Log: s, Memory: 256 << 20, Rows: n, Ordered: []view.Field{}})
	must(t, err)
	t.Cleanup(c.Close)
	must(t, c.AddBulk(1, n, false, 1000))
	if per := float64(c.View.Used()) / n; per > 64 {
		t.Errorf("%.1f bytes an order, want 64 or less", per)
	} else {
		t.Logf("%.1f bytes an order", per)
	}
}
