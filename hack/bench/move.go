package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/rounds"
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
	b := &bench{w: out, begin: time.Now()}
	args = append([]string{"--duration", "80s", "--cases", "^growth/held-10m-rate-6000$", "--gate", "off"}, args...)
	if _, err := b.parse("move", moveHelp, args, out); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	c, err := b.oneCase()
	if err != nil {
		return err
	}
	if c.Held == 0 || c.Shape.Rate == 0 || c.Network != "lo" {
		return fmt.Errorf("%w: CASES: value %q, allowed: one that holds orders and submits at a rate, such as ^growth/held-1m-rate-6000$", errUsage, b.cases)
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
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\norders moved\tMiB a copy\tnew copies\ts\tMiB/s copied\torders/s copied\t")
	took := m.Took.Seconds()
	fmt.Fprintf(t, "%d\t%d\t%d\t%.1f\t%.0f\t%.0f\t\n", m.Orders, m.Bytes/mib, m.Copies, took, float64(m.Bytes)*float64(m.Copies)/mib/took, float64(m.Orders)*float64(m.Copies)/took)
	if m.Disturbed > 0 {
		fmt.Fprintf(t, "\n%d seconds are not counted: the hypervisor took too much of them, or of the one before\n", m.Disturbed)
	}
	fmt.Fprintln(t, "\ncreate-to-end, us\ts\torders/s\tp50\tp90\tp99\tp99.9\tmax\tlongest gap, ms\tp99 : before\t")
	calm := float64(m.Before.CreateToEnd.Percentile(99))
	for _, row := range []struct {
		name string
		p    *rounds.Part
	}{{"before the move", &m.Before}, {"while it moves", &m.During}, {"after it", &m.After}} {
		if row.p.For == 0 || row.p.Orders == 0 {
			fmt.Fprintf(t, "%s\t0\tINVALID\t\t\t\t\t\t\t\t\n", row.name)
			continue
		}
		us := func(p float64) float64 { return float64(row.p.CreateToEnd.Percentile(p)) / 1e3 }
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t\n", row.name, row.p.For.Seconds(), float64(row.p.Orders)/row.p.For.Seconds(),
			us(50), us(90), us(99), us(99.9), us(100), row.p.Gap.Seconds()*1e3, times(us(99)*1e3, calm))
	}
	return t.Flush()
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
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\npartitions\tCPU ms/s of a node, median\tmin\tmax\tto the first\t")
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
	first := time.Duration(0)
	for i, rounds := range all {
		slices.Sort(rounds)
		median := rounds[len(rounds)/2]
		if i == 0 {
			first = median
		}
		fmt.Fprintf(t, "%d\t%.2f\t%.2f\t%.2f\t%.2fx\t\n", idlePartitions[i], ms(median), ms(rounds[0]), ms(rounds[len(rounds)-1]), float64(median)/float64(max(1, first)))
	}
	return t.Flush()
}
