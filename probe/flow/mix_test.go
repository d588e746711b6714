package flow

import (
	"math"
	"testing"
	"time"
)

// The mix and the lifetimes of a long step against the record. A step begins with no live order and
// ends with some, so cancels are a little fewer than new orders; and an order ends with the first
// event after its lifetime.
func TestMixIsTheRecords(t *testing.T) {
	o := reference(t)
	p := params(Hawkes, 1000)
	p.Measure = 300 * time.Second
	s := schedule(t, p)
	m := s.Messages()
	counts := map[Kind]float64{}
	var ended, within100ms, within1s float64
	for i := range m.Len() {
		kind := m.Kind(i)
		counts[kind]++
		if kind != Cancel {
			continue
		}
		life := time.Duration(s.Offset(i) - s.Offset(int64(m.events[i].root)))
		ended++
		if life <= 100*time.Millisecond {
			within100ms++
		}
		if life <= time.Second {
			within1s++
		}
	}
	for _, c := range []struct {
		what              string
		got, want, within float64
	}{
		{"new", counts[NewOrder] / float64(m.Len()), o.Mix.Created, 0.01},
		{"cancelled", counts[Cancel] / float64(m.Len()), o.Mix.Deleted, 0.01},
		{"replaced", counts[Replace] / float64(m.Len()), o.Mix.Changed, 0.0003},
		{"lives at most 100 ms", within100ms / ended, o.Lifetime.Within100ms, 0.03},
		{"lives at most 1 s", within1s / ended, o.Lifetime.Within1s, 0.03},
	} {
		t.Logf("%-21s %.4f, record %.4f", c.what, c.got, c.want)
		if math.Abs(c.got-c.want) > c.within {
			t.Errorf("%s: %.4f, the record has %.4f (within %.4f)", c.what, c.got, c.want, c.within)
		}
	}
}

// Cancels and replaces refer to an existing message of the same order that has not been cancelled
// or replaced before.
func TestEveryChangeHasItsOrder(t *testing.T) {
	s := schedule(t, params(Hawkes, 3000))
	checkChanges(t, s)
}

func checkChanges(t *testing.T, s *Schedule) {
	t.Helper()
	changed := map[int64]bool{}
	var m, target Message
	for i := range s.Messages().Len() {
		s.Messages().Message(i, &m)
		if m.Kind == NewOrder {
			if m.Target != -1 {
				t.Fatalf("new order %d has target %d", i, m.Target)
			}
			continue
		}
		if m.Target < 0 || m.Target >= i || changed[m.Target] {
			t.Fatalf("message %d (%c) refers to %d, which is invalid", i, m.Kind, m.Target)
		}
		changed[m.Target] = true
		s.Messages().Message(m.Target, &target)
		if target.Kind == Cancel || target.Symbol != m.Symbol || target.Side != m.Side {
			t.Fatalf("message %d: %+v refers to %+v", i, m, target)
		}
	}
}

func TestOrdersAreVaried(t *testing.T) {
	s := schedule(t, params(Steady, 5000))
	symbols, sides, types, n := map[string]float64{}, map[byte]float64{}, map[byte]float64{}, 0.
	var m Message
	for i := range s.Messages().Len() {
		if s.Messages().Message(i, &m); m.Kind != NewOrder {
			continue
		}
		n++
		symbols[m.Symbol]++
		sides[m.Side]++
		types[m.Type]++
		if m.Qty < 1 || (m.Price == 0) != (m.Type == '1') || (m.Stop == 0) != (m.Type != '4') {
			t.Fatalf("order %d: %+v", i, m)
		}
	}
	// Zipf over 500: the first has 1/H(500) = 14.7 %, the second half of that.
	if a, b := symbols["AAA"]/n, symbols["AAB"]/n; math.Abs(a-0.147) > 0.015 || math.Abs(b-0.0736) > 0.012 {
		t.Errorf("the first symbols have %.3f and %.3f of all orders", a, b)
	}
	if len(symbols) < 400 || len(sides) != 3 || len(types) != 3 || math.Abs(sides['1']/n-0.5) > 0.03 {
		t.Errorf("%d symbols, sides %v, types %v", len(symbols), sides, types)
	}
}

func TestLifetimeQuantiles(t *testing.T) {
	for _, c := range []struct{ u, seconds float64 }{{0.1, 0}, {0.4999, 0}, {0.809, 0.1}, {0.892, 1}, {0.9, 1.277}, {0.99, 36.683}} {
		if got := float64(lifetime(c.u)) / 1e9; math.Abs(got-c.seconds) > 1e-6*(1+c.seconds) {
			t.Errorf("at %v: %v s, want %v", c.u, got, c.seconds)
		}
	}
}

// A message costs a publishing thread no allocation.
func TestMessageDoesNotAllocate(t *testing.T) {
	s := schedule(t, params(Hawkes, 1000))
	var m Message
	i := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		s.Messages().Message(i, &m)
		i++
	}); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}
