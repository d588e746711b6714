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
	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// siteHelp is for the help of the commands about a pair of sites.
const siteHelp = `The decision is spec.site of each GridPartition; the grid nodes carry it out. Without Kubernetes
--arbiter is the address that grid-node dev prints.`

// siteFlags are those of the commands that change what a grid is in a pair of sites.
type siteFlags struct {
	reachFlags
	arbiter    string
	partitions []string
	wait       bool
	timeout    time.Duration
}

func (f *siteFlags) register(fl *pflag.FlagSet) {
	f.reachFlags.register(fl)
	fl.StringVar(&f.arbiter, "arbiter", "", "URL of the arbiter of grid-node dev; Kubernetes is not used then, and --endpoint is required")
	fl.StringSliceVar(&f.partitions, "partition", nil, "these only, for example p0,p1; default all")
}

func (f *siteFlags) registerWait(fl *pflag.FlagSet) {
	fl.BoolVar(&f.wait, "wait", true, "wait until it has happened")
	fl.DurationVar(&f.timeout, "timeout", 2*time.Minute, "how long to wait")
}

func (f *siteFlags) check() error {
	if (f.arbiter != "") && len(f.endpoints) == 0 {
		return usageError{fmt.Errorf(`--endpoint: value "", allowed: host:port of a node; it is required with --arbiter`)}
	}
	return nil
}

// records finds the grid's records.
func (f *siteFlags) records(k *kubeFlags, grid string) (siteRecords, error) {
	if f.arbiter != "" {
		return devRecords{url: f.arbiter, grid: grid}, nil
	}
	c, err := k.connect()
	if err != nil {
		return nil, err
	}
	return kubeRecords{c: c, grid: grid}, nil
}

// choose reads the records, all of which have to be claimed, and keeps those that --partition names.
func (f *siteFlags) choose(ctx context.Context, in siteRecords, grid string) ([]siteRecord, error) {
	chosen, err := parsePartitions(f.partitions)
	if err != nil {
		return nil, err
	}
	all, err := in.list(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("grid %s has no GridPartition here; kubectl get og -A lists the grids", grid)
	}
	for _, id := range chosen {
		if !slices.ContainsFunc(all, func(r siteRecord) bool { return r.partition == id }) {
			return nil, usageError{fmt.Errorf("--partition: value %s, allowed: p0..p%d", id, len(all)-1)}
		}
	}
	if len(chosen) > 0 {
		all = slices.DeleteFunc(all, func(r siteRecord) bool { return !slices.Contains(chosen, r.partition) })
	}
	return all, nil
}

// await polls until done holds for every chosen partition, and prints each one once it does. It returns those that are
// left when ctx ends.
func (f *siteFlags) await(ctx context.Context, in siteRecords, names []string, out io.Writer, done func(*siteRecord) bool) (left []string, err error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	left = slices.Clone(names)
	began, total := time.Now(), len(names)
	for len(left) > 0 {
		var all []siteRecord
		if all, err = in.list(ctx); err == nil { // errors are transient: the API server may be briefly unavailable
			for i := range all {
				r := &all[i]
				if at := slices.Index(left, r.name); at >= 0 && done(r) {
					left = slices.Delete(left, at, at+1)
					fmt.Fprintf(out, "%s: %s, term %d, epoch %d, after %.1fs (%d of %d)\n", r.name, r.role(), r.term, r.epoch, time.Since(began).Seconds(), total-len(left), total)
				}
			}
		}
		if len(left) == 0 {
			return nil, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return left, err
		}
	}
	return nil, nil
}

// endOf asks a partition's primary where its log ends; it takes the permission Admin.
func endOf(ctx context.Context, c *client.Client, p wire.PartitionID) (client.LogEnd, error) {
	return c.ReadLog(ctx, p, "", 1<<62, nil)
}

func hashText(seq, hash uint64) string {
	if seq == 0 {
		return ""
	}
	return fmt.Sprintf("%016x", hash)
}

// siteRow is a partition in the table of sites.
type siteRow struct {
	Grid      string `json:"grid"`
	Partition string `json:"partition"`
	Role      string `json:"role"`
	Term      int64  `json:"term"`
	Decision  string `json:"decision,omitempty"` // that is not carried out yet
	Seq       uint64 `json:"seq"`                // last entry of the primary's log
	Hash      string `json:"hash,omitempty"`     // of it
	Error     string `json:"error,omitempty"`    // why the log's end is not known
}

type sitesFlags struct {
	siteFlags
	list  listFlags
	nodes bool
}

func sitesCommand(k *kubeFlags) *cobra.Command {
	var f sitesFlags
	cmd := &cobra.Command{
		Use:   "sites GRID",
		Short: "Show what each partition is in a pair of sites: role, term, end of its log",
		Long: `Shows what each partition of a grid is in a pair of sites: Active, which makes its entries, or
Standby, which gets them from the other site; the term of its site; a promotion or demotion that is
decided and not carried out yet; and where the log of its primary ends. Run it at both sites: the
same seq and hash at both mean the same log.

` + siteHelp + `

` + reachHelp + `

Exit codes: 0, 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid sites trades -n trading
  kubectl ordergrid sites trades -n trading --context site-b -o json`,
		Args: oneGrid,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0]) },
	}
	f.siteFlags.register(cmd.Flags())
	f.list.register(cmd)
	cmd.Flags().BoolVar(&f.nodes, "nodes", true, "ask the nodes where the logs end")
	return cmd
}

func (f *sitesFlags) run(cmd *cobra.Command, k *kubeFlags, grid string) error {
	if err := cmp.Or(f.list.check(), f.check()); err != nil {
		return err
	}
	in, err := f.records(k, grid)
	if err != nil {
		return err
	}
	all, err := f.choose(cmd.Context(), in, grid)
	if err != nil {
		return err
	}
	var c *client.Client
	unread := ""
	if f.nodes {
		var done func()
		if c, done, err = f.dial(cmd, k, grid); err != nil {
			unread = err.Error()
		} else {
			defer done()
		}
	}
	rows := make([]siteRow, 0, len(all))
	for i := range all {
		r := &all[i]
		row := siteRow{Grid: grid, Partition: r.partition.String(), Role: r.role(), Term: r.term, Decision: r.waiting(), Error: unread}
		if c != nil {
			end, err := endOf(cmd.Context(), c, r.partition)
			if row.Seq, row.Hash = end.LastSeq, hashText(end.LastSeq, end.LastHash); err != nil {
				row.Seq, row.Hash, row.Error = 0, "", err.Error()
			}
		}
		rows = append(rows, row)
	}
	return f.write(cmd.OutOrStdout(), rows, colors(cmd))
}

func (f *sitesFlags) write(w io.Writer, rows []siteRow, colored bool) error {
	if done, err := f.list.encoded(w, rows); done {
		return err
	}
	t := &table{colors: colored}
	t.row("PARTITION", "ROLE", "TERM", "DECISION", "SEQ", "HASH")
	var why []string
	for i := range rows {
		r := &rows[i]
		role := cell{r.Role, green}
		if r.Role != "Active" {
			role.color = yellow
		}
		seq, hash := fmt.Sprint(r.Seq), orDash(r.Hash)
		if r.Error != "" || !f.nodes {
			seq, hash = "?", "?"
		}
		if r.Error != "" && !slices.Contains(why, r.Error) {
			why = append(why, r.Error)
		}
		t.row(r.Partition, role, r.Term, orDash(r.Decision), seq, hash)
	}
	if err := t.write(w); err != nil {
		return err
	}
	if len(why) > 0 {
		_, err := fmt.Fprintln(w, "not read: "+strings.Join(why, "\n"))
		return err
	}
	return nil
}
