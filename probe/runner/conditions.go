package runner

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/host"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// settle is how long before the measured part the machine and the nodes are sampled: the queries
// cost some work, which must not be measured.
const settle = 100 * time.Millisecond

// conditions samples the machine and the grid nodes before and after the
// measured part; nothing if the step was cut short.
func (r *Run) conditions(ctx context.Context, s scenario.Step, start int64) *report.Conditions {
	plan := r.cfg.Plan
	begin := start + int64(plan.WarmupTime()) - int64(settle)
	end := start + int64(plan.WarmupTime()+plan.MeasureTime())
	if !sleep(ctx, begin) {
		return nil
	}
	nodes := r.scrape(ctx)
	before, err := host.Take(r.cfg.NodePIDs)
	if err != nil || !sleep(ctx, end) {
		return nil
	}
	after, err := host.Take(r.cfg.NodePIDs)
	if err != nil {
		return nil
	}
	c := r.machine(before, after)
	c.Step, c.Nodes = s.ID, usage(nodes, r.scrape(ctx))
	return c
}

// machine is its state between two samples.
func (r *Run) machine(before, after host.Sample) *report.Conditions {
	u := host.Between(before, after, len(r.cfg.NodePIDs) > 0)
	return &report.Conditions{
		ElapsedMs: u.Elapsed.Milliseconds(), Cores: u.Cores,
		BusyPct: u.Busy, StealPct: u.Steal, PressurePct: u.Pressure, ForeignPct: u.Foreign, ProbePct: u.Own,
		LoadBefore: u.LoadBefore, LoadAfter: u.LoadAfter, ProbePauses: u.Collections,
	}
}

// sleep waits until the time on the scale of clock.Now; false if ctx ends first.
func sleep(ctx context.Context, until int64) bool {
	t := time.NewTimer(time.Duration(until - clock.Now()))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *Run) scrape(ctx context.Context) map[string]host.NodeSample {
	out := map[string]host.NodeSample{}
	for _, url := range r.http {
		c, cancel := context.WithTimeout(ctx, time.Second)
		if s, err := host.Scrape(c, url); err == nil {
			out[url] = s
		}
		cancel()
	}
	return out
}

func usage(before, after map[string]host.NodeSample) (nodes []report.Node) {
	for url, a := range before {
		b, ok := after[url]
		seconds := b.At.Sub(a.At).Seconds()
		if !ok || a.CPU < 0 || b.CPU < a.CPU || seconds <= 0 {
			continue // the node is gone, or was restarted
		}
		n := report.Node{Name: strings.TrimPrefix(url, "http://"), CPUCores: (b.CPU - a.CPU) / seconds, PausesPerSec: -1}
		if a.Collections >= 0 && b.Collections >= a.Collections {
			n.PausesPerSec = (b.Collections - a.Collections) / seconds
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// The ports of every grid pod, see docs/architecture.md.
const (
	dataPort = "7400"
	httpPort = "9400"
)

// metricsURLs are the nodes to query: those given, else those of a cluster, derived from the data
// addresses. A grid on other ports has to be given.
func metricsURLs(given, addresses []string) (urls []string) {
	if len(given) > 0 {
		return given
	}
	for _, a := range addresses {
		if ip, port, err := net.SplitHostPort(a); err == nil && port == dataPort {
			urls = append(urls, fmt.Sprintf("http://%s", net.JoinHostPort(ip, httpPort)))
		}
	}
	return urls
}
