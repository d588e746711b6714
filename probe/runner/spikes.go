package runner

import (
	"slices"

	"github.com/ordergrid/ordergrid/probe/load"
	"github.com/ordergrid/ordergrid/probe/report"
)

const (
	maxSpikes = 3
	// spikeOrders is how many orders are shown around a spike.
	spikeOrders = 120
	// before is how many of them were created before the stall.
	spikeBefore = 12
	// spikeFactor is the least multiple of the median of a spike.
	spikeFactor = 3
	// pauseNear is how far from a stall a pause may end and still be shown, ns.
	pauseNear = 1_000_000
)

// spikes finds the worst orders, each in an interval of its own, and their surroundings.
func (m *measured) spikes(medianNs int64) (out []report.Spike) {
	var taken [][2]int // ranges of orders that belong to a spike already
	for len(out) < maxSpikes {
		worst := m.worst(taken)
		if worst < 0 || m.orders[worst].T3-m.orders[worst].T1 < spikeFactor*medianNs {
			break
		}
		s, from, to := m.spike(worst, medianNs)
		taken = append(taken, [2]int{from, to})
		out = append(out, s)
	}
	return out
}

// worst is the order with the longest create-to-end outside of the ranges; -1 if there is none.
func (m *measured) worst(taken [][2]int) int {
	worst, most := -1, int64(0)
	for i := range m.orders {
		if o := &m.orders[i]; o.Fate == load.Acked && o.T3-o.T1 > most &&
			!slices.ContainsFunc(taken, func(t [2]int) bool { return i >= t[0] && i <= t[1] }) {
			worst, most = i, o.T3-o.T1
		}
	}
	return worst
}

// spike describes the surroundings of the worst order; from and to are the range of orders it
// covers.
func (m *measured) spike(worst int, medianNs int64) (s report.Spike, from, to int) {
	o := &m.orders[worst]
	stallFrom, stallTo := m.stall(worst)
	// Orders that were created when it began, back to calm and on to calm again.
	from, to = worst, worst
	for from > 0 && m.orders[from-1].T1 >= stallFrom {
		from--
	}
	for to < len(m.orders)-1 && (m.orders[to].T1 < stallTo || m.waited(to, medianNs)) {
		to++
	}
	from = max(0, from-spikeBefore)
	s = report.Spike{
		AtMs: milli(o.T1 - m.begin), CreateToEndUs: micro(float64(o.T3 - o.T1)), SendToEndUs: micro(float64(o.T3 - o.T2)),
		Index: m.first + int64(worst), Thread: int(o.Thread),
		StallFromMs: milli(stallFrom - m.begin), StallToMs: milli(stallTo - m.begin),
		Orders: m.around(from, to, worst), Descents: m.descents(from, to),
	}
	for i := from; i <= to; i++ {
		if p := &m.orders[i]; p.Fate != load.Unsent && p.T1 <= stallTo && p.T2 >= stallTo {
			s.Queued++
		}
	}
	return s, from, to
}

func (m *measured) waited(i int, medianNs int64) bool {
	o := &m.orders[i]
	return o.Fate == load.Acked && o.T3-o.T1 >= spikeFactor*medianNs
}

// stall is the longest time during the life of an order in which no other of
// the probe was acknowledged.
func (m *measured) stall(worst int) (from, to int64) {
	o := &m.orders[worst]
	acks := []int64{o.T1, o.T3}
	// Threads overtake each other by few orders: those that were answered during its life were
	// created shortly before or after it.
	for i := worst - 1; i >= 0 && m.orders[i].T1 > o.T1-2*(o.T3-o.T1); i-- {
		acks = appendWithin(acks, m.orders[i], o.T1, o.T3)
	}
	for i := worst + 1; i < len(m.orders) && m.orders[i].T1 < o.T3; i++ {
		acks = appendWithin(acks, m.orders[i], o.T1, o.T3)
	}
	slices.Sort(acks)
	for i := 1; i < len(acks); i++ {
		if acks[i]-acks[i-1] > to-from {
			from, to = acks[i-1], acks[i]
		}
	}
	return from, to
}

func appendWithin(acks []int64, o load.Order, from, to int64) []int64 {
	if o.Fate == load.Acked && o.T3 > from && o.T3 < to {
		return append(acks, o.T3)
	}
	return acks
}

// around are the orders from from to to, thinned out evenly if they are too many; the worst one is
// always included.
func (m *measured) around(from, to, worst int) (out []report.SpikeOrder) {
	step := (to-from)/(spikeOrders-1) + 1
	for i := from; i <= to; i++ {
		if o := &m.orders[i]; o.Fate == load.Acked && ((i-from)%step == 0 || i == worst) {
			out = append(out, report.SpikeOrder{AtMs: milli(o.T1 - m.begin), CreateToEndUs: micro(float64(o.T3 - o.T1)), SendToEndUs: micro(float64(o.T3 - o.T2)), Thread: int(o.Thread)})
		}
	}
	return out
}

// descents are, thread by thread, the longest run of orders that each waited less than the previous
// one: the thread working off its backlog.
func (m *measured) descents(from, to int) (out []report.Descent) {
	type run struct{ first, last, n int }
	best, now := map[uint8]run{}, map[uint8]run{}
	for i := from; i <= to; i++ {
		o := &m.orders[i]
		if o.Fate != load.Acked {
			continue
		}
		r, ok := now[o.Thread]
		if ok && o.T3-o.T1 < m.orders[r.last].T3-m.orders[r.last].T1 {
			r.last, r.n = i, r.n+1
		} else {
			r = run{i, i, 1}
		}
		now[o.Thread] = r
		if r.n > best[o.Thread].n {
			best[o.Thread] = r
		}
	}
	for thread, r := range best {
		a, b := &m.orders[r.first], &m.orders[r.last]
		if r.n < 2 || b.T1 <= a.T1 {
			continue
		}
		fromUs, toUs := micro(float64(a.T3-a.T1)), micro(float64(b.T3-b.T1))
		out = append(out, report.Descent{
			Thread: int(thread), Orders: r.n, FromMs: milli(a.T1 - m.begin), ToMs: milli(b.T1 - m.begin), FromUs: fromUs, ToUs: toUs,
			SlopeUsPerMs: micro((toUs - fromUs) / (float64(b.T1-a.T1) / 1e6) * 1e3),
		})
	}
	slices.SortFunc(out, func(a, b report.Descent) int { return a.Thread - b.Thread })
	return out
}

// overlay adds to every spike the pauses that overlap its stall or end just
// before it.
func overlay(spikes []report.Spike, pauses []report.Pause) {
	for i := range spikes {
		s := &spikes[i]
		for _, p := range pauses {
			if end := p.AtMs + p.Us/1e3; p.AtMs <= s.StallToMs && end >= s.StallFromMs-float64(pauseNear)/1e6 {
				s.Pauses = append(s.Pauses, p)
			}
		}
	}
}
