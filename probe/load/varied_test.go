package load

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/flow"
)

// recorder keeps submitted orders.
type recorder struct {
	mu  sync.Mutex
	got map[int64][]byte
}

func (r *recorder) Submit(_ context.Context, fix []byte) (Receipt, error) {
	off := bytes.Index(fix, []byte("\x0111=")) + 4
	_, index, _ := fixorder.ParseID(fix[off : off+fixorder.IDSize])
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got[index] = bytes.Clone(fix)
	return Receipt{Seq: uint64(len(r.got)), Epoch: 1, Copies: 2}, nil
}

func (*recorder) Fate(error) Fate { return Unknown }

// The threads of a bursty step send the messages that the check of the log expects; a step of the
// one published order may follow.
func TestVariedMessagesAreSent(t *testing.T) {
	s, err := flow.New(flow.Params{Arrival: flow.Arrival{Type: flow.Hawkes}.Defaulted(), Varied: true, Rate: 3000, Measure: 300 * time.Millisecond, Probes: 1})
	if err != nil {
		t.Fatal(err)
	}
	to := &recorder{got: map[int64][]byte{}}
	p := &Probe{Name: "A", ID: fixorder.ID{Run: 7}, Version: fixorder.FIX44, Threads: []Submitter{to, to, to}}
	check, err := fixorder.NewVaried(fixorder.FIX44, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	const first = 50
	check.Use(first, s.Messages())
	orders := make([]Order, s.Messages().Len())
	out, err := p.Run(context.Background(), Step{Schedule: s, Start: clock.Now() + 1e6, First: first, Messages: s.Messages(), DrainLimit: 10 * time.Second}, orders)
	if err != nil || out.Created != int64(len(orders)) || len(to.got) != len(orders) {
		t.Fatalf("%+v, %v, %d received", out, err, len(to.got))
	}
	for index, fix := range to.got {
		if err := check.Check(index, fix); err != nil {
			t.Fatalf("message %d: %v", index, err)
		}
	}
	clear(to.got)
	if _, err := p.Run(context.Background(), Step{Schedule: s, Start: clock.Now() + 1e6, First: 10_000, DrainLimit: 10 * time.Second}, orders[:5]); err != nil {
		t.Fatal(err)
	}
	for index, fix := range to.got {
		if err := fixorder.Check(fix); err != nil {
			t.Fatalf("order %d: %v", index, err)
		}
	}
	if _, err := p.Run(context.Background(), Step{Schedule: s, Messages: s.Messages()}, make([]Order, len(orders)+1)); err == nil {
		t.Error("more orders than messages accepted")
	}
}
