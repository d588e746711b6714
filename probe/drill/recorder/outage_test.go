package recorder

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/validate"
	"github.com/ordergrid/ordergrid/probe/load"
)

const ms = int64(time.Millisecond)

// played is a run of three seconds with two faults: two sessions of a partition, which are silent at times, some for good.
func played(rng *rand.Rand) *history.History {
	h := &history.History{Started: time.Unix(1e9, 0), Replicas: 2, Partitions: []wire.PartitionID{0}, Drill: &history.Drill{}}
	stream := history.Stream{Node: -1, Sessions: 2}
	from := [2]int64{(200 + rng.Int64N(400)) * ms, (1400 + rng.Int64N(400)) * ms}
	silent := [2]history.Span{}
	for session := range silent {
		begin := from[rng.IntN(2)] + (rng.Int64N(60)-20)*ms
		silent[session] = history.Span{From: begin, To: begin + rng.Int64N(500)*ms}
		if rng.IntN(8) == 0 {
			silent[session].To = 1 << 60
		}
	}
	last := [2]int64{}
	for at := 4 * ms; at < 3000*ms; at += 4 * ms {
		session := int(at/(4*ms)) % 2
		o := load.Order{T1: at, T2: at, T3: at + 1 + rng.Int64N(ms), Seq: uint64(at), Copies: 2, Fate: load.Acked, Thread: uint8(session)}
		if s := silent[session]; o.T3 >= s.From && o.T3 < s.To {
			o.T3 = s.To + rng.Int64N(ms)
		}
		if o.T3 = max(o.T3, last[session]+1); o.T3 >= 1<<59 {
			o.Fate, o.T3 = load.Unknown, 0
		} else {
			last[session] = o.T3
		}
		stream.Orders = append(stream.Orders, o)
	}
	h.Streams = []history.Stream{stream}
	for i, at := range from {
		rep := history.Rep{Number: i + 1, Partitions: h.Partitions, Ready: at - 50*ms, From: at, To: at + rng.Int64N(20)*ms}
		lasts := rng.IntN(2) == 0
		if rep.Healed = rep.To; lasts {
			rep.Healed += rng.Int64N(300) * ms
		}
		if rng.IntN(5) > 0 {
			rep.Served = rep.To + (1+rng.Int64N(300))*ms
			rep.Redundant = max(rep.Served, rep.Healed) + rng.Int64N(200)*ms
		} else {
			rep.Failed = "abandoned"
		}
		h.Reps = append(h.Reps, rep)
		h.Drill.Faults = append(h.Drill.Faults, history.Fault{Index: i, Lasts: lasts, Step: api.Step{Type: "PodKill"}})
	}
	return h
}

// known is the recorder's knowledge of a run at a moment.
func known(h *history.History, now int64) *validate.Timeline {
	acks, newest := make([][]int64, 2), int64(0)
	for _, o := range h.Streams[0].Orders {
		if o.T1 <= now {
			newest = o.T1
		}
		if o.Fate == load.Acked && o.T3 <= now {
			acks[o.Thread] = append(acks[o.Thread], o.T3)
		}
	}
	return validate.LiveTimeline(map[wire.PartitionID][][]int64{0: acks}, newest)
}

// TestOutageIsTheCertificates: the reported outage of a step, when it is closed or at the end, is
// the certificate's, and during it the present silence is included.
func TestOutageIsTheCertificates(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 17))
	closed, unserved, lasting := 0, 0, 0
	for round := range 400 {
		h := played(rng)
		c, err := certificate.New(h, "")
		if err != nil {
			t.Fatal(err)
		}
		for i := range h.Reps {
			rep, next := &h.Reps[i], int64(0)
			s := &step{index: i, fault: h.Drill.Faults[i]}
			over := max(rep.Redundant, rep.Healed, rep.Served, rep.To)
			shown := time.Duration(0)
			for now := rep.From; now < 4200*ms; now += 7 * ms {
				s.rep = history.Rep{Partitions: rep.Partitions, From: rep.From}
				for _, f := range []struct{ from, to *int64 }{{&rep.To, &s.rep.To}, {&rep.Healed, &s.rep.Healed}, {&rep.Served, &s.rep.Served}, {&rep.Redundant, &s.rep.Redundant}} {
					if *f.from <= now {
						*f.to = *f.from
					}
				}
				if i+1 < len(h.Reps) && h.Reps[i+1].From <= now {
					next = h.Reps[i+1].From
				}
				s.over = now >= over
				timeline := known(h, now)
				shown = s.outage(timeline, next, now)
				if silent := timeline.Silence(rep.Partitions, min(now, timeline.Until(0))); !s.over && shown < silent {
					t.Fatalf("round %d, step %d: %s is reported, and a session has been silent for %s", round, i, shown, silent)
				}
				if s.closed {
					closed++
					break
				}
			}
			if want := c.Steps[i].Outage; shown != want {
				t.Errorf("round %d, step %d: reported as an outage of %s, certified as one of %s: %+v", round, i, shown, want, *rep)
			}
			if rep.Served == 0 {
				unserved++
			}
			if s.fault.Lasts {
				lasting++
			}
		}
	}
	if closed < 400 || unserved < 50 || lasting < 200 {
		t.Errorf("of 800 steps %d were closed, %d never served, %d lasted: too few to prove anything", closed, unserved, lasting)
	}
}
