package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/ordertext"
)

type tailFlags struct {
	reachFlags
	partitions []string
	output     string
	lines      int
	follow     bool
}

func tailCommand(k *kubeFlags) *cobra.Command {
	var f tailFlags
	cmd := &cobra.Command{
		Use:   "tail GRID",
		Short: "Show the last orders of a grid, and new ones",
		Long: `Shows the last committed orders, in the order of their receipt, and with --follow new ones as they
are committed, until it is interrupted: from any in-sync replica, through failovers.
Orders of one partition are in the order of its log; partitions have no order between them.

` + reachHelp + `

Exit codes: 0, 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid tail trades -n trading -f
  kubectl ordergrid tail trades --lines 1000 -o json | jq .clOrdID
  kubectl ordergrid tail dev --endpoint 127.0.0.1:7400 --partition p1`,
		Args: oneGrid,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0]) },
	}
	f.register(cmd.Flags())
	cmd.Flags().StringSliceVar(&f.partitions, "partition", nil, "only these, for example p1; default all")
	cmd.Flags().IntVarP(&f.lines, "lines", "l", 10, "how many of the last orders of each partition to show, 0 to 1,000,000")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "continue with new orders")
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", strings.Join(ordertext.Formats, ", ")+" (messages byte for byte, one after the other)")
	return cmd
}

func (f *tailFlags) run(cmd *cobra.Command, k *kubeFlags, grid string) error {
	if err := ordertext.CheckFormat("--output", f.output); err != nil {
		return usageError{err}
	}
	if f.lines < 0 || f.lines > 1_000_000 {
		return usageError{fmt.Errorf("--lines: value %d, allowed: 0 to 1000000", f.lines)}
	}
	parts, err := parsePartitions(f.partitions)
	if err != nil {
		return err
	}
	c, done, err := f.dial(cmd, k, grid)
	if err != nil {
		return err
	}
	defer done()
	if len(parts) == 0 {
		for _, p := range c.Table() {
			parts = append(parts, p.ID)
		}
	}
	t := &tailer{client: c, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), format: f.output}
	next, err := t.past(cmd.Context(), parts, f.lines)
	if err != nil || !f.follow {
		return err
	}
	return t.follow(cmd.Context(), next)
}

// parsePartitions reads the values of --partition.
func parsePartitions(values []string) (parts []wire.PartitionID, err error) {
	for _, v := range values {
		id, err := wire.ParsePartitionID(v)
		if err != nil {
			return nil, usageError{fmt.Errorf("--partition: %w", err)}
		}
		parts = append(parts, id)
	}
	return parts, nil
}

// tailer writes orders of several logs.
type tailer struct {
	client     *client.Client
	out, notes io.Writer
	format     string

	mu sync.Mutex // of out and notes
}

// past writes the last n orders of every partition, and returns where to continue.
func (t *tailer) past(ctx context.Context, parts []wire.PartitionID, n int) (next map[wire.PartitionID]uint64, err error) {
	next = map[wire.PartitionID]uint64{}
	var all []client.Order
	for _, p := range parts {
		last, end, err := t.lastOrders(ctx, p, n)
		if err != nil {
			return nil, err
		}
		all = append(all, last...)
		next[p] = end.NextSeq
	}
	slices.SortStableFunc(all, func(a, b client.Order) int { return cmp.Compare(a.Received.UnixNano(), b.Received.UnixNano()) })
	for i := range all {
		if err := t.write(&all[i]); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// lastOrders reads the last n orders of a log. Not every entry is an order, so it reads further back until it has them.
func (t *tailer) lastOrders(ctx context.Context, p wire.PartitionID, n int) ([]client.Order, client.LogEnd, error) {
	end, err := t.client.ReadLog(ctx, p, "", math.MaxInt64, nil) // beyond the end: only for the position of the end
	if err != nil || n == 0 {
		end.NextSeq = end.CommitSeq + 1
		return nil, end, err
	}
	for back := uint64(n) + 16; ; back *= 4 {
		from := max(end.CommitSeq, back) - back + 1
		var last []client.Order
		keep := func(e client.LogEntry) error {
			if o, ok := e.Order(p); ok {
				if len(last) >= 2*n {
					last = append(last[:0], last[len(last)-n:]...)
				}
				last = append(last, o)
			}
			return nil
		}
		read, err := t.client.ReadLog(ctx, p, "", from, keep)
		freed, gone := freedUpTo(err)
		if gone { // the remainder begins after it
			read, err = t.client.ReadLog(ctx, p, "", freed+1, keep)
		}
		if err != nil {
			return nil, read, err
		}
		if len(last) >= n || from == 1 || gone {
			last = last[max(0, len(last)-n):]
			for i := range last {
				last[i].From, last[i].CommitSeq = read.Address, read.CommitSeq
			}
			return last, read, nil
		}
	}
}

// freedUpTo reports whether a read failed because entries were freed, and up to which.
func freedUpTo(err error) (seq uint64, freed bool) {
	var reject *client.RejectError
	if errors.Is(err, client.ErrSnapshotRequired) && errors.As(err, &reject) {
		return reject.Detail, true
	}
	return 0, false
}

// follow writes new orders, until the context ends.
func (t *tailer) follow(ctx context.Context, next map[wire.PartitionID]uint64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for p, from := range next {
		all.Go(func() {
			if err := t.followOne(ctx, p, from); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // interrupted, which is its regular end
}

func (t *tailer) followOne(ctx context.Context, p wire.PartitionID, from uint64) error {
	after := client.Position{Seq: from - 1}
	for {
		f, err := t.client.Follow(ctx, client.FollowOptions{Partition: p, After: after})
		if err != nil {
			return err
		}
		err = t.writeAll(ctx, f)
		_ = f.Close()
		var gone *client.SnapshotRequiredError
		switch {
		case ctx.Err() != nil:
			return nil
		case !errors.As(err, &gone):
			return err
		}
		t.note("%s: entries %d to %d were freed before they could be read here; they are downstream", p, gone.Wanted, gone.After.Seq)
		after = gone.After
	}
}

// writeAll writes the orders that a follower gets.
func (t *tailer) writeAll(ctx context.Context, f *client.Follower) error {
	for {
		b, err := f.Next(ctx)
		if err != nil {
			return err
		}
		for _, e := range b.Entries {
			o, ok := e.Order(b.Partition)
			if !ok {
				continue
			}
			if err := t.write(&o); err != nil {
				return err
			}
		}
	}
}

func (t *tailer) write(o *client.Order) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.format {
	case "json":
		return ordertext.JSON(t.out, o)
	case "fix":
		return ordertext.FIX(t.out, o)
	}
	return ordertext.Line(t.out, o)
}

func (t *tailer) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.notes, format+"\n", args...)
}
