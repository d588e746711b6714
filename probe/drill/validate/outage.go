package validate

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/load"
)

// Outage of one repetition as clients saw it.
type Outage struct {
	// Worst is the longest time that a session of the affected partitions was without an
	// acknowledgement, from the last before to the first after; First is the same for a partition
	// as a whole, so it ends with the first acknowledgement of any session.
	Worst, First time.Duration
	// Rejoin is the longest such time of a session after service was back, until
	// all copies were in sync.
	Rejoin time.Duration
	// Redundant is the time from the fault until all copies were in sync again.
	Redundant time.Duration
	// Stall is the longest sleep of the recording process itself in the outage.
	Stall time.Duration
	// Failed are orders created from the fault on, until redundancy was back, that were not
	// acknowledged.
	Failed                int64
	Before, During, After Latency
	// Gap is the period of Worst.
	Gap history.Span `json:"-"`
}

// Disturbed: the recording process was itself delayed for a good part of the outage: the figure is
// not the grid's alone.
func (o *Outage) Disturbed() bool {
	return o.Stall > 5*time.Millisecond && o.Stall > o.Worst/4
}

// Latency of orders, from creation to acknowledgement.
type Latency struct {
	N             int
	P50, P99, Max time.Duration
}

// Timeline indexes acknowledgements by time.
type Timeline struct {
	h *history.History
	// By partition: acknowledgement times of every session, sorted; and of all.
	sessions map[wire.PartitionID][][]int64
	all      map[wire.PartitionID][]int64
	orders   [][]load.Order // of sessions, in order of creation
	end      int64          // when the last order was created
}

// NewTimeline sorts what the sessions of h recorded.
func NewTimeline(h *history.History) *Timeline {
	t := &Timeline{h: h, sessions: map[wire.PartitionID][][]int64{}, all: map[wire.PartitionID][]int64{}}
	for i := range h.Streams {
		s := &h.Streams[i]
		if s.Node >= 0 {
			continue
		}
		per := make([][]int64, s.Sessions)
		for j := range s.Orders {
			if o := &s.Orders[j]; o.Fate == load.Acked && int(o.Thread) < s.Sessions {
				per[o.Thread] = append(per[o.Thread], o.T3)
				t.all[s.Partition] = append(t.all[s.Partition], o.T3)
			}
		}
		for _, acks := range per {
			slices.Sort(acks)
		}
		slices.Sort(t.all[s.Partition])
		t.sessions[s.Partition] = append(t.sessions[s.Partition], per...)
		t.orders = append(t.orders, s.Orders)
		if n := len(s.Orders); n > 0 {
			t.end = max(t.end, s.Orders[n-1].T1)
		}
	}
	return t
}

// LiveTimeline is that of a run in progress: of every session the present acknowledgements, sorted,
// and when the last order was created. It supports the queries that need only acknowledgements.
func LiveTimeline(sessions map[wire.PartitionID][][]int64, end int64) *Timeline {
	return &Timeline{h: &history.History{}, sessions: sessions, end: end}
}

// gap is the longest time between two acknowledgements of which the earlier, or
// the waiting, lies in the span. An end that never came is not counted.
func gap(acks []int64, span history.Span) (longest history.Span) {
	i := sort.Search(len(acks), func(i int) bool { return acks[i] > span.From })
	for i = max(i, 1); i < len(acks) && acks[i-1] < span.To; i++ {
		if acks[i]-acks[i-1] > longest.To-longest.From {
			longest = history.Span{From: acks[i-1], To: acks[i]}
		}
	}
	return longest
}

// Worst is the longest gap of any session of the partitions in the span.
func (t *Timeline) Worst(partitions []wire.PartitionID, span history.Span) (worst history.Span) {
	for _, p := range partitions {
		for _, acks := range t.sessions[p] {
			if g := gap(acks, span); g.To-g.From > worst.To-worst.From {
				worst = g
			}
		}
	}
	return worst
}

// Silence is the longest time that a session of the partitions has been without an
// acknowledgement at a moment, for one that may never get another.
func (t *Timeline) Silence(partitions []wire.PartitionID, at int64) (longest time.Duration) {
	for _, p := range partitions {
		for _, acks := range t.sessions[p] {
			if i := sort.Search(len(acks), func(i int) bool { return acks[i] > at }); i > 0 {
				longest = max(longest, time.Duration(at-acks[i-1]))
			}
		}
	}
	return longest
}

// Unserved is how long sessions were without an acknowledgement because of a repetition, as
// reported during a drill and in its certificate. lasts: the fault lasts until it is healed, and
// may interrupt service at any time until then. If service never came back it is a lower bound: up
// to the next repetition, which begins at next (0: there is none), or the last order.
func (t *Timeline) Unserved(rep *history.Rep, lasts bool, next int64) time.Duration {
	fault, end := spans(rep)
	worst := length(t.Worst(rep.Partitions, fault))
	if lasts && rep.Healed > 0 {
		worst = max(worst, t.inside(rep.Partitions, history.Span{From: fault.To, To: end}))
	}
	if rep.Served == 0 {
		worst = max(worst, t.Silence(rep.Partitions, t.Until(next)))
	}
	return worst
}

// Passed reports whether every session of the partitions has had an acknowledgement after the time
// in which a gap is the repetition's: the result of Unserved is then final, unless service never
// came back.
func (t *Timeline) Passed(rep *history.Rep) bool {
	fault, _ := spans(rep)
	for _, p := range rep.Partitions {
		for _, acks := range t.sessions[p] {
			if len(acks) == 0 || acks[len(acks)-1] < fault.To {
				return false
			}
		}
	}
	return true
}

// Until is the end of observation of a repetition from which service never came back; the next one
// began at next, 0: there is none.
func (t *Timeline) Until(next int64) int64 {
	if next != 0 {
		return min(t.end, next)
	}
	return t.end
}

// spans of a repetition: in which a gap is the fault's, and when all was as before.
func spans(rep *history.Rep) (fault history.Span, end int64) {
	end = cmp.Or(rep.Redundant, rep.Served, rep.To)
	return history.Span{From: rep.From, To: min(end, max(rep.Served, rep.To)+settle)}, end
}

// settle is how long after service is back a gap still counts as the fault's.
const settle = int64(50 * time.Millisecond)

// Outage of a repetition.
func (t *Timeline) Outage(rep *history.Rep) Outage {
	fault, end := spans(rep)
	worst := t.Worst(rep.Partitions, fault)
	o := Outage{Worst: length(worst), Stall: t.stall(worst), Gap: worst}
	for _, p := range rep.Partitions {
		o.First = max(o.First, length(gap(t.all[p], fault)))
	}
	o.Rejoin = t.inside(rep.Partitions, history.Span{From: fault.To, To: end})
	if rep.Redundant > 0 {
		o.Redundant = time.Duration(rep.Redundant - rep.From)
	}
	o.Before, _ = t.Latency(history.Span{From: rep.Ready, To: rep.From})
	o.During, o.Failed = t.Latency(history.Span{From: rep.From, To: end})
	o.After, _ = t.Latency(history.Span{From: end, To: end + int64(time.Second)})
	return o
}

// inside is the longest gap of any session of which both ends lie in the span.
func (t *Timeline) inside(partitions []wire.PartitionID, s history.Span) (longest time.Duration) {
	for _, p := range partitions {
		for _, acks := range t.sessions[p] {
			from := sort.Search(len(acks), func(i int) bool { return acks[i] >= s.From })
			to := sort.Search(len(acks), func(i int) bool { return acks[i] >= s.To })
			for i := from + 1; i < to; i++ {
				longest = max(longest, time.Duration(acks[i]-acks[i-1]))
			}
		}
	}
	return longest
}

func length(s history.Span) time.Duration { return time.Duration(s.To - s.From) }

// stall is the longest stall that overlaps the span.
func (t *Timeline) stall(s history.Span) (longest time.Duration) {
	for _, st := range t.h.Stalls {
		if st.At < s.To && st.At+st.Len > s.From {
			longest = max(longest, time.Duration(st.Len))
		}
	}
	return longest
}

// Latency of the orders created in the span, and how many of them were not
// acknowledged.
func (t *Timeline) Latency(span history.Span) (Latency, int64) {
	var all []int64
	failed := int64(0)
	for _, orders := range t.orders {
		i := sort.Search(len(orders), func(i int) bool { return orders[i].T1 >= span.From })
		for ; i < len(orders) && orders[i].T1 < span.To; i++ {
			if orders[i].Fate == load.Acked {
				all = append(all, orders[i].T3-orders[i].T1)
			} else {
				failed++
			}
		}
	}
	slices.Sort(all)
	return Latency{N: len(all), P50: quantile(all, 0.5), P99: quantile(all, 0.99), Max: quantile(all, 1)}, failed
}

// Noise is the longest gap of any session in each calm span: the least that an outage has to
// exceed.
func (t *Timeline) Noise() (out []time.Duration) {
	for _, s := range t.h.Calm {
		out = append(out, t.inside(t.h.Partitions, s))
	}
	slices.Sort(out)
	return out
}

func quantile(sorted []int64, q float64) time.Duration {
	return time.Duration(Quantile(sorted, q))
}

// Quantile of sorted values by the nearest rank: at least q of them are not
// greater. With 20 values the p99 is the greatest.
func Quantile[T ~int64](sorted []T, q float64) T {
	if len(sorted) == 0 {
		return 0
	}
	i := int(q*float64(len(sorted)) + 0.999999)
	return sorted[min(max(i, 1), len(sorted))-1]
}
