package bridge_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/gateway/sink/bridge"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// both are the arguments of a grid that counts orders and has a region for bridges.
func both(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	count, regions := filepath.Join(dir, "count.wasm"), filepath.Join(dir, "regions.yaml")
	for name, b := range map[string][]byte{count: examples.CountAccounts, regions: []byte("memory: 16Mi\nregions: [{name: bridge}]\n")} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"--external-sink", "bridge", "--", "--regions", regions,
		"--function-post", fmt.Sprintf("count=%s:sha256=%x", count, sha256.Sum256(examples.CountAccounts))}
}

// brought are the records of each partition of the source, in the order in which they are in
// the log of the other grid; whole entries of it, in the order of its positions.
type brought struct {
	records map[string][]wire.Record // by key
	through map[string]uint64
	values  int
}

func read(t *testing.T, c *client.Client) *brought {
	t.Helper()
	b := &brought{records: map[string][]wire.Record{}, through: map[string]uint64{}}
	for p := range c.Table() {
		_, err := c.ReadLog(t.Context(), wire.PartitionID(p), "", 1, func(e client.LogEntry) error {
			k, value, ok := bridge.FromEntry(&e)
			if !ok {
				return nil
			}
			key := string(k)
			v, err := bridge.Parse(value)
			if err != nil {
				return err
			}
			if v.Through.Seq < b.through[key] {
				return fmt.Errorf("%s: position %d behind %d", key, v.Through.Seq, b.through[key])
			}
			for _, r := range v.Records {
				if r.Entry > v.Through.Seq || r.Entry <= b.through[key] {
					return fmt.Errorf("%s: a record of entry %d between positions %d and %d", key, r.Entry, b.through[key], v.Through.Seq)
				}
				r.Bytes = append([]byte(nil), r.Bytes...)
				b.records[key] = append(b.records[key], r)
			}
			b.through[key] = v.Through.Seq
			b.values++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// awaits waits until what is brought covers entries of the source.
func awaits(t *testing.T, c *client.Client, last map[wire.PartitionID]uint64) (b *brought) {
	t.Helper()
	downstream.WaitFor(t, "the bridge", func() bool {
		b = read(t, c)
		for p, seq := range last {
			if b.through[string(bridge.Key("dev", "bridge", p))] < seq {
				return false
			}
		}
		return true
	})
	return b
}

// check: of each order there is one record, in order. The function counts the orders of a
// partition, so a record that is missing, twice or at another place has another count.
func (b *brought) check(t *testing.T, acked map[wire.OrderID]string) {
	t.Helper()
	found := map[wire.OrderID]bool{}
	for key, records := range b.records {
		p, err := wire.ParsePartitionID(key[strings.LastIndexByte(key, '/')+1:])
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range records {
			if r.Function != "count" || r.Fault != 0 || len(r.Bytes) < 32 {
				t.Fatalf("%s: record %+v", key, r)
			}
			if n := binary.LittleEndian.Uint64(r.Bytes[24:]); n != uint64(i)+1 {
				t.Fatalf("%s: record %d counts %d orders", key, i, n)
			}
			found[wire.OrderID{Partition: p, Seq: r.Entry}] = true
		}
	}
	for id := range acked {
		if !found[id] {
			t.Fatalf("order %s was acknowledged, and no record of it was brought", id)
		}
	}
	t.Logf("%d records in %d values", len(found), b.values)
}

// TestGridKilled: primaries of both grids are killed under load, and the bridge. Of each order
// that was acknowledged the other log has the record once, in order.
func TestGridKilled(t *testing.T) {
	kills := downstream.Kills(t, 3)
	args := both(t)
	g, other := testgrid.Run(t, args...), testgrid.Run(t, args...)
	c, to := downstream.Dial(t, g), downstream.Dial(t, other)
	begin := func() *downstream.Sink {
		return downstream.StartSink(t, g, "bridge", "bridge", "--to", strings.Join(other.Endpoints, ","), "--to-grid", "dev")
	}
	s := begin()
	acked, last := downstream.KillUnderLoad(t, c, g, kills, 100, func(i int) {
		if i%3 == 1 {
			s.Kill()
			s = begin()
		} else {
			downstream.WaitForCopies(t, to)
			downstream.KillPrimary(t, to, other, to.Table()[i%len(to.Table())].ID)
		}
	})
	awaits(t, to, last).check(t, acked)
	s.Stop()
}

// TestCircle: a bridge from a grid to itself, and one each way between two, bring each record
// once and no more: no function is called for what is brought.
func TestCircle(t *testing.T) {
	args := both(t)
	g := testgrid.Run(t, args...)
	c := downstream.Dial(t, g)
	s := downstream.StartSink(t, g, "bridge", "bridge", "--to", strings.Join(g.Endpoints, ","))
	load := downstream.StartLoad(t, c, 4)
	downstream.WaitFor(t, "500 orders", func() bool { return load.Count() > 500 })
	acked := load.Stop()
	last := map[wire.PartitionID]uint64{}
	for id := range acked {
		last[id.Partition] = max(last[id.Partition], id.Seq)
	}
	b := awaits(t, c, last)
	b.check(t, acked)
	time.Sleep(2 * time.Second) // as long as a circle takes to turn hundreds of times
	if again := read(t, c); again.values > b.values+1 {
		t.Errorf("%d values, and %d two seconds later without orders", b.values, again.values)
	}
	s.Stop()
}

// TestFenced: what a writer would have put comes to nothing once another one was opened.
func TestFenced(t *testing.T) {
	args := both(t)
	g := testgrid.Run(t, args...)
	c := downstream.Dial(t, g)
	o := bridge.Options{Source: c, To: downstream.Dial(t, g), Grid: "dev", Sink: "bridge", Region: bridge.DefaultRegion}
	open := func() sink.Writer {
		target, err := bridge.New(o)
		if err != nil {
			t.Fatal(err)
		}
		w, err := target.Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if _, err := c.Submit(t.Context(), testgrid.Order("FIRST", 305)); err != nil {
		t.Fatal(err)
	}
	first := open()
	batch := func(from uint64) *sink.Batch {
		b := &sink.Batch{From: from}
		end, err := c.ReadLog(t.Context(), 0, "", from, func(e client.LogEntry) error {
			e.Bytes = append([]byte(nil), e.Bytes...)
			b.Entries = append(b.Entries, e)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		b.Through = client.Position{Seq: end.CommitSeq, Hash: 1, Lineage: 1}
		return b
	}
	second := open()
	if err := first.Write(t.Context(), batch(1)); err == nil || !strings.Contains(err.Error(), "fenced") {
		t.Fatalf("the first writer: %v, want that it is fenced", err)
	}
	if err := second.Write(t.Context(), batch(1)); err != nil {
		t.Fatal(err)
	}
	o.Region = "nothing"
	target, err := bridge.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := target.Open(ctx, 0); err == nil || !strings.Contains(err.Error(), "spec.regions") {
		t.Errorf("a region that is not there: %v", err)
	}
}
