package client

import (
	"errors"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// The loss of data was accepted: the number of a lost order now belongs to another order. A read
// with the epoch of the receipt never returns that one.
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
	if !errors.Is(err, ErrOtherOrder) || !errors.As(err, &other) || !strings.HasPrefix(other.Found, "p0/2@5-") || other.Epoch != r.Epoch || !strings.Contains(err.Error(), "GetByClOrdID") {
		t.Fatalf("error %v, want that another order of epoch 5 has the id", err)
	}
	if o, err := c.Get(t.Context(), r.ID()); err != nil || o.ClOrdID != "T000002" || o.Epoch != 5 {
		t.Fatalf("order %+v, error %v, want the order that has the id now", o, err)
	}
	if err := c.GetAsync(r.ID(), func(*OrderView, error) {}, OfEpoch(1)); err == nil {
		t.Fatal("GetAsync accepted OfEpoch, which it cannot honour")
	}
}

// A grid recreated under its name counts epochs and numbers anew: only the hash distinguishes its
// order from the one of the receipt.
func TestAnIdOfAFormerGrid(t *testing.T) {
	g := newFakeGrid(t, 1)
	c := g.dial(t)
	r, err := openTest(t, c).Submit(t.Context(), testOrder(1))
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.Get(t.Context(), r.ID())
	if err != nil {
		t.Fatal(err)
	}
	r.Hash = o.Hash() // this node gives none
	if o, err := c.Get(t.Context(), r.ID(), Of(r)); err != nil || o.ClOrdID != "T000001" {
		t.Fatalf("order %+v, error %v, want the order of the receipt", o, err)
	}
	g.mu.Lock()
	g.orders[0] = fakeOrder{clientSeq: 1, payload: string(testOrder(2)), seq: r.Seq}
	g.mu.Unlock()
	if o, err := c.Get(t.Context(), r.ID(), OfEpoch(r.Epoch)); err != nil || o.ClOrdID != "T000002" {
		t.Fatalf("order %+v, error %v: want it found by the epoch alone, otherwise this test proves nothing", o, err)
	}
	if _, err := c.Get(t.Context(), r.ID(), Of(r)); !errors.Is(err, ErrOtherOrder) || !strings.Contains(err.Error(), r.Name()) {
		t.Fatalf("error %v, want that another order has the id of %s", err, r.Name())
	}
	id, of, err := ParseOrder(r.Name())
	if err != nil || id != r.ID() {
		t.Fatalf("%s: id %s, error %v", r.Name(), id, err)
	}
	if _, err := c.Get(t.Context(), id, of...); !errors.Is(err, ErrOtherOrder) {
		t.Fatalf("error %v, want that another order has the id", err)
	}
}

func TestParseOrder(t *testing.T) {
	id := wire.OrderID{Partition: 1, Seq: 17}
	for text, want := range map[string]entryOf{"p1/17": {}, "p1/17@3": {epoch: 3}, "p1/17@3-00000000000000ff": {3, 255}} {
		if got, of, err := ParseOrder(text); err != nil || got != id || meant(of) != want {
			t.Errorf("%s: %v of %v, error %v, want %v and %v", text, got, meant(of), err, id, want)
		}
	}
	for text, want := range map[string]string{
		"": "", "p1": "", "ORD@3": "",
		"p1/17@": "1 or more", "p1/17@0": "1 or more", "p1/17@x": "1 or more", "p1/17@3@4": "1 or more",
		"p1/17@3-": "16 hex digits", "p1/17@3-ff": "16 hex digits", "p1/17@3-000000000000000g": "16 hex digits", "p1/17@3-0000000000000000": "16 hex digits",
	} {
		if _, _, err := ParseOrder(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one that says %q", text, err, want)
		}
	}
}
