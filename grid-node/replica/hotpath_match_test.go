package replica_test

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// newMatchingPair is a pair whose orders of both sides, in turns, trade at one price.
func newMatchingPair(tb testing.TB) (p *pair, submit func()) {
	payload := seedOrder(tb)
	symbol, n, _ := order.Find(payload, 55)
	in := machine.Instrument{Instrument: match.Instrument{Tick: 1, Lot: 1, High: 1 << 21}, PriceDigits: 4, Symbol: string(payload[symbol:][:n]), State: match.Open}
	p = newPairOf(tb, payload, func(o *replica.Options) {
		o.Execution = &replica.Execution{Orders: 1 << 16, Instruments: []machine.Instrument{in}}
	})
	for range 10 { // the instrument is defined
		p.now.Mono += 20e6
		p.a.Step(p.now, &replica.Event{Kind: replica.EventTick}, &p.ao)
		p.exchange()
	}
	side, _, ok := order.Find(payload, 54)
	if !ok {
		tb.Fatal("the order has no side")
	}
	side += wire.SubmitFixed
	return p, func() {
		p.frame[side] ^= '1' ^ '2'
		p.submit()
	}
}

// TestHotPathOfMatchingDoesNotAllocate covers orders that rest and trade.
func TestHotPathOfMatchingDoesNotAllocate(t *testing.T) {
	p, submit := newMatchingPair(t)
	batch := func() {
		for range pairBatch {
			submit()
		}
		p.exchange()
		p.now.Mono += 1000
	}
	for range 200 {
		batch()
	}
	before, _ := p.a.Executed(p.a.Status().CommitSeq)
	p.acks = 0
	// Executions are held by the thousand, on both copies: some two allocations for six batches.
	if n := testing.AllocsPerRun(200, batch); n > 2 {
		t.Errorf("%v allocations for %d orders, want at most 2", n, pairBatch)
	}
	if p.acks != 201*pairBatch {
		t.Errorf("%d orders acknowledged, want %d", p.acks, 201*pairBatch)
	}
	after, _ := p.a.Executed(p.a.Status().CommitSeq)
	if made := after.ExecSeq - before.ExecSeq; made < 201*pairBatch*3/2 {
		t.Errorf("%d records of %d orders, want two or three for two", made, 201*pairBatch)
	}
}

// BenchmarkMatchToAck is BenchmarkSubmitToAck of orders that rest and trade, in wake-ups of 64.
func BenchmarkMatchToAck(b *testing.B) {
	p, submit := newMatchingPair(b)
	p.prefault(b.N)
	b.ReportAllocs()
	b.ResetTimer()
	user, system := cpuTime()
	for i := range b.N {
		submit()
		if (i+1)%64 == 0 || i == b.N-1 {
			p.exchange()
		}
	}
	reportCPU(b, user, system)
	if p.acks < b.N {
		b.Fatalf("%d of %d acknowledged", p.acks, b.N)
	}
}
