package client

import (
	"errors"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// The loss of data was accepted: the number of an order that was lost is another order's
// now. Asked for with the epoch of the receipt, it is never answered with that one.
func TestAnIdOfAnOrderThatWasLost(t *testing.T) {
	g := newFakeGrid(t, 1)
	c := g.dial(t)
	s := openTest(t, c)
	r, err := s.Submit(t.Context(), testOrder(1))
	if err != nil {
		t.Fatal(err)
	}
	if o, err := c.Get(t.Context(), r.ID(), OfEpoch(r.Epoch)); err != nil || o.ClOrdID != "T000001" {
		t.Fatalf("order %+v, error %v, want the order of the receipt", o, err)
	}
	g.mu.Lock()
	g.orders[0] = fakeOrder{clientSeq: 1, payload: string(testOrder(2)), seq: r.Seq, epoch: 5}
	g.mu.Unlock()
	_, err = c.Get(t.Context(), r.ID(), OfEpoch(r.Epoch), WithMode(Leased))
	var other *OtherOrderError
	if !errors.Is(err, ErrOtherOrder) || !errors.As(err, &other) || other.Found != 5 || other.Epoch != r.Epoch || !strings.Contains(err.Error(), "GetByClOrdID") {
		t.Fatalf("error %v, want that another order of epoch 5 has the id", err)
	}
	if o, err := c.Get(t.Context(), r.ID()); err != nil || o.ClOrdID != "T000002" || o.Epoch != 5 {
		t.Fatalf("order %+v, error %v, want the order that has the id now", o, err)
	}
	if err := c.GetAsync(r.ID(), func(*OrderView, error) {}, OfEpoch(1)); err == nil {
		t.Fatal("GetAsync took OfEpoch and would not keep to it")
	}
}

func TestParseOrder(t *testing.T) {
	id := wire.OrderID{Partition: 1, Seq: 17}
	for text, want := range map[string]uint64{"s0p1/17": 0, "s0p1/17@3": 3} {
		if got, of, err := ParseOrder(text); err != nil || got != id || epochAsked(of) != want {
			t.Errorf("%s: %v epoch %d, error %v, want %v and %d", text, got, epochAsked(of), err, id, want)
		}
	}
	for _, text := range []string{"", "s0p1", "s0p1/17@", "s0p1/17@0", "s0p1/17@x", "s0p1/17@3@4", "ORD@3"} {
		if _, _, err := ParseOrder(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
