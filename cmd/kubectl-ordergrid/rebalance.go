package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

type rebalanceFlags struct {
	listFlags
	dryRun, wait, nodes, direct bool
	shards                      int32
	timeout                     time.Duration
}

func rebalanceCommand(k *kubeFlags) *cobra.Command {
	f := rebalanceFlags{}
	cmd := &cobra.Command{
		Use:   "rebalance GRID",
		Short: "Start pending moves of partitions between shards now, or show them",
		Long: `Partitions move to other shards automatically: when spec.shards changes, and when the shards do not have the same
number, give or take one. With spec.rebalance.window, this lets them begin now, until every
one is where it belongs: it sets the annotation ` + api.AnnotationRebalanceNow + ` of the OrderGrid. An objective
that orders miss and suspected data loss still hold them. No order fails while a partition moves.

--dry-run writes nothing and prints which partitions would move, in the operator's order, by the records as they are now:

  BYTES   that the orders of the partition take in memory, according to its primary; each of its copies takes as many
  ABOUT   how long it copies at most at that rate: spec.rebalance.bandwidth for all that move at a time, or
          spec.replication.learnerRate of a pod
  STATE   "under way", "first" for those that begin at once, "then" for those after them

With --shards it prints what a change of spec.shards to that number would move. It does not check whether pods are ready.

--wait follows until every partition is where it belongs, with a line for each move begun and done.

Sizes are asked of the nodes, through the API server (needs permission to port-forward to the pods), or with --direct at
their pod addresses (inside the cluster). --nodes=false asks none.

Exit codes: 0 done, requested, or nothing has to move; 1 not in time; 2 wrong usage; 4 failed; 130 interrupted while
following, the request stays in effect.`,
		Example: `  kubectl ordergrid rebalance trades -n trading --dry-run
  kubectl ordergrid rebalance trades --dry-run --shards 3
  kubectl ordergrid rebalance trades --wait --timeout 30m`,
		Args: oneGrid,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			cluster, err := k.connect()
			if err != nil {
				return err
			}
			return f.run(cmd, cluster, args[0])
		},
	}
	f.register(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.dryRun, "dry-run", false, "print what would move, and change nothing")
	fl.Int32Var(&f.shards, "shards", 0, "with --dry-run: as if spec.shards were this")
	fl.BoolVar(&f.wait, "wait", false, "follow until every partition is where it belongs")
	fl.DurationVar(&f.timeout, "timeout", time.Hour, "with --wait: for how long")
	fl.BoolVar(&f.nodes, "nodes", true, "ask the nodes how large the partitions are")
	fl.BoolVar(&f.direct, "direct", false, "connect to pod addresses without a tunnel through the API server")
	return cmd
}

func (f *rebalanceFlags) check(cmd *cobra.Command) error {
	if err := f.listFlags.check(); err != nil {
		return err
	}
	shards := cmd.Flags().Changed("shards")
	switch {
	case shards && !f.dryRun:
		return usageError{fmt.Errorf("--shards %d without --dry-run: this command does not change spec.shards; kubectl scale og GRID --replicas=%d does", f.shards, f.shards)}
	case shards && (f.shards < 1 || f.shards > maxShards):
		return usageError{fmt.Errorf("--shards: value %d, allowed: 1 to %d", f.shards, maxShards)}
	case f.dryRun && f.wait:
		return usageError{fmt.Errorf("--dry-run and --wait exclude each other: a dry run begins nothing")}
	case f.timeout <= 0:
		return usageError{fmt.Errorf("--timeout: value %v, allowed: more than 0s", f.timeout)}
	}
	return nil
}

// maxShards is the API server's limit.
const maxShards = 256

func (f *rebalanceFlags) run(cmd *cobra.Command, c *cluster, name string) error {
	ctx := cmd.Context()
	grid, err := c.grid(ctx, name)
	if err != nil {
		return err
	}
	if f.shards > grid.Spec.Partitions {
		return usageError{fmt.Errorf("--shards: value %d, allowed: 1 to %d, the partitions of %s", f.shards, min(maxShards, grid.Spec.Partitions), name)}
	}
	parts, err := c.partitions(ctx, name)
	if err != nil {
		return err
	}
	if have, want := len(parts), int(grid.Spec.Partitions); have < want {
		return fmt.Errorf("%d of the %d GridPartitions of %s are there; nothing moves before all are", have, want, name)
	}
	var answers map[string]answer
	if f.nodes {
		pages := newPages(c, name, f.direct)
		defer pages.close()
		if answers, err = pages.status(ctx); err != nil {
			return err
		}
	}
	plan := planOf(grid, parts, answers, f.shards)
	if !f.dryRun && len(plan.Moves)+len(plan.Waiting) > 0 {
		plan.Requested = time.Now().UTC().Format(time.RFC3339Nano)
		if err := c.annotateObject(ctx, "ordergrids", name, api.AnnotationRebalanceNow, plan.Requested, "-edit"); err != nil {
			return err
		}
	}
	out := cmd.OutOrStdout()
	if err := f.write(out, plan, view{colors: colors(cmd)}); err != nil || plan.Requested == "" || !f.wait {
		return err
	}
	if f.output == formatJSON || f.output == formatYAML {
		out = cmd.ErrOrStderr() // stdout has only the document
	}
	w := &moveFollower{cluster: c, grid: name, asked: plan.Requested, out: out, began: time.Now(), moves: map[int32]api.PartitionMove{}}
	return w.run(ctx, f.timeout)
}

// write prints a plan.
func (f *rebalanceFlags) write(w io.Writer, p *rebalancePlan, v view) error {
	if done, err := f.encoded(w, p); done {
		return err
	}
	if len(p.Moves) > 0 {
		t := &table{colors: v.colors}
		t.row("PARTITION", "FROM", "TO", "BYTES", "ABOUT", "STATE")
		for i := range p.Moves {
			m := &p.Moves[i]
			state := cell{text: m.State}
			if m.State == moveUnderWay {
				state.color = yellow
			}
			t.row(m.Name, shardsText(m.From), m.To, sizeText(m.Bytes), secondsText(m.Seconds), state)
		}
		if err := t.write(w); err != nil {
			return err
		}
	}
	for _, text := range p.Waiting {
		fmt.Fprintln(w, text)
	}
	_, err := fmt.Fprintln(w, p.summary())
	return err
}

func shardsText(shards []int32) string {
	var text []string
	for _, shard := range shards {
		text = append(text, fmt.Sprint(shard))
	}
	return strings.Join(text, "+")
}

// sizeText is a number of bytes for users, "?" if it is not known.
func sizeText(bytes *int64) string {
	if bytes == nil {
		return "?"
	}
	const units = "KMGTPE"
	if *bytes < 1<<10 {
		return fmt.Sprintf("%d B", *bytes)
	}
	v, i := float64(*bytes)/(1<<10), 0
	for ; v >= 999.95 && i < len(units)-1; i++ {
		v /= 1 << 10
	}
	return fmt.Sprintf("%.1f %ciB", v, units[i])
}

// secondsText is a remaining time, "?" if it is not known.
func secondsText(seconds *float64) string {
	switch {
	case seconds == nil:
		return "?"
	case *seconds < 1:
		return "1s"
	}
	return time.Duration(min(*seconds, 1e9) * float64(time.Second)).Round(time.Second).String()
}

// moveFollower reports moves of partitions, until they are complete.
type moveFollower struct {
	cluster *cluster
	grid    string
	asked   string // the annotation's value
	out     io.Writer
	began   time.Time

	last    *api.OrderGrid
	moves   map[int32]api.PartitionMove // under way at the last poll
	printed string                      // last line of progress
}

// run polls until the operator reports the request as done.
func (w *moveFollower) run(ctx context.Context, timeout time.Duration) error {
	interrupted := ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		done := false
		grid, err := w.cluster.grid(ctx, w.grid)
		if err == nil {
			done, err = w.look(ctx, grid)
		}
		if done || err != nil && ctx.Err() == nil && !mayPass(err) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if interrupted.Err() != nil {
				return exitError(exitInterrupted)
			}
			fmt.Fprintf(w.out, "%s: not done after %v: %s; the request stays until it is, or until you remove the annotation %s\n",
				w.grid, timeout, orDash(w.printed), api.AnnotationRebalanceNow)
			if w.last != nil {
				printCondition(w.out, w.last, api.ConditionProgressing)
			}
			return exitError(exitNotDone)
		}
	}
}

// look reports changes of status.
func (w *moveFollower) look(ctx context.Context, grid *api.OrderGrid) (done bool, err error) {
	w.last = grid
	now := map[int32]api.PartitionMove{}
	ended, err := w.ended(ctx, grid)
	if err != nil {
		return false, err // and poll all of it again
	}
	for _, m := range grid.Status.Moves {
		now[m.Partition] = m
		if before, known := w.moves[m.Partition]; !known || before.To != m.To {
			text := fmt.Sprintf("p%d moves from shard %s to shard %d", m.Partition, shardsText(m.From), m.To)
			if m.Bytes > 0 {
				text += ", " + sizeText(&m.Bytes)
			}
			fmt.Fprintln(w.out, text)
		}
	}
	for _, text := range ended {
		fmt.Fprintln(w.out, text)
	}
	w.moves = now
	done = grid.Status.LastHandledRebalance == w.asked
	if given := grid.Annotations[api.AnnotationRebalanceNow]; !done && given != w.asked {
		fmt.Fprintf(w.out, "%s: the annotation %s was changed or removed; moves under way continue\n", w.grid, api.AnnotationRebalanceNow)
		return true, exitError(exitNotDone)
	}
	if done {
		fmt.Fprintf(w.out, "%s: every partition is where it belongs, after %v\n", w.grid, time.Since(w.began).Round(time.Second))
		return true, nil
	}
	w.progress(grid)
	return false, nil
}

// ended is a line for each partition that was moving at the last poll, and no longer is.
func (w *moveFollower) ended(ctx context.Context, grid *api.OrderGrid) (lines []string, err error) {
	for _, n := range slices.Sorted(maps.Keys(w.moves)) {
		if slices.ContainsFunc(grid.Status.Moves, func(m api.PartitionMove) bool { return m.Partition == n }) {
			continue
		}
		p, err := w.cluster.partition(ctx, api.PartitionName(w.grid, n))
		if err != nil {
			return nil, err
		}
		text := fmt.Sprintf("p%d is on shard %d, %d of %d copies", n, p.Spec.Shard, len(p.Status.InSync), p.Spec.Replicas)
		if began := w.moves[n].StartTime; began != nil && p.Status.ObservedTime != nil && !p.Status.ObservedTime.Before(began) {
			text += fmt.Sprintf(", after %v", p.Status.ObservedTime.Sub(began.Time).Round(time.Second))
		}
		lines = append(lines, text)
	}
	return lines, nil
}

// progress reports what is left, if that has changed.
func (w *moveFollower) progress(grid *api.OrderGrid) {
	text := fmt.Sprintf("%d to move, %d of them under way", int(grid.Status.MovesLeft)+len(grid.Status.Moves), len(grid.Status.Moves))
	for _, m := range grid.Status.Moves {
		if m.WaitsFor != "" {
			text += fmt.Sprintf("; p%d waits for %s", m.Partition, m.WaitsFor)
		}
	}
	if text != w.printed {
		fmt.Fprintln(w.out, text)
	}
	w.printed = text
}
