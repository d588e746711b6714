package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/rounds"
	"github.com/ordergrid/ordergrid/probe/report"
)

const moveHelp = `usage: go run ./hack/bench move [--cases growth/held-10m-rate-6000] [flags]

Fills the partition of a real grid with the orders of a growth/held case, loads the grid,
and after a quarter of --duration moves the partition from its pair of nodes to another
pair, by its record, as the operator does. Prints how fast it was copied, and what the
clients saw before, while it moved, and after it. Four nodes share the machine: both pairs
hold all orders for a moment. Raise --duration where the move is not over in time.

Flags:
`

func moveCommand(ctx context.Context, args []string, out io.Writer) (err error) {
	b, c, err := begin("move", moveHelp, []string{"--duration", "80s", "--cases", "^growth/held-10m-rate-6000$", "--gate", "off"}, args, out, func(_ *bench, c *cases.Case) string {
		if c.Held == 0 || c.Shape.Rate == 0 || c.Network != "lo" {
			return "one that holds orders and submits at a rate, such as ^growth/held-1m-rate-6000$"
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
	b.say("%s: submitting %d orders ahead", c.Name, c.Held)
	m, err := b.runner.Move(ctx, at, c, b.gridSystem())
	if err != nil {
		return err
	}
	err = printMove(out, &m)
	if err == nil && m.Unsent > 0 {
		err = fmt.Errorf("%w (%d orders were due and not sent)", errEnvironment, m.Unsent)
	}
	return err
}

func printMove(out io.Writer, m *rounds.Move) error {
	const mib = 1 << 20
	p := report.NewPage(out)
	copied := report.NewTable("orders moved", "MiB a copy", "new copies", "s", "MiB/s copied", "orders/s copied")
	took := m.Took.Seconds()
	copied.Add(m.Orders, m.Bytes/mib, m.Copies, one(took), fmt.Sprintf("%.0f", float64(m.Bytes)*float64(m.Copies)/mib/took), fmt.Sprintf("%.0f", float64(m.Orders)*float64(m.Copies)/took))
	p.Table(copied)
	if m.Disturbed > 0 {
		p.Say("\n%d seconds are not counted: the hypervisor took too much of them, or of the one before\n", m.Disturbed)
	}
	seen := report.NewTable("create-to-end, us", "s", "orders/s", "p50", "p90", "p99", "p99.9", "max", "longest gap, ms", "p99 : before")
	calm := float64(m.Before.CreateToEnd.Percentile(99))
	for _, row := range []struct {
		name string
		p    *rounds.Part
	}{{"before the move", &m.Before}, {"while it moves", &m.During}, {"after it", &m.After}} {
		if row.p.For == 0 || row.p.Orders == 0 {
			seen.Add(row.name, 0, "INVALID")
			continue
		}
		cells := append([]any{row.name, fmt.Sprintf("%.0f", row.p.For.Seconds()), fmt.Sprintf("%.0f", float64(row.p.Orders)/row.p.For.Seconds())}, percentiles(row.p.CreateToEnd)...)
		seen.Add(append(cells, one(row.p.Gap.Seconds()*1e3), times(float64(row.p.CreateToEnd.Percentile(99)), calm))...)
	}
	p.Table(seen)
	return p.Err()
}

// times returns the ratio of two figures, 0 if all of it was disturbed.
func times(x, calm float64) string {
	if calm == 0 {
		return "INVALID"
	}
	return fmt.Sprintf("%.2fx", x/calm)
}

const idleHelp = `usage: go run ./hack/bench idle [flags]

Starts a pair of real nodes with 2 partitions and one with 64 beside it, asks nothing of
them, and prints the CPU time that a node takes per second, user and system, for each of
--rounds windows of --duration.

Flags:
`

// idlePartitions are those that are compared: with the first.
var idlePartitions = []int{2, 64}

func idleCommand(ctx context.Context, args []string, out io.Writer) (err error) {
	b := &bench{w: out, begin: time.Now()}
	args = append([]string{"--duration", "30s", "--warmup", "10s", "--gate", "off", "--systems", "^" + cases.Grid + "$"}, args...)
	if _, err := b.parse("idle", idleHelp, args, out); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	at, _, err := b.place(ctx, "lo")
	if err != nil {
		return err
	}
	b.say("pairs with %v partitions, %d times %v after %v", idlePartitions, b.options.Rounds, b.options.Duration, b.options.Warmup)
	all, err := b.runner.Idle(ctx, at, b.gridSystem(), idlePartitions)
	if err != nil {
		return err
	}
	p, t := report.NewPage(out), report.NewTable("partitions", "CPU ms/s of a node, median", "min", "max", "to the first")
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d.Microseconds())/1e3) }
	first := time.Duration(0)
	for i, rounds := range all {
		slices.Sort(rounds)
		median := rounds[len(rounds)/2]
		if i == 0 {
			first = median
		}
		t.Add(idlePartitions[i], ms(median), ms(rounds[0]), ms(rounds[len(rounds)-1]), times(float64(median), float64(max(1, first))))
	}
	p.Table(t)
	return p.Err()
}
