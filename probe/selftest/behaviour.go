package selftest

import (
	"slices"
	"sync"
	"time"
)

// Behaviour is how the known server handles an order.
type Behaviour struct {
	// Service is the time of each order. Orders of several sessions are processed concurrently.
	Service time.Duration
	// Once every Every nothing is answered for Stall; answers due meanwhile are sent when it ends.
	// 0: never.
	Every, Stall time.Duration
	// PerSecond, if not 0, is the number of orders answered per second, one after the other at even
	// intervals, instead of Service.
	PerSecond int
}

// station determines when an order is answered.
type station struct {
	b  Behaviour
	mu sync.Mutex
	// last answer, with PerSecond.
	last int64
}

// due is when an order that arrived at now is answered, ns.
func (s *station) due(now int64) int64 {
	at := now + int64(s.b.Service)
	if s.b.PerSecond > 0 {
		s.mu.Lock()
		s.last = max(s.last, now) + int64(time.Second)/int64(s.b.PerSecond)
		at = s.last
		s.mu.Unlock()
	}
	if s.b.Stall > 0 {
		if in := at % int64(s.b.Every); in < int64(s.b.Stall) {
			at += int64(s.b.Stall) - in
		}
	}
	return at
}

// Expected are the latencies of one probe, computed order by order.
type Expected struct{ CreateToEnd, SendToEnd []time.Duration } // sorted

// Expect computes the latencies that a probe with the given publishing threads must measure, for
// orders at even intervals over a time; roundTrip is the round trip to the server.
func (b Behaviour) Expect(rate, threads int, over, roundTrip time.Duration) (e Expected) {
	s := station{b: b}
	free := make([]int64, threads) // when each thread is free
	n := int64(rate) * int64(over) / int64(time.Second)
	// Half a stall into the period, so that no order is on its edges.
	begin := int64(b.Every) - int64(b.Stall)/2 + 500
	for i := range n {
		created := begin + i*int64(time.Second)/int64(rate)
		thread := 0
		for k := range free {
			if free[k] < free[thread] {
				thread = k
			}
		}
		sent := max(created, free[thread])
		answered := s.due(sent+int64(roundTrip)/2) + int64(roundTrip)/2
		free[thread] = answered
		e.CreateToEnd = append(e.CreateToEnd, time.Duration(answered-created))
		e.SendToEnd = append(e.SendToEnd, time.Duration(answered-sent))
	}
	slices.Sort(e.CreateToEnd)
	slices.Sort(e.SendToEnd)
	return e
}

// percentile of sorted values by nearest rank, p from 0 to 100.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(p/100*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func mean(v []time.Duration) time.Duration {
	sum := 0.0
	for _, d := range v {
		sum += float64(d)
	}
	return time.Duration(sum / float64(max(1, len(v))))
}
