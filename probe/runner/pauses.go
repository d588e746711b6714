package runner

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/report"
)

// pausesTimeout bounds the query of one node, after a step.
const pausesTimeout = time.Second

// pauses are those of this process and of the grid's nodes during the measured part of a step that
// started at start. They are queried afterwards, so that the query is not measured: every runtime
// remembers its last collections.
func (r *Run) pauses(ctx context.Context, start int64, cond *report.Conditions) (all []report.Pause) {
	if cond == nil {
		return nil
	}
	plan := r.cfg.Plan
	begin := clock.Wall(start + int64(plan.WarmupTime()))
	w := window{begin.UnixNano(), begin.Add(plan.MeasureTime()).UnixNano()}
	source, own := w.of("probe", report.TimesExact, nodestatus.OwnPauses())
	cond.PauseSources, all = append(cond.PauseSources, source), own
	times := report.TimesOtherClock
	if r.cfg.Shared {
		times = report.TimesExact
	}
	c := nodestatus.NewClient(pausesTimeout, nil)
	defer c.CloseIdleConnections()
	for _, url := range r.http {
		s, p := askPauses(ctx, c, url, w, times)
		cond.PauseSources, all = append(cond.PauseSources, s), append(all, p...)
	}
	return all
}

func askPauses(ctx context.Context, c *http.Client, url string, w window, times string) (report.PauseSource, []report.Pause) {
	name := strings.TrimPrefix(url, "http://")
	p, err := nodestatus.GetPauses(ctx, c, url)
	if err != nil {
		return report.PauseSource{Of: name, Count: -1, TotalUs: -1, MaxUs: -1, Times: report.TimesNone}, nil
	}
	return w.of(name, times, p)
}

// window is the measured part in unix nanoseconds.
type window struct{ from, to int64 }

// of sums the pauses within the window. A runtime that has forgotten some of them does not know
// their number.
func (w window) of(name, times string, p nodestatus.Pauses) (s report.PauseSource, in []report.Pause) {
	s = report.PauseSource{Of: name, Times: times}
	complete := p.Collections == int64(len(p.Recent))
	for _, x := range p.Recent {
		if x.EndUnixNs < w.from {
			complete = true
			continue
		}
		if x.EndUnixNs-x.Ns > w.to {
			continue
		}
		us := micro(float64(x.Ns))
		s.Count, s.TotalUs, s.MaxUs = s.Count+1, s.TotalUs+us, max(s.MaxUs, us)
		in = append(in, report.Pause{Of: name, AtMs: milli(x.EndUnixNs - x.Ns - w.from), Us: us, Cause: "gc"})
	}
	if !complete {
		s.Count, s.TotalUs, s.MaxUs, s.Times = -1, -1, -1, report.TimesNone
	}
	return s, in
}
