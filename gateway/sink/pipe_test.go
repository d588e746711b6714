package sink

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

var errBroken = errors.New("broken")

// entries are a follower's batch of these kinds, from seq on.
func entries(seq uint64, kinds ...order.Kind) *client.FollowBatch {
	b := &client.FollowBatch{From: seq}
	for _, k := range kinds {
		fix := testgrid.Order(fmt.Sprint("ID-", seq), 305)
		e := order.Entry{Kind: k, Seq: seq, TimeNs: int64(seq), Size: uint32(order.HeaderSize + len(fix))}
		bytes := make([]byte, order.HeaderSize, e.Size)
		e.Put(bytes)
		bytes = append(bytes, fix...)
		b.Entries = append(b.Entries, client.LogEntry{Entry: e, Bytes: bytes})
		b.Through = client.Position{Seq: seq, Hash: order.Hash(bytes), Lineage: 5}
		seq++
	}
	return b
}

const k = order.KindOrder

// A batch that does not fit is split, and both parts say where they end.
func TestPipeSplits(t *testing.T) {
	x := newPipe(3, limits{entries: 2, bytes: 1 << 20})
	b := entries(7, k, k, order.KindNoop)
	put := make(chan error)
	go func() { put <- x.put(t.Context(), b) }()
	first, err := x.take(t.Context(), nil)
	if err != nil || first.batch.From != 7 || len(first.batch.Entries) != 2 || first.batch.Orders != 2 || first.batch.Partition != 3 {
		t.Fatalf("%+v, %v", first.batch, err)
	}
	if want := (client.Position{Seq: 8, Hash: order.Hash(b.Entries[1].Bytes), Lineage: 5}); first.batch.Through != want {
		t.Errorf("through %+v, want %+v", first.batch.Through, want)
	}
	if err := <-put; err != nil {
		t.Fatal(err)
	}
	b.Entries[2].Bytes[0]++ // the follower's memory is used again
	second, err := x.take(t.Context(), first)
	if err != nil || second.batch.From != 9 || second.batch.Through != b.Through || second.batch.Orders != 0 {
		t.Fatalf("%+v, %v", second.batch, err)
	}
	if order.Hash(second.batch.Entries[0].Bytes) != b.Through.Hash {
		t.Error("an entry was not copied")
	}
}

// put waits while both buffers are taken, and is released by the end of its context.
func TestPipeHoldsBack(t *testing.T) {
	x := newPipe(0, limits{entries: 1, bytes: 1 << 20})
	if err := x.put(t.Context(), entries(1, k)); err != nil {
		t.Fatal(err)
	}
	if _, err := x.take(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := x.put(ctx, entries(2, k, k)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("put into full buffers: %v", err)
	}
}

// What is only bookkeeping waits for orders; what was put before the end is still written.
func TestPipeQuiet(t *testing.T) {
	x := newPipe(0, limits{entries: 100, bytes: 1 << 20, quiet: time.Hour})
	if err := x.put(t.Context(), entries(1, order.KindReader, order.KindTruncate)); err != nil {
		t.Fatal(err)
	}
	if b, wait, err := x.tryTake(); b != nil || wait <= 0 || err != nil {
		t.Errorf("bookkeeping was taken: %+v, %v", b, err)
	}
	if err := x.put(t.Context(), entries(3, k)); err != nil {
		t.Fatal(err)
	}
	b, err := x.take(t.Context(), nil)
	if err != nil || len(b.batch.Entries) != 3 || b.oldest != 3 {
		t.Fatalf("%+v, %v", b, err)
	}
	if err := x.put(t.Context(), entries(4, order.KindReader)); err != nil {
		t.Fatal(err)
	}
	x.end(errBroken)
	if b, err = x.take(t.Context(), b); err != nil || b.batch.From != 4 {
		t.Fatalf("%+v, %v", b, err)
	}
	if _, err = x.take(t.Context(), b); !errors.Is(err, errBroken) {
		t.Errorf("after the end: %v", err)
	}
}

// Buffers of the same size are filled without memory of their own.
func TestPipeAllocs(t *testing.T) {
	x := newPipe(0, limits{entries: 4096, bytes: 8 << 20})
	b := entries(1, make([]order.Kind, 1000)...)
	for i := range b.Entries {
		b.Entries[i].Kind = k
	}
	var done *buffer
	var err error
	round := func() {
		if err = x.put(t.Context(), b); err == nil {
			done, err = x.take(t.Context(), done)
		}
	}
	round()
	round()
	if n := testing.AllocsPerRun(100, round); n > 0 || err != nil {
		t.Errorf("%v allocations a batch, want none; %v", n, err)
	}
}

func TestPauses(t *testing.T) {
	p := usualPauses
	least := func(int64) int64 { return 0 }
	most := func(n int64) int64 { return n - 1 }
	for _, c := range []struct {
		kind     string
		n        int
		min, max time.Duration
	}{
		{kindWrite, 1, 100 * time.Millisecond, 200 * time.Millisecond},
		{kindWrite, 4, 100 * time.Millisecond, 1600 * time.Millisecond},
		{kindOpen, 7, 100 * time.Millisecond, 10 * time.Second},
		{kindOpen, 1000000, 100 * time.Millisecond, 10 * time.Second},
		{kindFenced, 1, 10 * time.Second, 15 * time.Second},
		{kindPermanent, 9, 30 * time.Second, 30 * time.Second},
	} {
		if a, b := p.after(c.kind, c.n, least), p.after(c.kind, c.n, most); a != c.min || b != c.max {
			t.Errorf("%s, failure %d: %s..%s, want %s..%s", c.kind, c.n, a, b, c.min, c.max)
		}
	}
}
