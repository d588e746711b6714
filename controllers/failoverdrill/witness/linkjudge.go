package witness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
)

// Thresholds of evidence. docs/drills.md has the same numbers, with reasons.
const (
	// missedHeartbeats is how many consecutive beacons are missing on a connection that a partition cut. One is sent every
	// spec.timing.beaconInterval with or without orders.
	missedHeartbeats = 10
	// delayPart is the part of the requested latency by which the smoothed round trip must rise: it takes some round
	// trips to follow, and jitter may reduce it.
	delayPart = 2 // one half
	// segmentsMeant is how many segments must be retransmitted, or received twice, in addition to those before: one or
	// two happen on any network.
	segmentsMeant = 3
	// narrowRTT is the increase of a round trip over a link that is too narrow for its traffic.
	narrowRTT = 5 * time.Millisecond
)

// judgeLinks requires every pair of a pod and its peer to show the fault, at one end at least.
func judgeLinks(f *inject.Fault, before, now *sight) Result {
	all := pairs(f)
	if len(all) == 0 {
		return Result{Message: "a link to a peer that is not a grid node cannot be observed from here; only an executor's packet counters show a fault on it"}
	}
	r := Result{Seen: true}
	var messages []string
	for _, p := range all {
		seen, what := judgePair(f, p, before, now)
		r.Seen = r.Seen && seen
		messages = append(messages, what)
	}
	r.Message = strings.Join(messages, "; ")
	return r
}

func judgePair(f *inject.Fault, p pair, before, now *sight) (bool, string) {
	was, is := before.between(p), now.between(p)
	way := fmt.Sprintf("%s and %s%s", p[0], p[1], on(was))
	switch f.Spec.Type {
	case api.FaultNetworkPartition:
		return judgeCut(f, p, before, now, way)
	case api.FaultNetworkDelay:
		return judgeDelay(f, was, is, way)
	case api.FaultNetworkBandwidth:
		return judgeNarrow(was, is, way)
	case api.FaultNetworkDuplicate:
		n := risen(was, is, func(l linkSight) uint64 { return l.Doubled })
		return n >= segmentsMeant, fmt.Sprintf("between %s %d segments came twice since before the fault (seen from %d)", way, n, segmentsMeant)
	}
	n := risen(was, is, func(l linkSight) uint64 { return l.Resent })
	return n >= segmentsMeant, fmt.Sprintf("between %s %d segments were retransmitted since before the fault (seen from %d)", way, n, segmentsMeant)
}

// on names the interfaces of the connections of a pair.
func on(links []linkSight) string {
	var out []string
	for _, l := range links {
		if l.Interface != "" && !slices.Contains(out, l.Interface) {
			out = append(out, l.Interface)
		}
	}
	if len(out) == 0 {
		return ""
	}
	slices.Sort(out)
	return " (" + strings.Join(out, ", ") + ")"
}

// judgeCut: one end has heard nothing for longer than a live connection is ever silent, or the connections ended while
// both processes are unchanged.
func judgeCut(f *inject.Fault, p pair, before, now *sight, way string) (bool, string) {
	was, is := before.between(p), now.between(p)
	limit := max(missedHeartbeats*f.Grid.Spec.Timing.BeaconInterval.Duration, f.Grid.Spec.Timing.Lease.Duration)
	quietest := time.Duration(0)
	for _, end := range p {
		heard := time.Duration(-1)
		for _, l := range is {
			if l.From == end && (heard < 0 || time.Duration(l.Quiet) < heard) {
				heard = time.Duration(l.Quiet)
			}
		}
		quietest = max(quietest, heard)
	}
	switch {
	case quietest >= limit:
		return true, fmt.Sprintf("between %s nothing came for %s (seen from %s)", way, quietest.Round(time.Millisecond), limit)
	case len(is) > 0:
		return false, fmt.Sprintf("between %s the longest silence is %s (seen from %s)", way, quietest.Round(time.Millisecond), limit)
	}
	silent := 0
	for _, end := range p {
		switch boot, answers := now.Boots[end]; {
		case !answers:
			silent++
			way += "; " + end + " does not answer: " + now.Silent[end]
		case boot != before.Boots[end]:
			return false, fmt.Sprintf("the connections between %s ended because the process of %s was replaced", way, end)
		}
	}
	if silent == len(p) {
		return false, fmt.Sprintf("the connections between %s are unknown", way)
	}
	return len(was) > 0, fmt.Sprintf("the %d earlier connections between %s ended", len(was), way)
}

func judgeDelay(f *inject.Fault, was, is []linkSight, way string) (bool, string) {
	asked := time.Duration(0)
	if n := f.Spec.Network; n != nil && n.Latency != nil {
		asked = n.Latency.Duration
	}
	before, now := shortest(was), shortest(is)
	what := fmt.Sprintf("between %s a round trip takes %s, before %s (seen when %s longer)", way, now.Round(10*time.Microsecond), before.Round(10*time.Microsecond), asked/delayPart)
	return asked > 0 && now-before >= asked/delayPart, what
}

func judgeNarrow(was, is []linkSight, way string) (bool, string) {
	before, now := shortest(was), shortest(is)
	resent, queued := risen(was, is, func(l linkSight) uint64 { return l.Resent }), int64(0)
	for _, l := range is {
		queued = max(queued, l.Queued)
	}
	what := fmt.Sprintf("between %s a round trip takes %s, before %s; %d bytes wait; %d segments were retransmitted (seen when a round trip is %s longer, or from %d segments)",
		way, now.Round(10*time.Microsecond), before.Round(10*time.Microsecond), queued, resent, narrowRTT, segmentsMeant)
	return now-before >= narrowRTT || resent >= segmentsMeant, what
}

// idle connections have no current round trips.
const idle = time.Second

// shortest smoothed round trip of the connections of a pair with recent traffic. A longer one may be an acknowledgement
// that the other end's kernel delayed, up to 40 ms; a delay between the two affects every connection.
func shortest(links []linkSight) (rtt time.Duration) {
	for _, l := range links {
		if v := time.Duration(l.RTT); v > 0 && time.Duration(l.Idle) < idle && (rtt == 0 || v < rtt) {
			rtt = v
		}
	}
	return rtt
}

// risen is the increase of a counter of a pair's connections; new connections count in full.
func risen(was, is []linkSight, of func(linkSight) uint64) (n uint64) {
	for _, l := range is {
		v := of(l)
		if at := slices.IndexFunc(was, func(w linkSight) bool { return w.From == l.From && w.Boot == l.Boot && w.Ends == l.Ends }); at >= 0 {
			v -= min(v, of(was[at]))
		}
		n += v
	}
	return n
}
