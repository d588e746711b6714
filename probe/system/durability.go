package system

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
	"github.com/ordergrid/ordergrid/probe/drill/recorder"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// durabilityOf returns the parameters of a mode.
func durabilityOf(s published.Scenario, mode scenario.Mode) (published.Durability, error) {
	return ofMode(mode, s.Durability, func(p *published.Durability) { *p = published.Durability{Rate: 200, AtS: 2, TotalS: 6, Repeats: 1} })
}

// durability kills the primary of a grid under load, and asks an independent ledger where every order is: in the copy that
// is left, and in the files downstream. The control is a grid without replication, which has to lose some.
func durability(ctx context.Context, _ *published.Data, s published.Scenario, o Options, r *Report) error {
	p, err := durabilityOf(s, o.Mode)
	if err != nil {
		return err
	}
	r.Columns = []string{"run", "copies", "acked", "in ledger", "in copies", "in sink", "lost", "duplicates", "unknown", "gaps", "promotion ms", "outage ms", "max C2E ms", "published lost"}
	r.Differences = append(r.Differences, "processes of one machine are killed with SIGKILL, not servers unplugged", "the file sink is on the same disk")
	lost := int64(0)
	for run := range p.Repeats {
		c, err := o.killed(ctx, fmt.Sprintf("run-%d", run+1), p, 2)
		if err != nil {
			return err
		}
		durabilityRow(r, fmt.Sprint(run+1), c)
		judgeDurability(r, run+1, c)
		lost += c.Ledger.Lost
	}
	r.figure(report.Comparison{Table: report.ProsePrefix + "stac.loss", Metric: "orders lost", At: fmt.Sprintf("%d runs", p.Repeats)}, float64(lost))
	c, err := o.killed(ctx, "control", p, 1)
	if err != nil {
		return err
	}
	durabilityRow(r, "control", c)
	r.Control = fmt.Sprintf("a grid of one copy without a sink lost %d of %d acknowledged orders, and the certificate said %s", c.Ledger.Lost, c.Orders.Acknowledged, c.Verdict)
	if c.Ledger.Lost == 0 || c.Verdict != certificate.Violated {
		r.judge(Invalid, "the control lost %d orders with verdict %s: the detector is blind", c.Ledger.Lost, c.Verdict)
	}
	return nil
}

func durabilityRow(r *Report, run string, c *certificate.Certificate) {
	promotion, outage, worst := "-", "-", "-"
	if len(c.Steps) > 0 {
		step := &c.Steps[0]
		if step.TakenOver > 0 {
			promotion = ms(step.TakenOver)
		}
		outage, worst = ms(step.Outage), ms(step.During.Max)
	}
	r.row(run, c.Replicas, c.Orders.Acknowledged, c.Orders.Created, c.Orders.Acknowledged-c.Ledger.Lost-c.Ledger.MissingInCopies, c.Ledger.Downstream, c.Ledger.Lost, c.Ledger.Duplicated,
		c.Orders.Unknown, c.Ledger.Gaps, promotion, outage, worst, 0)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

// judgeDurability holds a run against what was promised.
func judgeDurability(r *Report, run int, c *certificate.Certificate) {
	switch {
	case c.Ledger.Lost > 0 || c.Ledger.Duplicated > 0 || c.Verdict == certificate.Violated:
		// The certificate may go with the pod that made it.
		words := append(slices.Clone(c.Reasons), c.Violations[:min(len(c.Violations), 3)]...)
		r.judge(Wrong, "run %d: %d lost, %d twice: %s", run, c.Ledger.Lost, c.Ledger.Duplicated, strings.Join(words, "; "))
	case c.Verdict == certificate.Invalid:
		r.judge(Invalid, "run %d: %s", run, strings.Join(c.Reasons, "; "))
	case c.Ledger.Downstream < c.Orders.Acknowledged:
		r.judge(Wrong, "run %d: %d acknowledged, %d in the sink", run, c.Orders.Acknowledged, c.Ledger.Downstream)
	}
}

// killed runs a grid of so many copies, kills the primary of p0 in the middle, and returns the certificate.
func (o *Options) killed(ctx context.Context, name string, p published.Durability, replicas int) (*certificate.Certificate, error) {
	dir := filepath.Join(o.Dir, name)
	var args []string
	if replicas > 1 {
		args = []string{"--sink", "file", "--dir", filepath.Join(dir, "sink")}
	}
	g, err := devgrid.Start(ctx, devgrid.Options{Program: o.GridNode, Shards: 1, Replicas: replicas, MemoryMiB: 512, Args: args})
	if err != nil {
		return nil, err
	}
	defer func() { _ = g.Stop() }()
	cfg := recorder.Config{Endpoints: g.Endpoints, Replicas: replicas, Probes: replicas, Rate: p.Rate, Sessions: 2, FIX: fixorder.FIX42, Timeout: 20 * time.Second, Seed: 1,
		Patience: 30 * time.Second, GapLimit: 5 * time.Second, MaxOrders: 1 << 22, Token: "unused", Dir: dir, Say: o.Say}
	if replicas == 1 { // nothing comes back
		cfg.Timeout, cfg.Patience = 3*time.Second, 3*time.Second
	}
	for _, u := range g.HTTP {
		cfg.NodeHTTP = append(cfg.NodeHTTP, strings.TrimPrefix(u, "http://"))
	}
	rec, err := recorder.New(cfg)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- rec.Run(ctx) }()
	if err := o.inTheMiddle(ctx, rec, g, p, replicas); err != nil {
		stop()
		_ = <-ended // it was stopped
		return nil, err
	}
	if err := <-ended; err != nil {
		return nil, err
	}
	check, err := certificate.Verify(dir)
	if err != nil {
		return nil, err
	}
	if len(check.Trouble) > 0 {
		return nil, fmt.Errorf("the certificate of %s, judged again: %s", name, strings.Join(check.Trouble, "; "))
	}
	return check.Certificate, nil
}

// inTheMiddle kills the primary of p0 after AtS seconds of traffic, and ends the recording after TotalS.
func (o *Options) inTheMiddle(ctx context.Context, rec *recorder.Recorder, g *devgrid.Grid, p published.Durability, replicas int) error {
	for rec.State().Phase != api.Running {
		if err := clock.Wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
		if s := rec.State(); s.Phase == api.Failed {
			return fmt.Errorf("the recorder failed: %s", s.Error)
		}
	}
	began := time.Now()
	if err := clock.Wait(ctx, time.Duration(p.AtS)*time.Second); err != nil {
		return err
	}
	c, err := client.Dial(ctx, client.Config{Endpoints: g.Endpoints})
	if err != nil {
		return err
	}
	primary := c.Table()[0].Primary
	_ = c.Close() // it never fails
	at := slices.Index(g.Endpoints, primary.Address)
	if at < 0 {
		return fmt.Errorf("the primary of p0 is at %q, and the nodes are at %v", primary.Address, g.Endpoints)
	}
	pod, _, _ := strings.Cut(primary.ID, "/")
	if _, err := rec.Begin(0, api.Step{Repetition: 1, Fault: "pull-the-plug", Type: "PodKill", Provider: "process", What: "kill -9 of " + pod + ", primary of p0", Pods: []string{pod}}); err != nil {
		return err
	}
	if err := syscall.Kill(g.PIDs[at], syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill process %d: %w", g.PIDs[at], err)
	}
	seen := api.Witness{State: api.Seen, Message: fmt.Sprintf("process %d of %s was killed", g.PIDs[at], pod)}
	for _, e := range []api.Event{api.Injected, api.Recovered} {
		if _, err := rec.Tell(0, e, api.Note{Witness: seen}); err != nil {
			return err
		}
	}
	end := began.Add(time.Duration(p.TotalS) * time.Second)
	for time.Now().Before(end) || replicas > 1 && !over(rec) {
		if time.Since(end) > time.Minute {
			break // the certificate says what is missing
		}
		if err := clock.Wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return rec.Finish(api.Finish{Context: api.Context{Drill: published.DurabilityScenario, Suite: published.DurabilityScenario, StepsAsked: 1}})
}

func over(rec *recorder.Recorder) bool {
	s, err := rec.Step(0)
	return err == nil && s.Over
}
