package match

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"strconv"
	"testing"

	"github.com/ordergrid/ordergrid/internal/race"
)

// The flows of the public benchmark flash1-dev/matching-engine-benchmark, made here from
// its published parameters (docs/METHODOLOGY.md, workload/scenarios.json), and the SHA-256
// of the reports that it publishes for them (reference/correctness_hash.txt): a million
// new orders each, seed 23.
var published = []struct {
	name              string
	volatility, swing float64
	sum               string
}{
	{"static", 0, 0, "9803843ee404fc29c9a0aa5614f8f0d5a58b5c44fcac9ef89067886fcaaa30d1"},
	{"normal", 0.15, 0.02, "e9b2e3926854410b01a035aeb25dd05f1e597c233be8263de9eb49b6713d367e"},
	{"swing-25", 0.50, 0.25, "61a84be9469661bd039e00dbc9a7c011e70b6ace37aadfe60045ea083b05f4df"},
	{"swing-40", 0.50, 0.40, "3cb0175e7982ff09ea220d1feaee3844cf9116a5ce455757879dea1d880b9b9f"},
	{"flash-crash", 0.50, 0.60, "cff8d3f94b709fc64a8b2058a6ca4fb6920364904796e46906895e362d2bb16b"},
}

// TestPublishedFlowsEveryByte runs the engine on the five flows. Its records, written in
// the words of the benchmark, have the published hashes. Without the race detector, under
// which it takes minutes.
func TestPublishedFlowsEveryByte(t *testing.T) {
	if race.Enabled || testing.Short() {
		t.Skip("runs without the race detector")
	}
	for _, p := range published {
		t.Run(p.name, func(t *testing.T) {
			h := sha256.New()
			r := reports{out: h}
			r.run(t, benchmarkFlow(p.volatility, p.swing, 1_000_000))
			if got := fmt.Sprintf("%x", h.Sum(nil)); got != p.sum {
				t.Errorf("SHA-256 %s, published %s; %d reports", got, p.sum, r.lines)
			}
			t.Logf("%d messages, %d reports, %d fills, %d orders at most", r.messages, r.lines, r.fills, r.most)
		})
	}
}

// twister is the Mersenne Twister MT19937, after Matsumoto and Nishimura (1998).
type twister struct {
	state [624]uint32
	next  int
}

func newTwister(seed uint32) *twister {
	m := &twister{next: 624}
	m.state[0] = seed
	for i := 1; i < 624; i++ {
		m.state[i] = 1812433253*(m.state[i-1]^m.state[i-1]>>30) + uint32(i)
	}
	return m
}

func (m *twister) uint32() uint32 {
	if m.next == 624 {
		for i := range m.state {
			y := m.state[i]&0x80000000 | m.state[(i+1)%624]&0x7fffffff
			m.state[i] = m.state[(i+397)%624] ^ y>>1 ^ y&1*0x9908b0df
		}
		m.next = 0
	}
	y := m.state[m.next]
	m.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// uniform draws from [0, 1) with 53 bits.
func (m *twister) uniform() float64 {
	hi, lo := m.uint32()>>5, m.uint32()>>6
	return float64(uint64(hi)<<26|uint64(lo)) / (1 << 53)
}

func (m *twister) between(lo, hi uint32) uint32 { return lo + uint32(m.uniform()*float64(hi-lo+1)) }

func (m *twister) normal() float64 {
	a, b := m.uniform(), m.uniform()
	return math.Sqrt(-2*math.Log(max(a, 1e-300))) * math.Cos(2*math.Pi*b)
}

// message of the benchmark.
type message struct {
	kind  OpKind
	side  Side
	ioc   bool
	qty   uint32
	id    uint64
	price int64
}

// benchmarkFlow returns the messages of a scenario. Their times rise as they are made, so
// they need no sorting.
func benchmarkFlow(volatility, swing float64, count int) []message {
	m := newTwister(23)
	placed := placeOrders(m, volatility, swing, count)
	arrival := make([]int, count)
	for i := range arrival {
		arrival[i] = i
	}
	for i := count - 1; i > 0; i-- {
		j := m.between(0, uint32(i))
		arrival[i], arrival[j] = arrival[j], arrival[i]
	}
	list := make([]message, 0, 2*count+count/10)
	for _, n := range arrival {
		list = lifecycle(m, list, placed[n])
	}
	return list
}

// placeOrders prices the orders: buys below the first half of a path of the middle, sells
// above the second.
func placeOrders(m *twister, volatility, swing float64, count int) (placed []message) {
	const tick, start = 0.005, 167.52
	depth := make([]float64, 800)
	sum := 0.0
	for k := range depth {
		z := float64(k) - 8
		sum += 1/math.Pow(float64(k)+1, 2.23) + float64(5*math.Exp(-0.5*z*z))
		depth[k] = sum
	}
	step := 0.0
	if volatility > 0 {
		step = volatility * math.Sqrt(math.Pow(swing/volatility, 2)/float64(count))
	}
	mid := start
	for i := range count {
		mid *= math.Exp(float64(-0.5*step*step) + float64(step*m.normal()))
		at := int64(math.Round(mid / tick))
		x, k := m.uniform()*sum, 0
		for hi := len(depth); k < hi; {
			if c := (k + hi) / 2; depth[c] < x {
				k = c + 1
			} else {
				hi = c
			}
		}
		o := message{kind: Enter, side: Buy, id: uint64(i + 1), price: at - int64(k) - 1}
		if i >= count/2 {
			o.side, o.price = Sell, at+int64(k)+1
		}
		o.price = max(o.price, 1)
		o.qty = m.between(1, 100)
		placed = append(placed, o)
	}
	return placed
}

// lifecycle appends an order and what its owner does with it.
func lifecycle(m *twister, list []message, o message) []message {
	o.ioc = m.uniform() < 0.15
	list = append(list, o)
	if o.ioc {
		return list
	}
	change, cancel := o, message{kind: Cancel, side: o.side, id: o.id}
	change.kind, change.qty = Replace, o.qty+1
	modified := m.uniform() < 0.20
	if modified {
		m.uniform() // when
		if m.uniform() < 0.80 {
			change.price += map[Side]int64{Buy: 1, Sell: -1}[o.side]
		}
		list = append(list, change)
	}
	if m.uniform() >= 0.95 {
		return list
	}
	m.uniform() // when
	list = append(list, cancel)
	if m.uniform() < 0.02 {
		m.uniform()
		list = append(list, cancel)
	}
	if modified && m.uniform() < 0.02 {
		m.uniform()
		list = append(list, change)
	}
	return list
}

// reports writes the engine's records in the benchmark's words.
type reports struct {
	out                          io.Writer
	line                         []byte
	lines, fills, messages, most int
}

func (r *reports) run(t *testing.T, flow []message) {
	e, err := New(Config{Orders: 1 << 17, Pages: 1 << 16, Books: 1, Work: 1 << 16})
	if err == nil {
		err = e.Define(0, Instrument{Tick: 1, Lot: 1, Low: 0, High: 1 << 20, Ref: 33504})
	}
	if err != nil {
		t.Fatal(err)
	}
	out := make([]Record, 0, e.MaxRecords())
	e.Apply(&Op{Kind: SetState, State: Open}, out)
	for seq, m := range flow {
		op := Op{Kind: m.kind, ID: m.id, Side: m.side, Type: Limit, Price: m.price, Qty: int64(m.qty)}
		if m.kind != Enter {
			op.ID, op.Orig = 0, m.id
			o, _ := e.Find(m.id) // its quantity is of what is left, FIX's of the whole order
			op.Qty += o.Cum
		}
		price := m.price
		if m.kind == Cancel {
			o, _ := e.Find(m.id)
			price = o.Price
		}
		if m.ioc {
			op.TIF = IOC
		}
		out = e.Apply(&op, out[:0])
		r.write(uint64(seq), m, price, out)
		r.most = max(r.most, e.Resting())
	}
	r.messages = len(flow)
}

// write writes what follows from a message, sorted by the number of the kind.
func (r *reports) write(seq uint64, m message, price int64, out []Record) {
	side := uint64(m.side - Buy)
	for kind := range uint64(6) {
		for i := range out {
			switch o := &out[i]; {
			case kind == 0 && o.Kind == Accepted:
				r.put(kind, seq, side, m.id, uint64(o.Price), uint64(o.Qty))
			case kind == 1 && o.Kind == Filled && o.Flags&Passive == 0:
				r.put(kind, seq, uint64(o.Price), uint64(o.Qty), o.Other, o.Order)
				r.fills++
			case kind == 2 && o.Kind == Cancelled:
				r.put(kind, seq, side, m.id, uint64(price))
			case kind == 3 && o.Kind == Replaced:
				r.put(kind, seq, side, m.id, uint64(o.Price), uint64(m.qty))
			case kind == 4 && o.Kind == CancelRejected && m.kind == Cancel, kind == 5 && o.Kind == CancelRejected && m.kind == Replace:
				r.put(kind, seq, m.id)
			}
		}
	}
}

func (r *reports) put(fields ...uint64) {
	r.line = r.line[:0]
	if r.lines > 0 {
		r.line = append(r.line, '\n')
	}
	for i, f := range fields {
		if i > 0 {
			r.line = append(r.line, ',')
		}
		r.line = strconv.AppendUint(r.line, f, 10)
	}
	r.lines++
	r.out.Write(r.line)
}
