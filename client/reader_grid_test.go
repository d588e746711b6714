package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

func TestGridReader(t *testing.T) {
	g := testgrid.Run(t)
	c := dial(t, g)
	orders := map[string]client.Receipt{}
	for i := range 200 {
		id := fmt.Sprintf("ASYNC-%d", i)
		r, err := c.Submit(t.Context(), testgrid.Order(id, 305))
		if err != nil {
			t.Fatal(err)
		}
		orders[id] = r
	}
	for _, mode := range []client.ReadMode{client.Confirmed, client.Leased} {
		readers := map[wire.PartitionID]*client.Reader{}
		for _, p := range c.Table() {
			r, err := c.Reader(p.ID, client.WithMode(mode))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close() //nolint:errcheck // it never fails
			readers[p.ID] = r
		}
		var mu sync.Mutex
		n := 0
		for id, receipt := range orders {
			fix := testgrid.Order(id, 305)
			done := func(v *client.OrderView, err error) {
				mu.Lock()
				defer mu.Unlock()
				n++
				if err != nil || v.ID() != receipt.ID() || !bytes.Equal(v.FIX(), fix) || string(v.Symbol()) != "IBM" || string(v.Account()) != "ACC" || v.Epoch() != receipt.Epoch {
					t.Errorf("mode %d: order %s: error %v, got %v", mode, id, err, v)
				}
			}
			r := readers[receipt.Partition]
			for _, err := range []error{
				r.Enqueue(receipt.Seq, done), r.EnqueueByClOrdID([]byte(id), done),
				c.GetAsync(receipt.ID(), done, client.WithMode(mode)), c.GetByClOrdIDAsync([]byte(id), done, client.WithMode(mode)),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, r := range readers {
			if err := r.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		waitFor(t, func() bool { mu.Lock(); defer mu.Unlock(); return n == 4*len(orders) })
	}
	// A backup may be behind, but catches up, and is not the primary.
	for id, receipt := range orders {
		waitFor(t, func() bool {
			all := make(chan error, 1)
			err := c.GetByClOrdIDAsync([]byte(id), func(v *client.OrderView, err error) {
				if err == nil && (v.ID() != receipt.ID() || v.CommitSeq() < receipt.Seq) {
					err = fmt.Errorf("%s is %v at commit %d, want %v", id, v.ID(), v.CommitSeq(), receipt)
				}
				all <- err
			}, client.WithMode(client.Backup))
			if err == nil {
				err = <-all
			}
			if err != nil && !errors.Is(err, client.ErrNotFound) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
}

// TestGridReaderFailsOver: while primaries are killed, every read of an order
// that was acknowledged finds it.
func TestGridReaderFailsOver(t *testing.T) {
	g := testgrid.Run(t)
	c := dial(t, g, func(c *client.Config) { c.RequestTimeout = 30 * time.Second })
	part := c.Table()[0].ID
	var seqs []uint64
	for i := range 100 {
		r, err := c.SubmitTo(t.Context(), part, testgrid.Order(fmt.Sprintf("KEPT-%d", i), 305))
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, r.Seq)
	}
	r, err := c.Reader(part)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // it never fails
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	reads := 0
	go func() {
		defer close(over)
		for i := 0; ctx.Err() == nil; i++ {
			want := seqs[i%len(seqs)]
			err := r.GetAsync(want, func(v *client.OrderView, err error) {
				reads++
				if err != nil || v.ID().Seq != want {
					t.Errorf("read of entry %d: %v", want, err)
				}
			})
			if errors.Is(err, client.ErrWindowFull) {
				time.Sleep(100 * time.Microsecond)
			} else if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range 2 {
		waitForRedundancy(t, c)
		killPrimary(t, c, g)
		time.Sleep(200 * time.Millisecond)
	}
	waitForRedundancy(t, c)
	stop()
	<-over
	if err := r.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	st := r.Stats()
	if st.ReadsFailed != 0 || st.ReadsAnswered != st.Reads || reads == 0 {
		t.Fatalf("stats %+v after %d reads, want all answered", st, reads)
	}
	t.Logf("%d reads, %d connections, outages %v", reads, st.Connects, r.Outages())
}
