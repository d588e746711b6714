package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/internal/linear"
)

// keyWorker is a client of the keys of a region that records what it asked for and what it got.
type keyWorker struct {
	n     int
	r     *client.Region
	rng   *rand.Rand
	began time.Time
	last  map[string]uint64 // the version that it saw last of a key
	ops   []linear.KeyedOp
	lost  int
}

// step makes one operation on a key. Every seventh may take a moment only, so that the outcome of some is not known.
func (w *keyWorker) step(ctx context.Context, key string) error {
	o := linear.KeyedOp{Client: w.n, Key: key, Kind: linear.KeyedKind(1 + w.rng.IntN(5))}
	if len(w.ops)%7 == 0 && o.Kind != linear.Read {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 200*time.Microsecond)
		defer cancel()
	}
	o.Call = int64(time.Since(w.began))
	err := w.do(ctx, &o)
	o.Return = int64(time.Since(w.began))
	var condition *client.ConditionError
	switch {
	case errors.As(err, &condition):
		o.Refused, o.Version = true, condition.Version
	case errors.Is(err, client.ErrNotFound):
		o.Version, o.Value, o.Found = 0, "", false
	case err != nil && o.Kind == linear.Read || errors.Is(err, client.ErrNotSent):
		return nil // it proves nothing
	case errors.Is(err, client.ErrUnknownOutcome):
		o.Return = linear.Never
		w.lost++
	case err != nil:
		return fmt.Errorf("%v: %w", &o, err)
	}
	if o.Return != linear.Never {
		w.last[key] = o.Version
	}
	w.ops = append(w.ops, o)
	return nil
}

func (w *keyWorker) do(ctx context.Context, o *linear.KeyedOp) error {
	key := []byte(o.Key)
	var receipt client.Receipt
	var err error
	switch o.Kind {
	case linear.Put:
		o.Value = fmt.Sprintf("%d-%d", w.n, len(w.ops))
		if w.rng.IntN(2) == 0 {
			receipt, err = w.r.Put(ctx, key, []byte(o.Value))
			break
		}
		at := w.last[o.Key]
		o.If = &at
		receipt, err = w.r.PutIf(ctx, key, []byte(o.Value), at)
	case linear.Patch:
		o.Value = "+"
		receipt, err = w.r.Patch(ctx, key, 0, []byte(o.Value))
	case linear.Remove:
		o.Found, err = w.r.Remove(ctx, key)
	case linear.Take:
		var v []byte
		v, _, err = w.r.Take(ctx, key)
		o.Found, o.Value = err == nil, string(v)
	default:
		var e client.Entry
		e, err = w.r.Get(ctx, key)
		o.Value, o.Version = string(e.Value), e.Version
	}
	if o.Kind == linear.Put || o.Kind == linear.Patch {
		o.Version = receipt.Seq
	}
	return err
}

// What clients see of the keys of a region can be explained by one copy that does one thing at a time, while primaries are
// killed and some calls end before their answer.
func TestGridRegionsAreLinearizable(t *testing.T) {
	g := regions(t)
	c := dial(t, g)
	r := c.Region("positions")
	const workers, keys, each = 6, 4, 60 // calls of a key before the next one takes its place, so that the check ends
	var (
		stop  atomic.Bool
		calls atomic.Int64
		wg    sync.WaitGroup
		all   [workers]*keyWorker
		began = time.Now()
	)
	for n := range workers {
		w := &keyWorker{n: n, r: r, rng: rand.New(rand.NewPCG(uint64(n), rand.Uint64())), began: began, last: map[string]uint64{}}
		all[n] = w
		wg.Go(func() {
			for !stop.Load() {
				i := calls.Add(1)
				if err := w.step(t.Context(), fmt.Sprintf("key-%d-%d", i%keys, i/(keys*each))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2 {
		waitForRedundancy(t, c)
		time.Sleep(100 * time.Millisecond) // some traffic at full redundancy
		killPrimary(t, c, g)
	}
	waitForRedundancy(t, c)
	stop.Store(true)
	wg.Wait()
	var ops []linear.KeyedOp
	lost := 0
	for _, w := range all {
		ops, lost = append(ops, w.ops...), lost+w.lost
	}
	if err := linear.CheckKeyed(ops); err != nil {
		t.Error(err)
	}
	if lost == 0 {
		t.Error("no call ended before its answer: that was not tested")
	}
	t.Logf("%d operations, %d without an answer", len(ops), lost)
	// The control: a read of what no call has written is found.
	for i := range ops {
		if o := &ops[i]; o.Kind == linear.Read && o.Version != 0 {
			if o.Value += "?"; linear.CheckKeyed(ops) == nil {
				t.Error("a read of a value that the key did not have was not found")
			}
			return
		}
	}
	t.Error("no read found a value")
}
