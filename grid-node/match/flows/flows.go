// Package flows makes the flows of the public benchmark flash1-dev/matching-engine-benchmark, and the reports that an
// engine has to write for them, byte for byte.
package flows

import (
	"io"
	"math"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/match"
)

// Flow is one of them.
type Flow struct {
	Name              string
	Volatility, Swing float64
	Sum               string
}

// Published are the flows of the public benchmark flash1-dev/matching-engine-benchmark, made here from
// its published parameters (docs/METHODOLOGY.md, workload/scenarios.json), and the SHA-256
// of the reports that it publishes for them (reference/correctness_hash.txt): a million
// new orders each, seed 23.
var Published = []Flow{
	{"static", 0, 0, "9803843ee404fc29c9a0aa5614f8f0d5a58b5c44fcac9ef89067886fcaaa30d1"},
	{"normal", 0.15, 0.02, "e9b2e3926854410b01a035aeb25dd05f1e597c233be8263de9eb49b6713d367e"},
	{"swing-25", 0.50, 0.25, "61a84be9469661bd039e00dbc9a7c011e70b6ace37aadfe60045ea083b05f4df"},
	{"swing-40", 0.50, 0.40, "3cb0175e7982ff09ea220d1feaee3844cf9116a5ce455757879dea1d880b9b9f"},
	{"flash-crash", 0.50, 0.60, "cff8d3f94b709fc64a8b2058a6ca4fb6920364904796e46906895e362d2bb16b"},
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

// Message of the benchmark.
type Message struct {
	kind  match.OpKind
	side  match.Side
	ioc   bool
	qty   uint32
	id    uint64
	price int64
}

// Messages returns the messages of a scenario. Their times rise as they are made, so
// they need no sorting.
func (f *Flow) Messages(count int) []Message {
	m := newTwister(23)
	placed := placeOrders(m, f.Volatility, f.Swing, count)
	arrival := make([]int, count)
	for i := range arrival {
		arrival[i] = i
	}
	for i := count - 1; i > 0; i-- {
		j := m.between(0, uint32(i))
		arrival[i], arrival[j] = arrival[j], arrival[i]
	}
	list := make([]Message, 0, 2*count+count/10)
	for _, n := range arrival {
		list = lifecycle(m, list, placed[n])
	}
	return list
}

// placeOrders prices the orders: buys below the first half of a path of the middle, sells
// above the second.
func placeOrders(m *twister, volatility, swing float64, count int) (placed []Message) {
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
		o := Message{kind: match.Enter, side: match.Buy, id: uint64(i + 1), price: at - int64(k) - 1}
		if i >= count/2 {
			o.side, o.price = match.Sell, at+int64(k)+1
		}
		o.price = max(o.price, 1)
		o.qty = m.between(1, 100)
		placed = append(placed, o)
	}
	return placed
}

// lifecycle appends an order and what its owner does with it.
func lifecycle(m *twister, list []Message, o Message) []Message {
	o.ioc = m.uniform() < 0.15
	list = append(list, o)
	if o.ioc {
		return list
	}
	change, cancel := o, Message{kind: match.Cancel, side: o.side, id: o.id}
	change.kind, change.qty = match.Replace, o.qty+1
	modified := m.uniform() < 0.20
	if modified {
		m.uniform() // when
		if m.uniform() < 0.80 {
			change.price += map[match.Side]int64{match.Buy: 1, match.Sell: -1}[o.side]
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

// Reports are what an engine of its own writes for a flow, in the words of the benchmark.
type Reports struct {
	Lines, Fills, Most int           // Most orders were in the book
	Took               time.Duration // the engine alone, without writing and hashing

	out  io.Writer
	line []byte
}

// batch is how many messages are timed together.
const batch = 256

// Run runs the flow, and writes the reports to out.
func Run(flow []Message, out io.Writer) (*Reports, error) {
	e, err := match.New(match.Config{Orders: 1 << 17, Pages: 1 << 16, Books: 1, Work: 1 << 16})
	if err == nil {
		err = e.Define(0, match.Instrument{Tick: 1, Lot: 1, Low: 0, High: 1 << 20, Ref: 33504})
	}
	if err != nil {
		return nil, err
	}
	r := &Reports{out: out}
	records := make([]match.Record, 0, e.MaxRecords())
	e.Apply(&match.Op{Kind: match.SetState, State: match.Open}, records)
	var list []match.Record
	var prices [batch]int64
	var ends [batch]int
	for seq := 0; seq < len(flow); seq += batch {
		part := flow[seq:min(seq+batch, len(flow))]
		list = list[:0]
		begun := time.Now()
		for i := range part {
			op := part[i].op(e, &prices[i])
			records = e.Apply(&op, records[:0])
			list = append(list, records...)
			ends[i] = len(list)
			r.Most = max(r.Most, e.Resting())
		}
		r.Took += time.Since(begun)
		for i, from := 0, 0; i < len(part); i++ {
			r.write(uint64(seq+i), part[i], prices[i], list[from:ends[i]])
			from = ends[i]
		}
	}
	return r, nil
}

// op is the operation of a message; price is that of the order before it.
func (m *Message) op(e *match.Engine, price *int64) match.Op {
	op := match.Op{Kind: m.kind, ID: m.id, Side: m.side, Type: match.Limit, Price: m.price, Qty: int64(m.qty)}
	*price = m.price
	if m.kind != match.Enter {
		o, _ := e.Find(m.id) // its quantity is of what is left, FIX's of the whole order
		op.ID, op.Orig = 0, m.id
		if op.Qty += o.Cum; m.kind == match.Cancel {
			*price = o.Price
		}
	}
	if m.ioc {
		op.TIF = match.IOC
	}
	return op
}

// write writes what follows from a message, sorted by the number of the kind.
func (r *Reports) write(seq uint64, m Message, price int64, out []match.Record) {
	side := uint64(m.side - match.Buy)
	for kind := range uint64(6) {
		for i := range out {
			switch o := &out[i]; {
			case kind == 0 && o.Kind == match.Accepted:
				r.put(kind, seq, side, m.id, uint64(o.Price), uint64(o.Qty))
			case kind == 1 && o.Kind == match.Filled && o.Flags&match.Passive == 0:
				r.put(kind, seq, uint64(o.Price), uint64(o.Qty), o.Other, o.Order)
				r.Fills++
			case kind == 2 && o.Kind == match.Cancelled:
				r.put(kind, seq, side, m.id, uint64(price))
			case kind == 3 && o.Kind == match.Replaced:
				r.put(kind, seq, side, m.id, uint64(o.Price), uint64(m.qty))
			case kind == 4 && o.Kind == match.CancelRejected && m.kind == match.Cancel, kind == 5 && o.Kind == match.CancelRejected && m.kind == match.Replace:
				r.put(kind, seq, m.id)
			}
		}
	}
}

func (r *Reports) put(fields ...uint64) {
	r.line = r.line[:0]
	if r.Lines > 0 {
		r.line = append(r.line, '\n')
	}
	for i, f := range fields {
		if i > 0 {
			r.line = append(r.line, ',')
		}
		r.line = strconv.AppendUint(r.line, f, 10)
	}
	r.Lines++
	r.out.Write(r.line)
}
