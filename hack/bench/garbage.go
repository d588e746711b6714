package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/hack/bench/rounds"
	"github.com/ordergrid/ordergrid/probe/report"
)

const garbageHelp = `usage: go run ./hack/bench garbage [--cases growth/held-10m-rate-6000] [flags]

Fills a real grid with the orders of a growth/held case, loads it, and loads it again
while every node is made to collect garbage once a second. Prints what the nodes say of
their heap and pauses, and what the clients saw. It fails when the live heap of a node
exceeds 64 MiB, or a pause 1 ms that its collector makes by itself. Forced collections are
there to show what one costs; how long they stop a node depends on how busy the cores are.

Flags:
`

// What a node that holds 10 million orders has to keep to.
const maxLiveHeap = 64 << 20

func garbageCommand(ctx context.Context, args []string, out io.Writer) (err error) {
	b, c, err := begin("garbage", garbageHelp, []string{"--duration", "10s", "--cases", "^growth/held-10m-rate-6000$", "--gate", "off"}, args, out, func(_ *bench, c *cases.Case) string {
		if c.Held == 0 || c.Shape.Op != generator.Submit {
			return "one that holds orders and submits, such as ^growth/held-1m-rate-6000$"
		}
		return ""
	})
	if b == nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	at, err := b.onGrid(ctx, c)
	if err != nil {
		return err
	}
	b.say("%s: submitting %d orders ahead, then %v of load, twice", c.Name, c.Held, b.options.Duration)
	g, err := b.runner.Garbage(ctx, at, c, b.gridSystem())
	if err != nil {
		return err
	}
	return errors.Join(printGarbage(out, &g), judgeGarbage(&g))
}

func printGarbage(out io.Writer, g *rounds.Garbage) error {
	const mib = 1 << 20
	p := report.NewPage(out)
	nodes := report.NewTable("node", "orders held", "resident MiB", "heap MiB", "live heap MiB", "allocations/order", "loop faults", "loop stalls")
	pauses := report.NewTable("collections", "as they come", "pauses", "over 1 ms", "longest up to, us", "forced", "pauses", "over 1 ms", "longest up to, us")
	for _, n := range g.Nodes {
		nodes.Add(n.Name, n.Held, n.Resident/mib, one(float64(n.Heap)/mib), one(float64(n.Live)/mib), fmt.Sprintf("%.5f", n.AllocsPerOrder), n.LoopFaults, n.LoopStalls)
		pauses.Add(n.Name, n.Natural.Count, n.Natural.Pauses, n.Natural.Long, fmt.Sprintf("%.0f", n.Natural.Longest*1e6),
			n.Forced.Count, n.Forced.Pauses, n.Forced.Long, fmt.Sprintf("%.0f", n.Forced.Longest*1e6))
	}
	latency := report.NewTable("send-to-end, us", "p50", "p90", "p99", "p99.9", "max", "orders")
	for _, row := range []struct {
		name string
		r    *generator.Result
	}{{"collections as they come", &g.Natural}, {"a collection every second", &g.Forced}} {
		latency.Add(append(append([]any{row.name}, percentiles(row.r.SendToEnd)...), row.r.Orders)...)
	}
	p.Table(nodes)
	p.Table(pauses)
	p.Table(latency)
	return p.Err()
}

// one formats a figure with one decimal.
func one(v float64) string { return fmt.Sprintf("%.1f", v) }

// percentiles are p50, p90, p99, p99.9 and the greatest, in microseconds.
func percentiles(h interface{ Percentile(float64) int64 }) (cells []any) {
	for _, p := range []float64{50, 90, 99, 99.9, 100} {
		cells = append(cells, one(float64(h.Percentile(p))/1e3))
	}
	return cells
}

func judgeGarbage(g *rounds.Garbage) (err error) {
	for _, n := range g.Nodes {
		switch {
		case n.Forced.Count == 0:
			err = errors.Join(err, fmt.Errorf("%s: it was never made to collect, so its live heap is not known", n.Name))
		case n.Live > maxLiveHeap:
			err = errors.Join(err, fmt.Errorf("%s: live heap %d bytes, allowed: at most %d", n.Name, n.Live, maxLiveHeap))
		}
		if n.Natural.Long > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %d of %d pauses longer than 1 ms without a forced collection, allowed: none", n.Name, n.Natural.Long, n.Natural.Pauses))
		}
	}
	return err
}
