package recorder

import (
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/traffic"
)

// State returns the state of the recorder.
func (r *Recorder) State() api.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := clock.Now()
	s := api.State{Phase: r.phase, Error: r.failure, Progress: r.progress, Now: wall(now), Started: wall(r.started), Partitions: []string{}, GapLimit: r.cfg.GapLimit, MaxOrders: r.maxOrders,
		Verdict: string(r.out.verdict)}
	for _, p := range r.parts {
		s.Partitions = append(s.Partitions, p.String())
	}
	if r.traffic == nil {
		return s
	}
	s.Counts, s.Full = countsOf(r.traffic.Counts(), traffic.Counts{}), r.traffic.Ended()
	s.Redundant, s.RedundantSince, s.Missing = r.view.since != 0, wall(r.view.since), r.view.missing
	if s.WorstGap, s.P99 = r.gaps.worst(), r.recent.p99(); r.phase == api.Running {
		s.WorstGap = max(s.WorstGap, r.traffic.Gap(r.parts))
	}
	if at, err := r.traffic.Refusal(); err != nil && now-at < int64(recently) {
		s.Refusal = err.Error()
	}
	if calm := r.calmSince(); calm != 0 && r.phase == api.Running {
		s.Calm = time.Duration(now - calm)
	}
	return s
}

// recently is the period that State reports as recent.
const recently = 10 * time.Second

// calmSince is when the grid last became stable, redundant and without long gaps of a session; 0 if
// it is not.
func (r *Recorder) calmSince() int64 {
	if r.view.since == 0 || r.gaps.last == 0 || r.traffic.Gap(r.parts) > r.cfg.GapLimit {
		return 0
	}
	return max(r.view.since, r.gaps.last)
}

func countsOf(c, before traffic.Counts) api.Counts {
	out := api.Counts{Created: c.Created - before.Created, Acknowledged: c.Acked - before.Acked, Rejected: c.Rejected - before.Rejected, Unknown: c.Unknown - before.Unknown, OneCopy: c.OneCopy - before.OneCopy}
	out.Waiting = max(0, c.Created-c.Acked-c.Rejected-c.Unknown)
	return out
}

// record is the data of a step.
func (r *Recorder) record(s *step) *api.Record {
	now := clock.Now()
	latencies := r.traffic.Latencies()
	since := latencies.Since(&s.latency)
	out := &api.Record{Index: s.index, Step: s.asked, Now: wall(now), Ready: wall(s.rep.Ready), From: wall(s.rep.From), Injected: wall(s.rep.To), Recovered: wall(s.rep.Healed),
		Served: wall(s.rep.Served), Redundant: wall(s.rep.Redundant), Missing: s.missing, Over: s.over, Failed: s.rep.Failed, WorstGap: r.outageOf(s, now),
		P99: since.Quantile(0.99), Counts: countsOf(r.traffic.Counts(), s.counts), Witness: s.fault.Witness}
	return out
}

// wall converts a time of the recorder's clock to wall time; 0 is none.
func wall(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return clock.Wall(ns).UTC()
}
