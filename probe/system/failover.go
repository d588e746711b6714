package system

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

const (
	// A question is slow that takes more than calmTimes the median of before, and longer than any of before. They are as
	// before again when calmRun or more follow the last slow one.
	calmTimes, calmRun = 3, 20
	// blind is how long the control is asked.
	blind = 5 * time.Second
)

// failure is what is killed in a run.
type failure struct {
	name   string
	server bool
	users  bool
	fact   string // the published one: how much slower the slowest question was, if it says so, and seconds until it was as before
}

var failures = []failure{
	{"node", false, false, "bar.nodefail"}, {"node", false, true, "bar.nodefail.load"},
	{"server", true, false, "bar.serverfail"}, {"server", true, true, "bar.serverfail.load"},
}

// failoverOf returns the parameters of a mode.
func failoverOf(d *published.Data, s published.Scenario, mode scenario.Mode) (published.Failover, error) {
	return ofMode(mode, of(d.Failover, s), func(p *published.Failover) {
		p.Rows, p.AtS, p.ServerS, p.TotalS = p.Rows/5, 2, 2, 6
	})
}

// failovers repeats a question while a node, and then a server, is killed, without and beside other clients. The control is
// a grid of one copy, which cannot answer.
func failovers(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) error {
	p, err := failoverOf(d, s, o.Mode)
	if err != nil {
		return err
	}
	r.Columns = []string{"killed", "other clients", "questions", "p50 before ms", "slowest ms", "times", "as before after s", "not answered", "wrong rows", "published times", "published s"}
	r.Differences = append(r.Differences, "processes of one machine are killed with SIGKILL; a server is the nodes of which no two have the same shard, and they start again at once, empty",
		fmt.Sprintf("%d servers of %d nodes, two copies; the question is Activity Trade Status, 1,000 of %d rows; other clients: %d, which ask for an account, write an order and rest for %d ms", p.Servers, p.Nodes, p.Rows, p.Users, p.SleepMs),
		fmt.Sprintf("as before: after the last question that took more than %d times the median of before, and longer than all before; the report's times are read off its plots", calmTimes))
	r.SeriesTitle = fmt.Sprintf("Slowest question of each 0.1 s; a node is killed after %d s, a server after %d", p.AtS, p.ServerS)
	for _, f := range failures {
		if err := o.failover(ctx, d, r, p, f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return o.failoverControl(ctx, r, p)
}

// failover is one run.
func (o *Options) failover(ctx context.Context, d *published.Data, r *Report, p published.Failover, f failure) (err error) {
	users, at := 0, p.AtS
	if f.users {
		users = p.Users
	}
	if f.server {
		at = p.ServerS
	}
	k, err := o.newCachesOn(ctx, published.Caches{Rows: p.Rows, Caches: 2, Users: users, SleepMs: p.SleepMs}, p.Servers*p.Nodes/p.Replicas, p.Replicas)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.end()) }()
	o.Say("a %s is killed after %d s, beside %d clients", f.name, at, users)
	stop := k.beside(ctx)
	begun := time.Now()
	killed := make(chan error, 1)
	go func() {
		if err := clock.Wait(ctx, time.Duration(at)*time.Second); err != nil {
			killed <- err
			return
		}
		killed <- k.kill(f.server, p.Nodes)
	}()
	all := k.repeat(ctx, both(equal(tagCache, "A0"), equal(tagStatus, "X")), time.Duration(p.TotalS)*time.Second)
	if err := errors.Join(<-killed, stop()); err != nil {
		return err
	}
	if err := k.audit(ctx, r, f, users); err != nil {
		return err
	}
	judgeFailover(d, r, f, users, all, time.Duration(at)*time.Second)
	o.Say("%d questions in %s", len(all), time.Since(begun).Round(time.Second))
	return nil
}

// answered is one question, by the time since the first.
type answered struct {
	at, took time.Duration
	rows     int
	err      error
}

// repeat asks a question, one after the other, for a time.
func (k *caches) repeat(ctx context.Context, where query.Expr, lasts time.Duration) (all []answered) {
	for begun := time.Now(); ; {
		at := time.Since(begun)
		if at >= lasts || ctx.Err() != nil {
			return all
		}
		n, err := k.ask(ctx, where)
		all = append(all, answered{at, time.Since(begun) - at, n, err})
	}
}

// kill kills the primary of partition 0, or the nodes of its server: those of its ordinal in the shards 0 to n-1.
func (k *caches) kill(server bool, n int) error {
	primary := k.c.Table()[0].Primary
	shard, ordinal, err := nodeOf(primary.ID)
	if err != nil {
		return err
	}
	dead := map[string]bool{primary.Address: true}
	for _, p := range k.c.Table() {
		for _, m := range p.Members {
			s, o, err := nodeOf(m.ID)
			if err != nil {
				return err
			}
			if server && o == ordinal && s/n == shard/n {
				dead[m.Address] = true
			}
		}
	}
	if server && len(dead) != n {
		return fmt.Errorf("%d nodes of a server are known, it has %d", len(dead), n)
	}
	for i, address := range k.grid.Endpoints {
		if !dead[address] {
			continue
		}
		if err := syscall.Kill(k.grid.PIDs[i], syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill process %d: %w", k.grid.PIDs[i], err)
		}
		delete(dead, address)
	}
	if len(dead) > 0 {
		return fmt.Errorf("no process has the addresses %v", dead)
	}
	return nil
}

// nodeOf is the place of a node in the grid, by its name.
func nodeOf(id string) (shard, ordinal int, err error) {
	pod, _, _ := strings.Cut(id, "/")
	if _, err := fmt.Sscanf(pod, "dev-s%d-%d", &shard, &ordinal); err != nil {
		return 0, 0, fmt.Errorf("node %q: want a name like dev-s0-1: %w", id, err)
	}
	return shard, ordinal, nil
}

// audit counts all rows after a run.
func (k *caches) audit(ctx context.Context, r *Report, f failure, users int) error {
	for _, cache := range []string{"P0", "A0"} {
		n, err := k.count(ctx, equal(tagCache, cache))
		if err != nil {
			return err
		}
		if n != k.p.Rows {
			r.judge(Wrong, "%s, beside %d clients: %d rows of %s are left of %d", f.name, users, n, cache, k.p.Rows)
		}
	}
	// A question is answered as of what its copy knows, and at least of these.
	k.after = append(k.after, slices.Collect(maps.Values(k.written.last))...)
	n, err := k.count(ctx, equal(view.Account, user))
	if err != nil {
		return err
	}
	// One of each client may be stored and not yet acknowledged when they stop.
	if least := k.written.rows; n < least || n > least+users {
		r.judge(Wrong, "%s, beside %d clients: %d of their rows are there, %d were acknowledged", f.name, users, n, least)
	}
	return nil
}

// judgeFailover adds the row of a run.
func judgeFailover(d *published.Data, r *Report, f failure, users int, all []answered, kill time.Duration) {
	var before []float64
	var slowest time.Duration
	refused, wrong := 0, 0
	for _, a := range all {
		switch {
		case a.err != nil:
			refused++
		case a.rows != hotRows["X"]:
			wrong++
		}
		if a.at+a.took <= kill {
			before = append(before, a.took.Seconds())
		} else {
			slowest = max(slowest, a.took)
		}
	}
	where := fmt.Sprintf("%s, beside %d clients", f.name, users)
	if len(before) < calmRun {
		r.judge(Invalid, "%s: %d questions before it was killed, needed: %d", where, len(before), calmRun)
		return
	}
	base := median(before)
	times, after := slowest.Seconds()/base, "-"
	again, calm := recovery(all, kill, base)
	if calm {
		after = fmt.Sprintf("%.2f", again.Seconds())
	}
	if wrong > 0 {
		r.judge(Wrong, "%s: %d of %d answers have another number of rows than %d", where, wrong, len(all), hotRows["X"])
	}
	wasTimes, was := "-", 0.0
	if list := d.FactNumbers(f.fact); len(list) == 2 {
		wasTimes, was = fmt.Sprintf("%g", list[0]), list[1]
		r.beside(report.Comparison{Table: report.ProsePrefix + f.fact, Metric: "slowest question by the median of before", Published: list[0], At: where}, times)
	} else {
		was, _ = d.FactNumber(f.fact)
	}
	r.Series = append(r.Series, worstOf(all, where, 100*time.Millisecond))
	r.row(f.name, users, len(all), fmt.Sprintf("%.2f", 1e3*base), fmt.Sprintf("%.1f", 1e3*slowest.Seconds()), fmt.Sprintf("%.1f", times), after, refused, wrong, wasTimes, fmt.Sprintf("%g", was))
	switch {
	case !calm:
		r.judge(Fail, "%s: questions are not as before until the end (published: after %g s)", where, was)
	case again.Seconds() > was:
		r.judge(Fail, "%s: questions are as before after %.1f s, allowed: the published %g", where, again.Seconds(), was)
	}
	if calm {
		r.figure(report.Comparison{Table: report.ProsePrefix + f.fact, Metric: "as before after", Unit: "s", Published: was, At: where}, again.Seconds())
	}
}

// worstOf are the slowest questions of each stretch of time.
func worstOf(all []answered, name string, stretch time.Duration) Series {
	s := Series{Name: name, Unit: "ms"}
	for _, a := range all {
		at, took := a.at.Truncate(stretch).Seconds(), 1e3*a.took.Seconds()
		if n := len(s.X); n > 0 && s.X[n-1] == at {
			s.Y[n-1] = max(s.Y[n-1], took)
			continue
		}
		s.X, s.Y = append(s.X, at), append(s.Y, took)
	}
	return s
}

// recovery is how long after a kill the last slow question ended; false: questions are slow until the end. base is the median
// of before, in seconds.
func recovery(all []answered, kill time.Duration, base float64) (after time.Duration, ok bool) {
	slow := time.Duration(calmTimes * base * float64(time.Second))
	for _, a := range all {
		if a.at+a.took <= kill {
			slow = max(slow, a.took)
		}
	}
	run := 0
	for _, a := range all {
		end := a.at + a.took
		switch {
		case end <= kill:
		case a.err != nil || a.took > slow:
			run, after = 0, end-kill
		default:
			run++
		}
	}
	return after, run >= calmRun
}

// failoverControl kills the only copy: a question that finds all rows then was not asked of the grid.
func (o *Options) failoverControl(ctx context.Context, r *Report, p published.Failover) (err error) {
	k, err := o.newCachesOn(ctx, published.Caches{Rows: max(hotRows["X"], p.Rows/50), Caches: 2}, 1, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.end()) }()
	where := both(equal(tagCache, "A0"), equal(tagStatus, "X"))
	before, err := k.ask(ctx, where)
	if err != nil {
		return err
	}
	if err := k.kill(false, 1); err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, blind)
	defer cancel()
	after, err := k.ask(asking, where)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.Control = fmt.Sprintf("the only copy was killed: a question found %d rows before it, and after it %d (%v)", before, after, err)
	if before != hotRows["X"] || err == nil && after == before {
		r.judge(Invalid, "the control found %d rows with the only copy killed, and %d before: lost rows would not be seen", after, before)
	}
	return nil
}
