package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/hack/bench/rounds"
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
	b := &bench{w: out, begin: time.Now()}
	args = append([]string{"--duration", "10s", "--cases", "^growth/held-10m-rate-6000$", "--gate", "off"}, args...)
	if _, err := b.parse("garbage", garbageHelp, args, out); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	c, err := b.oneCase()
	if err != nil {
		return err
	}
	if c.Held == 0 || c.Shape.Op != generator.Submit {
		return fmt.Errorf("%w: CASES: value %q, allowed: one that holds orders and submits, such as ^growth/held-1m-rate-6000$", errUsage, b.cases)
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
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nnode\torders held\tresident MiB\theap MiB\tlive heap MiB\tallocations/order\tloop faults\tloop stalls\t")
	for _, n := range g.Nodes {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.1f\t%.1f\t%.5f\t%d\t%d\t\n", n.Name, n.Held, n.Resident/mib, float64(n.Heap)/mib, float64(n.Live)/mib,
			n.AllocsPerOrder, n.LoopFaults, n.LoopStalls)
	}
	fmt.Fprintln(t, "\ncollections\tas they come\tpauses\tover 1 ms\tlongest up to, us\tforced\tpauses\tover 1 ms\tlongest up to, us\t")
	for _, n := range g.Nodes {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%.0f\t%d\t%d\t%d\t%.0f\t\n", n.Name, n.Natural.Count, n.Natural.Pauses, n.Natural.Long, n.Natural.Longest*1e6,
			n.Forced.Count, n.Forced.Pauses, n.Forced.Long, n.Forced.Longest*1e6)
	}
	fmt.Fprintln(t, "\nsend-to-end, us\tp50\tp90\tp99\tp99.9\tmax\torders\t")
	for _, row := range []struct {
		name string
		r    *generator.Result
	}{{"collections as they come", &g.Natural}, {"a collection every second", &g.Forced}} {
		h := row.r.SendToEnd
		us := func(p float64) float64 { return float64(h.Percentile(p)) / 1e3 }
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%d\t\n", row.name, us(50), us(90), us(99), us(99.9), us(100), row.r.Orders)
	}
	return t.Flush()
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
