package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// newest is the last file of the log of a partition's journal.
func newest(t *testing.T, dir, pod, partition string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pod, partition, "*.log"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no journal of %s in %s: %v", partition, pod, err)
	}
	return files[len(files)-1]
}

// A grid that was off as a whole has every order again. What was written and not synced is
// cut; a damaged journal is set aside, and the other copy has everything.
func TestJournalResumed(t *testing.T) {
	g := newGrid(t, 2, 1)
	dir := t.TempDir()
	g.base.Journal = &Journal{Dir: dir}
	g.up()
	c := g.client()
	var ids []wire.OrderID
	submit := func(round int) {
		for i := range 50 {
			r, err := c.Submit(t.Context(), fix(fmt.Sprintf("J-%d-%d", round, i)))
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, wire.OrderID{Partition: r.Partition, Seq: r.Seq})
		}
	}
	restart := func(between func()) {
		g.kill(1) // the record may name node 0 alone then
		g.kill(0)
		between()
		for i := range g.nodes {
			g.start(i)
		}
		g.ready()
		for i, id := range ids {
			if o, err := c.Get(t.Context(), id); err != nil || o.ID != id {
				t.Fatalf("order %d, %s: %v", i, id, err)
			}
		}
	}
	submit(1)
	restart(func() {
		for _, pod := range []string{"g-s0-0", "g-s0-1"} {
			f, err := os.OpenFile(newest(t, dir, pod, "p0"), os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = f.Write(make([]byte, 777))
			}
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}
	})
	submit(2)
	restart(func() {
		name := newest(t, dir, "g-s0-1", "p0")
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	submit(3)
	reason, err := os.ReadFile(filepath.Join(dir, "g-s0-1", "aside", "p0-1", "REASON.txt"))
	if err != nil || !strings.Contains(string(reason), "is damaged at offset") {
		t.Errorf("the damaged journal: %q, %v", reason, err)
	}
}

// A journal that has only its reserve left refuses orders, and takes them when there is
// room again.
func TestJournalFull(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.Journal = &Journal{Dir: t.TempDir(), MaxBytes: MinJournal}
	g.up()
	c := g.client()
	stats := &g.nodes[0].data.parts.journals
	stats.bytes.Add(MinJournal)
	var refused *client.RejectError
	g.until(func() bool {
		_, err := c.Submit(t.Context(), fix(fmt.Sprintf("F-%d", stats.bytes.Load())))
		return errors.As(err, &refused)
	}, "no order is refused")
	if refused.Code != wire.CodeCapacity || !strings.Contains(refused.Text, "journal") {
		t.Errorf("refused: %v", refused)
	}
	if j := g.nodes[0].second(t, 0).Journal; j == nil || !j.Full || j.LimitBytes != MinJournal {
		t.Errorf("the page of memory: %+v", j)
	}
	stats.bytes.Add(-MinJournal)
	g.until(func() bool {
		_, err := c.Submit(t.Context(), fix("ROOM"))
		return err == nil
	}, "no order is taken")
}

func TestJournalConfig(t *testing.T) {
	for _, c := range []struct {
		j    *Journal
		want string
	}{
		{nil, ""},
		{&Journal{Dir: "d"}, ""},
		{&Journal{Dir: "d", MaxBytes: MinJournal}, ""},
		{&Journal{}, `--journal: value ""`},
		{&Journal{Dir: "d", MaxBytes: 5}, "--journal-max-bytes: value 5, allowed: 0"},
	} {
		cfg := Config{Journal: c.j}
		if err := cfg.checkJournal(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.j, err, c.want)
		}
	}
}

// TestJournalStatsArePerPartition: room in the journal of one partition does not hide that another one is full, or fails.
func TestJournalStatsArePerPartition(t *testing.T) {
	ps := &partitions{process: &process{identity: identity{cfg: Config{Journal: &Journal{MaxBytes: MinJournal}}}}}
	s := &ps.journals
	s.room("p0", true)
	s.room("p1", false)
	s.failed("p0", errors.New("no room"))
	s.observe("p1", 1)
	if j := ps.journalStatus(); !j.Full || j.Error != "p0: no room" || !ps.journalSnapshot().Full {
		t.Errorf("p0 is full: %+v", j)
	}
	s.begun("p0")
	if j := ps.journalStatus(); j.Full || j.Error != "" {
		t.Errorf("p0 is written anew: %+v", j)
	}
}
