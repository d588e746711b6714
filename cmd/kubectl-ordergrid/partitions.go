package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

type partitionsFlags struct {
	listFlags
	watch, nodes, direct bool
	interval             time.Duration
}

func partitionsCommand(k *kubeFlags) *cobra.Command {
	f := partitionsFlags{}
	cmd := &cobra.Command{
		Use:   "partitions GRID",
		Short: "Show each partition's copies: roles, epoch, in-sync members, lag",
		Long: `Reads the GridPartitions of a grid, then asks every node for its role and progress.

  PRIMARY, PREFERRED   pod that serves, pod that should
  EPOCH, IN SYNC       of the record: rises with each change of membership; members that hold everything, of those wanted
  COMMITTED            sequence number up to which every order is acknowledged, according to the primary
  LAG                  entries that the copy furthest behind lacks of the primary's log, ? where a copy was not reached
  COPIES               every pod of the shard with its role, and + where the record has it in sync; of a partition that
                       moves, also the pods that it comes from
  SHARD                with -o wide: the shard that it is on, as 0>2 while it moves from shard 0 to shard 2
  MOVED, LEFT          with -o wide, while it moves: how much of it the new copies have, and about how long they need for
                       the rest, at the rate so far

Nodes are read one after the other: under load, entries that arrive meanwhile show as lag. Roles: primary, backup,
learner (catches up), claiming, fenced (waits for the next configuration), idle, stopped, and unreachable for a node
that does not answer.

Nodes are reached through the API server (needs permission to port-forward to the pods), or with --direct at their pod
addresses (inside the cluster). --nodes=false asks none: COMMITTED, LAG and roles are unknown then.

Exit codes: 0, 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid partitions trades -n trading
  kubectl ordergrid partitions trades --watch --interval 1s
  kubectl ordergrid partitions trades -o json | jq '.[] | select(.lag > 0)'`,
		Args: oneGrid,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0]) },
	}
	f.register(cmd)
	fl := cmd.Flags()
	fl.BoolVarP(&f.watch, "watch", "w", false, "repeat until interrupted")
	fl.DurationVar(&f.interval, "interval", 2*time.Second, "with --watch: interval, at least 100ms")
	fl.BoolVar(&f.nodes, "nodes", true, "ask the nodes")
	fl.BoolVar(&f.direct, "direct", false, "connect to pod addresses without a tunnel through the API server")
	return cmd
}

func (f *partitionsFlags) run(cmd *cobra.Command, k *kubeFlags, grid string) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.interval < 100*time.Millisecond {
		return usageError{fmt.Errorf("--interval: value %v, allowed: 100ms or more", f.interval)}
	}
	cluster, err := k.connect()
	if err != nil {
		return err
	}
	pages := newPages(cluster, grid, f.direct)
	defer pages.close()
	out, screen := cmd.OutOrStdout(), isTerminal(cmd.OutOrStdout())
	for {
		rows, err := f.read(cmd.Context(), cluster, pages, grid)
		if cmd.Context().Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if f.watch && screen {
			fmt.Fprintf(out, "%s%s  %s  every %v, Ctrl-C ends\n\n", clearScreen, grid, time.Now().Format(time.TimeOnly), f.interval)
		}
		if err := f.write(out, rows, view{now: time.Now(), wide: f.wide(), colors: colors(cmd)}); err != nil || !f.watch {
			return err
		}
		select {
		case <-time.After(f.interval):
		case <-cmd.Context().Done():
			return nil
		}
	}
}

// copyRow is one pod's copy of a partition.
type copyRow struct {
	Pod    string `json:"pod"`
	Role   string `json:"role"`
	InSync string `json:"inSync"` // Yes or No, as in the record
	// LastSeq is the sequence number of the last entry the pod holds; absent where it was not reached.
	LastSeq *uint64 `json:"lastSeq,omitempty"`
	// Lag is how many entries of the primary's log it lacks.
	Lag   *uint64 `json:"lag,omitempty"`
	Error string  `json:"error,omitempty"` // why the node was not read
}

// partitionRow is a partition: from its record, and from its nodes.
type partitionRow struct {
	Name  string `json:"name"`
	Shard int32  `json:"shard"` // whose pods are to hold it
	// From are the other shards with a copy: it moves.
	From []int32 `json:"from,omitempty"`
	// Move is its progress; absent if it does not move.
	Move      *moveProgress `json:"move,omitempty"`
	Primary   string        `json:"primary,omitempty"`
	Address   string        `json:"address,omitempty"`
	Preferred string        `json:"preferred"`
	Epoch     int64         `json:"epoch"`
	Lineage   int64         `json:"lineage"`
	InSync    []string      `json:"inSync"`
	Wanted    int32         `json:"wanted"`
	CommitSeq *uint64       `json:"commitSeq,omitempty"` // according to the primary
	Lag       *uint64       `json:"lag,omitempty"`       // the largest of its copies; absent where one is not known
	Copies    []copyRow     `json:"copies"`
}

// read queries the API server and every node once.
func (f *partitionsFlags) read(ctx context.Context, c *cluster, pages *nodePages, grid string) ([]partitionRow, error) {
	og, err := c.grid(ctx, grid)
	if err != nil {
		return nil, err
	}
	parts, err := c.partitions(ctx, grid)
	if err != nil {
		return nil, err
	}
	var answers map[string]answer
	if f.nodes {
		if answers, err = pages.status(ctx); err != nil {
			return nil, err
		}
	}
	rows := make([]partitionRow, 0, len(parts))
	for i := range parts {
		row := rowOf(&parts[i], answers, f.nodes)
		row.Move = progressOf(&parts[i], answers, og.Status.Moves, time.Now())
		rows = append(rows, row)
	}
	return rows, nil
}

func rowOf(p *api.GridPartition, answers map[string]answer, asked bool) partitionRow {
	r := partitionRow{Name: p.Name, Shard: p.Spec.Shard, From: comesFrom(p), Primary: primaryPod(p), Preferred: p.Spec.PreferredPod, Epoch: p.Status.Epoch, Lineage: p.Status.Lineage,
		InSync: inSyncPods(p), Wanted: p.Spec.Replicas, Copies: []copyRow{}}
	if p.Status.Primary != nil {
		r.Address = p.Status.Primary.Address
	}
	if r.InSync == nil {
		r.InSync = []string{}
	}
	var head *uint64 // of the primary's log
	pods := shardPods(p)
	for _, m := range r.InSync { // of a shard that is being removed, or that it moves from
		if !slices.Contains(pods, m) {
			pods = append(pods, m)
		}
	}
	for _, pod := range pods {
		copied := copyOf(p, pod, answers[pod], asked)
		if pod == r.Primary && copied.LastSeq != nil {
			head = copied.LastSeq
			r.CommitSeq = new(answers[pod].node.Find(p.Name).CommitSeq)
		}
		r.Copies = append(r.Copies, copied)
	}
	r.lag(head)
	return r
}

// comesFrom are the shards other than that of a partition's record with a copy of it, in rising order.
func comesFrom(p *api.GridPartition) (shards []int32) {
	for _, pod := range inSyncPods(p) {
		if n, ok := podShard(p, pod); ok && n != p.Spec.Shard && !slices.Contains(shards, n) {
			shards = append(shards, n)
		}
	}
	slices.Sort(shards)
	return shards
}

// place is the shard of a partition, or its move.
func (r *partitionRow) place() cell {
	if len(r.From) == 0 {
		return cell{text: fmt.Sprint(r.Shard)}
	}
	var from []string
	for _, shard := range r.From {
		from = append(from, fmt.Sprint(shard))
	}
	return cell{fmt.Sprintf("%s>%d", strings.Join(from, "+"), r.Shard), yellow}
}

func copyOf(p *api.GridPartition, pod string, answers answer, asked bool) copyRow {
	c := copyRow{Pod: pod, InSync: "No", Role: "unknown"}
	if slices.Contains(inSyncPods(p), pod) {
		c.InSync = "Yes"
	}
	switch {
	case !asked:
	case answers.node == nil:
		c.Role, c.Error = "unreachable", cmp.Or(answers.why, "the pod does not run")
	case answers.node.Find(p.Name) == nil:
		c.Role = "none"
	default:
		part := answers.node.Find(p.Name)
		c.Role, c.LastSeq = part.Role, new(part.LastSeq)
	}
	return c
}

// lag computes what each copy lacks of a log that ends at head, and the largest of them.
func (r *partitionRow) lag(head *uint64) {
	worst, known := uint64(0), head != nil
	for i := range r.Copies {
		c := &r.Copies[i]
		if head == nil || c.LastSeq == nil {
			known = false
			continue
		}
		c.Lag = new(max(*head, *c.LastSeq) - *c.LastSeq) // a copy that was read later may be ahead
		worst = max(worst, *c.Lag)
	}
	if known {
		r.Lag = &worst
	}
}

func orUnknown(v *uint64) string {
	if v == nil {
		return "?"
	}
	return fmt.Sprint(*v)
}

func (f *partitionsFlags) write(w io.Writer, rows []partitionRow, v view) error {
	if done, err := f.encoded(w, rows); done {
		return err
	}
	t := &table{colors: v.colors}
	head := []any{"PARTITION", "PRIMARY", "PREFERRED", "EPOCH", "IN SYNC", "COMMITTED", "LAG", "COPIES"}
	if v.wide {
		head = append(head, "SHARD", "MOVED", "LEFT", "LINEAGE", "ADDRESS")
	}
	t.row(head...)
	var why []string
	for i := range rows {
		r := &rows[i]
		primary, inSync := cell{text: r.Primary}, cell{fmt.Sprintf("%d/%d", len(r.InSync), r.Wanted), green}
		switch {
		case r.Primary == "":
			primary = cell{"none", red}
		case r.Primary != r.Preferred:
			primary.color = yellow
		}
		if len(r.InSync) < int(r.Wanted) {
			inSync.color = yellow
		}
		var copies []string
		for _, c := range r.Copies {
			mark := ""
			if c.InSync == "Yes" {
				mark = "+"
			}
			copies = append(copies, c.Pod+" "+c.Role+mark)
			if c.Error != "" && !slices.Contains(why, c.Pod+": "+c.Error) {
				why = append(why, c.Pod+": "+c.Error)
			}
		}
		line := []any{r.Name, primary, r.Preferred, r.Epoch, inSync, orUnknown(r.CommitSeq), orUnknown(r.Lag), strings.Join(copies, ", ")}
		if v.wide {
			line = append(line, r.place(), r.Move.percent(), r.Move.left(), r.Lineage, orDash(r.Address))
		}
		t.row(line...)
	}
	if err := t.write(w); err != nil {
		return err
	}
	for _, text := range why {
		fmt.Fprintln(w, text)
	}
	return nil
}
