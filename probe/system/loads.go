package system

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/host"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// loadShape is the least ratio of the rate of three times the rows to that of the rows: the published one is 0.89.
const loadShape = 0.75

// loadsOf returns the parameters of a mode.
func loadsOf(s published.Scenario, mode scenario.Mode) (published.LoadRows, error) {
	return ofMode(mode, s.Loads, func(p *published.LoadRows) { p.Rows = []int{5000, 15000} })
}

// loads loads files of rising length into empty grids by kubectl ordergrid load, counts what is there afterwards by reading
// the logs, and loads the first one beside other clients. The control loads a file again, and one with rows that no grid
// takes: none of them may be counted as new.
func loads(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) error {
	p, err := loadsOf(s, o.Mode)
	if err != nil {
		return err
	}
	exact, _, err := s.Loads()
	if err != nil {
		return err
	}
	r.Columns = []string{"loader", "rows", "traffic", "seconds", "rows/s", "ratio to first", "published s", "published ratio"}
	r.Differences = append(r.Differences, "rows are orders of one type, loaded from CSV and from FIX logs; loads from a database are tested by gateway/load",
		"the times are those of the program, with its start")
	for _, loader := range []string{"csv", "fix"} {
		first := 0.0
		for i, rows := range p.Rows {
			rate, err := o.loadOne(ctx, r, d, p, loader, rows, 0, first)
			if err != nil {
				return err
			}
			if loader == "csv" {
				loadFigures(r, d, exact.Rows, i, rows, rate)
			}
			if i == 0 {
				first = rate
			} else if rows == 3*p.Rows[0] && rate/first < loadShape {
				r.judge(Fail, "%s: %d rows at %.2f of the rate of %d, allowed: %.2f or more (published %.2f)", loader, rows, rate/first, p.Rows[0], loadShape, d.LoadRatio(3))
			}
		}
		if loader == "csv" {
			if _, err := o.loadOne(ctx, r, d, p, loader, p.Rows[0], p.Users, first); err != nil {
				return err
			}
		}
	}
	for _, loader := range []string{"JDBC", "JEDI"} {
		if was := d.Number("coherence", "5.2", loader, "avg_s"); was > 0 {
			r.missing(report.Comparison{Table: "5.2", Row: loader, Metric: "rows/s", Published: 1e6 / was, Derived: true}, "loads from a database are tested by gateway/load, and not measured")
		}
	}
	return o.loadControl(ctx, r)
}

// loadFigures puts the i-th load of a file beside the i-th published one: rows/s, since the files have other lengths.
func loadFigures(r *Report, d *published.Data, exact []int, i, rows int, rate float64) {
	if i >= len(exact) {
		return
	}
	c := report.Comparison{Table: "5.1", Row: fmt.Sprint(exact[i]), Metric: "rows/s, mean", Published: float64(exact[i]) / d.LoadSeconds(exact[i]), Derived: true}
	if rows != exact[i] {
		c.At = fmt.Sprintf("%d rows", rows)
	}
	r.figure(c, rate)
	if i == 0 {
		c.Table, c.Row = "5.2", "File load"
		r.figure(c, rate)
	}
}

// result is what kubectl ordergrid load printed.
type result struct{ rows, accepted, present, refused int64 }

var printed = regexp.MustCompile(`(?m)^([\d,]+) rows in .*: ([\d,]+) accepted, ([\d,]+) present, ([\d,]+) refused$`)

// load runs the program on a file; that rows were refused is no error.
func (o *Options) load(ctx context.Context, g *devgrid.Grid, file string) (result, time.Duration, error) {
	program, err := devgrid.Find(o.Plugin, "kubectl-ordergrid")
	if err != nil {
		return result{}, 0, err
	}
	begun := time.Now()
	out, err := exec.CommandContext(ctx, program, "load", "dev", file, "--endpoint", strings.Join(g.Endpoints, ","), "--state", file+".state-"+strconv.FormatInt(begun.UnixNano(), 36)).CombinedOutput()
	took := time.Since(begun)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil
	}
	m := printed.FindSubmatch(out)
	if err != nil || m == nil {
		return result{}, took, fmt.Errorf("%s load %s: %w: %.500s", program, file, err, out)
	}
	var n [4]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(strings.ReplaceAll(string(m[i+1]), ",", ""), 10, 64); err != nil {
			return result{}, took, err
		}
	}
	return result{n[0], n[1], n[2], n[3]}, took, nil
}

// grid starts an empty grid for so many orders.
func (o *Options) grid(ctx context.Context, orders int) (*devgrid.Grid, error) {
	return o.pair(ctx, gridMiB(orders))
}

// pair starts a grid of two nodes, unless this machine has not as much memory.
func (o *Options) pair(ctx context.Context, nodeMiB int64, args ...string) (*devgrid.Grid, error) {
	return o.nodes(ctx, 1, 2, nodeMiB, args...)
}

// nodes starts a grid of so many shards and copies, unless this machine has not as much memory.
func (o *Options) nodes(ctx context.Context, shards, replicas int, nodeMiB int64, args ...string) (*devgrid.Grid, error) {
	if there, n := host.AvailableMiB(), int64(shards*replicas); there > 0 && n*nodeMiB > there {
		return nil, fmt.Errorf("%d nodes need %d MiB each, and this machine has %d MiB available: use --scaled or --quick", n, nodeMiB, there)
	}
	return devgrid.Start(ctx, devgrid.Options{Program: o.GridNode, Shards: shards, Replicas: replicas, MemoryMiB: nodeMiB, Args: args})
}

// gridMiB is the memory of a node for so many orders.
func gridMiB(orders int) int64 { return 512 + int64(orders)>>10 }

// loadOne measures one load and adds its row.
func (o *Options) loadOne(ctx context.Context, r *Report, d *published.Data, p published.LoadRows, loader string, rows, users int, first float64) (rate float64, err error) {
	g, err := o.grid(ctx, 2*rows)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	file := filepath.Join(o.Dir, fmt.Sprintf("%d.%s", rows, loader))
	if err := writeRows(file, loader, rows, 0); err != nil {
		return 0, err
	}
	o.Say("load %d rows from %s, %d users beside it", rows, loader, users)
	beside, err := traffic(ctx, g, users)
	if err != nil {
		return 0, err
	}
	n, took, err := o.load(ctx, g, file)
	others := beside()
	if err != nil {
		return 0, err
	}
	if n.accepted != int64(rows) || n.present != 0 || n.refused != 0 {
		r.judge(Wrong, "%s, %d rows: %+v", loader, rows, n)
	}
	if there, err := counted(ctx, g); err != nil {
		return 0, err
	} else if there != int64(rows)+others {
		r.judge(Wrong, "%s: %d rows and %d orders beside them, and the logs have %d", loader, rows, others, there)
	}
	rate = float64(rows) / took.Seconds()
	ratio, was, wasRatio := "-", "-", "-"
	if first > 0 {
		ratio = fmt.Sprintf("%.2f", rate/first)
	}
	if s := d.LoadSeconds(rows); s > 0 && users == 0 {
		was = fmt.Sprintf("%.1f", s)
	}
	if times := rows / p.Rows[0]; users == 0 && times > 1 {
		wasRatio = fmt.Sprintf("%.2f", d.LoadRatio(times))
	}
	r.row(loader, rows, users, fmt.Sprintf("%.2f", took.Seconds()), fmt.Sprintf("%.0f", rate), ratio, was, wasRatio)
	return rate, nil
}

// traffic submits from so many clients until the result is called, which returns how many orders were acknowledged.
func traffic(ctx context.Context, g *devgrid.Grid, users int) (stop func() int64, err error) {
	var acked atomic.Int64
	var ending atomic.Bool
	var all sync.WaitGroup
	stop = func() int64 { ending.Store(true); all.Wait(); return acked.Load() }
	for range users {
		c, err := client.Dial(ctx, client.Config{Endpoints: g.Endpoints, RequestTimeout: time.Minute})
		if err != nil {
			return nil, errors.Join(err, fmt.Errorf("%d orders were sent already", stop()))
		}
		maker, err := fixorder.NewMaker(fixorder.FIX42, fixorder.ID{Run: fixorder.NewRun()})
		if err != nil {
			return nil, err
		}
		all.Go(func() {
			defer c.Close() //nolint:errcheck // it never fails
			for i := int64(0); !ending.Load(); i++ {
				if _, err := c.Submit(ctx, maker.Make(i, i+1, time.Now(), time.Now())); err != nil {
					return
				}
				acked.Add(1)
			}
		})
	}
	return stop, nil
}

// counted reads the log of every partition's primary and counts its orders.
func counted(ctx context.Context, g *devgrid.Grid) (n int64, err error) {
	c, err := client.Dial(ctx, client.Config{Endpoints: g.Endpoints, RequestTimeout: time.Minute})
	if err != nil {
		return 0, err
	}
	defer c.Close() //nolint:errcheck // it never fails
	for _, p := range c.Table() {
		if _, err := c.ReadLog(ctx, p.ID, "", 1, func(e client.LogEntry) error {
			if e.Kind.IsOrder() {
				n++
			}
			return nil
		}); err != nil {
			return n, err
		}
	}
	return n, nil
}

// loadControl loads a file twice, and one with rows that are refused.
func (o *Options) loadControl(ctx context.Context, r *Report) (err error) {
	const rows, bad = 1000, 10
	g, err := o.grid(ctx, rows)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	file := filepath.Join(o.Dir, "control.csv")
	if err := writeRows(file, "csv", rows, bad); err != nil {
		return err
	}
	one, _, err := o.load(ctx, g, file)
	if err != nil {
		return err
	}
	two, _, err := o.load(ctx, g, file)
	if err != nil {
		return err
	}
	there, err := counted(ctx, g)
	if err != nil {
		return err
	}
	r.Control = fmt.Sprintf("%d rows of which %d are no orders: %d accepted, %d refused; the same file again: %d accepted, %d present; the logs have %d", rows, bad, one.accepted, one.refused, two.accepted, two.present, there)
	if one != (result{rows, rows - bad, 0, bad}) || two != (result{rows, 0, rows - bad, bad}) || there != rows-bad {
		r.judge(Invalid, "the control counted %+v, then %+v, and the logs have %d: the counts are not to be believed", one, two, there)
	}
	return nil
}

// writeRows writes a file of orders; the last bad ones have no quantity.
func writeRows(file, loader string, rows, bad int) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	defer func() { err = errors.Join(err, w.Flush(), f.Close()) }()
	if loader == "csv" {
		fmt.Fprintln(w, "ClOrdID,Account,Symbol,Side,OrderQty,OrdType,Price,TransactTime")
		for i := range rows {
			quantity := "100"
			if i >= rows-bad {
				quantity = "many"
			}
			fmt.Fprintf(w, "LOAD-%08d,ACC%03d,SYM%02d,%d,%s,2,125.25,20261123-09:30:00\n", i, i%500, i%64, 1+i%2, quantity)
		}
		return nil
	}
	maker, err := fixorder.NewMaker(fixorder.FIX44, fixorder.ID{Run: 1})
	if err != nil {
		return err
	}
	at := time.Date(2026, 11, 23, 9, 30, 0, 0, time.UTC)
	for i := range int64(rows) {
		if _, err := w.Write(append(maker.Make(i, i+1, at, at), '\n')); err != nil {
			return err
		}
	}
	return nil
}
