package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
	"github.com/ordergrid/ordergrid/probe/drill/collect"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/host"
)

// output is the result at the end.
type output struct {
	verdict          certificate.Verdict
	json, text, page []byte
	history          string // path
	jsonSum, histSum string
}

// Finish requests the end.
func (r *Recorder) Finish(f api.Finish) error {
	if len(f.Aborted) > maxText || len(f.DataLoss) > maxPods || len(f.Nodes) > maxPods {
		return fmt.Errorf("aborted: %d bytes, dataLoss: %d names, nodes: %d, must be at most %d", len(f.Aborted), len(f.DataLoss), len(f.Nodes), maxText)
	}
	if e := f.Context.Expect; e.Loss != "" && e.Loss != api.LossNever && e.Loss != api.LossWarned {
		return fmt.Errorf("context.expect.loss %.40q: must be %s or %s", e.Loss, api.LossNever, api.LossWarned)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.asked != nil:
		return nil // it is under way, with the first request
	case r.phase != api.Running:
		return fmt.Errorf("%w: the recorder can finish while it is %s, it is %s", errConflict, api.Running, r.phase)
	}
	r.asked, r.phase = &f, api.Finishing
	close(r.finish)
	return nil
}

// stopped is an end without a request.
const stopped = "the recorder was stopped (SIGTERM) before the drill was finished"

// Time limits of the end when the process is being stopped, within a pod's grace period.
const (
	hurried      = 25 * time.Second
	hurriedReads = 5 * time.Second
)

// end ends the traffic, reads the grid, judges, and saves the result.
func (r *Recorder) end(ctx context.Context, stopWatching func()) error {
	patience, limit := min(r.cfg.Patience, collect.Patience), r.cfg.Timeout+4*r.cfg.Patience+10*time.Minute
	if ctx.Err() != nil {
		_ = r.Finish(api.Finish{Aborted: stopped}) // it may have been requested already
		patience, limit = hurriedReads, hurried
	}
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	asked := r.endSteps()
	if asked.Aborted == "" {
		r.say("wait for redundancy")
		r.awaitRedundancy(work, patience)
	}
	if asked.Context.Seed == 0 {
		asked.Context.Seed = int64(r.cfg.Seed & (1<<63 - 1))
	}
	r.say("wait for answers")
	h := r.h
	d := &history.Drill{Context: asked.Context, Recorder: recorderFacts(), Aborted: asked.Aborted, Full: r.traffic.Ended(), MaxOrders: r.maxOrders}
	use, err := host.Take(nil)
	if err != nil {
		return err
	}
	stopWatching()
	if err := r.traffic.Stop(work, h); err != nil {
		h.Notes = append(h.Notes, "end of the traffic: "+err.Error())
	}
	h.Notes = append(h.Notes, r.auctions.stop()...)
	h.Told = r.told.history()
	ticks := h.Host.Ticks
	u := host.Between(r.before, use, false)
	h.Host = history.Host{Cores: u.Cores, Own: u.Own, Busy: u.Busy, Foreign: u.Foreign, Pressure: u.Pressure, Steal: u.Steal, Load1: u.LoadAfter, Ticks: ticks}
	d.Faults = r.faults(h)
	h.Drill = d
	r.say("read the logs and the sinks")
	if err := r.read(work, asked, patience); err != nil {
		return err
	}
	d.Judged = time.Now()
	return r.keep()
}

// endSteps abandons open steps, and returns the request of the end.
func (r *Recorder) endSteps() api.Finish {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := clock.Now()
	r.each(func(s *step) { s.abandon("the drill ended before the step was over: "+s.waits(), now) })
	return *r.asked
}

func (r *Recorder) awaitRedundancy(ctx context.Context, limit time.Duration) {
	for deadline := time.Now().Add(limit); ; {
		r.mu.Lock()
		redundant, missing := r.view.since != 0, r.view.missing
		r.mu.Unlock()
		if redundant {
			return
		}
		if time.Now().After(deadline) || clock.Wait(ctx, 50*time.Millisecond) != nil {
			r.h.Notes = append(r.h.Notes, fmt.Sprintf("at the end, after %s: %s", limit, missing))
			return
		}
	}
}

// faults copies the steps into the history.
func (r *Recorder) faults(h *history.History) (out []history.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.steps {
		s.fault.Changes = s.reported()
		h.Reps, out = append(h.Reps, s.rep), append(out, s.fault)
	}
	return out
}

// read reads every copy and every sink, and finds out which logs are gone.
func (r *Recorder) read(ctx context.Context, asked api.Finish, patience time.Duration) error {
	ask, cancel := context.WithTimeout(ctx, patience)
	err := r.watch.Refresh(ask)
	cancel()
	answered := err == nil
	if !answered {
		r.h.Notes = append(r.h.Notes, "at the end no node reports roles; the copies are looked for at their last addresses: "+err.Error())
	}
	ask, cancel = context.WithTimeout(ctx, patience)
	functions, last := r.nodeHTTP.askFunctions(ask, r.watch.Table(), r.h.Functions)
	cancel()
	r.h.Functions = functions
	noteFunctions(r.h, r.functions, last)
	sinks := r.sinks(ctx, asked.Nodes)
	if err := collect.Read(ctx, r.watch, sinks, r.h, patience); err != nil {
		r.h.Notes = append(r.h.Notes, "reading ended early: "+err.Error())
	}
	r.h.Drill.NoHolder = noHolder(r.h, asked.DataLoss, answered)
	return ctx.Err()
}

// sinks are what can be compared downstream; nil: nothing, and the history has the reason.
func (r *Recorder) sinks(ctx context.Context, nodes []string) collect.Sinks {
	if r.cfg.NoSink != "" {
		r.h.Drill.NoSink = "no sink: " + r.cfg.NoSink
		return nil
	}
	if r.cfg.Sinks != nil {
		return r.cfg.Sinks
	}
	s := &collect.NodeSinks{Client: r.watch, More: nodes, Want: r.cfg.Replicas}
	if _, err := s.List(ctx); errors.Is(err, collect.ErrNoSink) {
		r.h.Drill.NoSink = err.Error()
		return nil
	}
	return s
}

// noHolder are the partitions whose log is known to be held by no process: none of the copies that
// count can be read, and either the grid itself suspects the loss, or other processes of the grid
// answer, so the network is not the cause.
func noHolder(h *history.History, suspected []string, answered bool) map[string]string {
	out := map[string]string{}
	for _, p := range h.Partitions {
		where, readable := "", 0
		for i := range h.Logs {
			l := &h.Logs[i]
			switch {
			case l.Partition != p || !l.InSync:
			case l.Error == "":
				readable++
			default:
				where = cmp.Or(where, fmt.Sprintf("%s cannot be read (%s)", l.Where, l.Error))
			}
		}
		if readable > 0 || where == "" {
			continue
		}
		for _, name := range suspected {
			if name == p.String() {
				out[p.String()] = "the grid reports DataLossSuspected; " + where
			}
		}
		if out[p.String()] == "" && answered && allGone(h, p) {
			out[p.String()] = where + ", and another process of the grid answers"
		}
	}
	return out
}

// allGone reports whether no session of the partition had an order acknowledged in the last seconds
// of the traffic: its service had ended before the copies were read.
func allGone(h *history.History, p wire.PartitionID) bool {
	last, end := int64(0), int64(0)
	for s := range h.Streams {
		for i := range h.Streams[s].Orders {
			o := &h.Streams[s].Orders[i]
			if end = max(end, o.T1); h.Streams[s].Partition == p && o.Seq != 0 {
				last = max(last, o.T3)
			}
		}
	}
	return last < end-int64(2*time.Second)
}

// keep saves history and certificate, and serves them.
func (r *Recorder) keep() error {
	r.say("judge")
	if err := os.MkdirAll(r.cfg.Dir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(r.cfg.Dir, certificate.HistoryFile)
	if err := r.h.Save(path); err != nil {
		return fmt.Errorf("save the history: %w", err)
	}
	sum, err := certificate.FileSum(path)
	if err != nil {
		return err
	}
	c, err := certificate.New(r.h, sum)
	if err != nil {
		return err
	}
	out := output{verdict: c.Verdict, history: path, histSum: sum}
	if out.json, out.text, out.page, err = certificate.Render(c); err != nil {
		return err
	}
	out.jsonSum = certificate.Sum(out.json)
	if err := certificate.Write(r.cfg.Dir, out.json, out.text, out.page); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out, r.phase, r.progress = out, api.Done, ""
	r.h.Streams, r.h.Logs, r.h.Sinks, r.h.Reads, r.h.Books, r.h.Executions, r.h.Told, r.h.Functions = nil, nil, nil, nil, nil, nil, nil, nil // they may be gigabytes
	return nil
}

func recorderFacts() map[string]string {
	m := host.Manifest()
	return map[string]string{"version": m.Version, "go": m.GoVersion, "kernel": m.Kernel, "cpu": m.CPU, "cores": fmt.Sprint(m.Cores), "host": m.Host}
}

func (r *Recorder) say(progress string) {
	r.mu.Lock()
	r.progress = progress
	r.mu.Unlock()
	r.cfg.Say("%s", progress)
}
