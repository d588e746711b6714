package replica_test

import (
	"slices"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/function"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// chainDecider is a chain as the node has it.
type chainDecider struct{ *function.Chain }

func (c chainDecider) Decide(nowNs int64, msg []byte, o *order.Order, d *replica.Decision) {
	out := c.Chain.Decide(nowNs, msg, o)
	*d = replica.Decision{Message: out.Message, Reason: out.Reason, Text: out.Text}
	if out.Parsed != nil {
		d.Fields = &out.Parsed.Fields
	}
}

func decider(tb testing.TB, stamp uint32, name string, bin []byte, opts function.Options) replica.Decider {
	tb.Helper()
	m, err := function.Load(tb.Context(), bin, function.Pre, opts)
	if err != nil {
		tb.Fatal(err)
	}
	c, err := function.NewChain(tb.Context(), []function.Callback{{Name: name, Module: m}}, stamp)
	if err != nil {
		tb.Fatal(err)
	}
	return chainDecider{c}
}

// BenchmarkDecide is an order's whole path through both replicas, 64 in a wake-up, without
// functions, with a check of five fields, and with a tag set in each: in turns, and the
// median batch of each, so that a busy machine disturbs all of them alike. What is added is the
// difference to none: at most 150 ns for the check of five fields.
func BenchmarkDecide(b *testing.B) {
	kinds := []struct {
		name string
		pre  replica.Decider
	}{
		{"none", nil},
		{"none-again", nil}, // what two equal ones differ by
		{"five-fields", decider(b, 0, "fat-finger", examples.FatFinger, function.Options{Config: []byte("quantity=1000000\nvalue=9000000000")})},
		{"tag-set", decider(b, 10002, "fat-finger", examples.FatFinger, function.Options{Config: []byte("quantity=1000000\nvalue=9000000000")})},
	}
	pairs := make([]*pair, len(kinds))
	for i, k := range kinds {
		pairs[i] = newPairOf(b, seedOrder(b), func(o *replica.Options) { o.Pre = k.pre })
	}
	took := make([][]time.Duration, len(kinds))
	b.ReportAllocs()
	for n := 0; n < b.N; n += pairBatch {
		for i, p := range pairs {
			began := time.Now()
			for range pairBatch {
				p.submit()
			}
			p.exchange()
			took[i] = append(took[i], time.Since(began))
		}
	}
	none := 0.0
	for i, p := range pairs {
		if p.acks < b.N {
			b.Fatalf("%s: %d of %d acknowledged", kinds[i].name, p.acks, b.N)
		}
		slices.Sort(took[i])
		each := float64(took[i][len(took[i])/2].Nanoseconds()) / pairBatch
		b.ReportMetric(each, kinds[i].name+"-ns/order")
		if i == 0 {
			none = each
			continue
		}
		b.ReportMetric(each-none, kinds[i].name+"-added-ns/order")
	}
	b.ReportMetric(0, "ns/op") // of all kinds together: of no use
}

// TestDecidedPathDoesNotAllocate: with a function that sets a tag in each order.
func TestDecidedPathDoesNotAllocate(t *testing.T) {
	pre := decider(t, 10002, "fat-finger", examples.FatFinger, function.Options{})
	p := newPairOf(t, seedOrder(t), func(o *replica.Options) { o.Pre = pre })
	batch := func() {
		for range pairBatch {
			p.submit()
		}
		p.exchange()
		p.now.Mono += 1000
	}
	for range 200 {
		batch()
	}
	if n := testing.AllocsPerRun(200, batch); n != 0 || p.acks != 401*pairBatch {
		t.Errorf("%v allocations for %d orders, want 0; %d acknowledged", n, pairBatch, p.acks)
	}
}
