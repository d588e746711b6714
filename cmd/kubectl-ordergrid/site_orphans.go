package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/link"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/tlsflag"
)

// exitOrphans means that there are orders which only the replaced site holds.
const exitOrphans = 1

type orphansFlags struct {
	reachFlags
	partitions   []string
	format, file string
	otherKube    kubeFlags
	other        reachFlags
	otherGrid    string
}

func orphansCommand(k *kubeFlags) *cobra.Command {
	var f orphansFlags
	cmd := &cobra.Command{
		Use:   "orphans GRID",
		Short: "Report, order by order, what only a replaced site holds",
		Long: `GRID is a site that was replaced by force, and is back; the other site, which goes on, is named by
--other-context or --other-endpoint. Reports every order that GRID acknowledged and the other site
does not have: id, hash, epoch, time, session and number in it, ClOrdID, account, symbol, side,
quantity, price, and "now", where the other site has an order of that ClOrdID, sent again by its
client. It compares the logs of both (permission Admin, and Read at the other one) and changes
nothing; nothing is placed again by itself. What was found, partition by partition, goes to
standard error. Then delete GRID and make it anew as a standby.

` + reachHelp + `
Flags that begin with other- are those of the other site; its namespace and the name of its grid are
the same if they are not given.

Exit codes: 0 there are none, 1 there are some, 2 wrong usage, 4 failed: what was written is not whole.`,
		Example: `  kubectl ordergrid orphans trades -n trading --context site-a --other-context site-b --file orphans.csv
  kubectl ordergrid orphans dev --endpoint 127.0.0.1:7400 --other-endpoint 127.0.0.1:7410 -o json`,
		Args: oneGrid,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0]) },
	}
	fl := cmd.Flags()
	f.register(fl)
	fl.StringSliceVar(&f.partitions, "partition", nil, "these only, for example p0,p1; default all")
	fl.StringVarP(&f.format, "output", "o", "csv", "csv, or json, one object a line")
	completeFlag(cmd, "output", fixedNames(link.ReportFormats...))
	fl.StringVar(&f.file, "file", "", "file for the report, which must not exist; default standard output")
	fl.StringVar(&f.otherKube.kubeconfig, "other-kubeconfig", "", "kubeconfig file of the other site; default the same")
	fl.StringVar(&f.otherKube.context, "other-context", "", "context of the other site")
	fl.StringVar(&f.otherKube.namespace, "other-namespace", "", "namespace of the other site's grid; default the same")
	fl.StringVar(&f.otherGrid, "other-grid", "", "name of the other site's grid; default the same")
	fl.StringSliceVar(&f.other.endpoints, "other-endpoint", nil, "host:port of a node of the other site; Kubernetes is not used for it then")
	f.other.tls = tlsflag.Of("other-")
	f.other.tls.Register(fl, "TLS is used for the other site")
	f.other.tls.RegisterToken(fl)
	return cmd
}

func (f *orphansFlags) run(cmd *cobra.Command, k *kubeFlags, grid string) error {
	if err := link.CheckReportFormat(f.format); err != nil {
		return usageError{fmt.Errorf("--output: %w", err)}
	}
	chosen, err := parsePartitions(f.partitions)
	if err != nil {
		return err
	}
	if f.otherGrid == "" {
		f.otherGrid = grid
	}
	if f.otherKube.context == "" && f.otherKube.kubeconfig == "" && f.otherKube.namespace == "" && f.otherGrid == grid && len(f.other.endpoints) == 0 {
		return usageError{errors.New("the other site is not named, allowed: --other-context, --other-kubeconfig, --other-namespace, --other-grid or --other-endpoint, of the grid that goes on")}
	}
	if f.otherKube.kubeconfig == "" {
		f.otherKube.kubeconfig = k.kubeconfig
	}
	if f.otherKube.namespace == "" {
		f.otherKube.namespace = k.namespace
	}
	f.other.direct = f.direct
	old, closeOld, err := f.dial(cmd, k, grid)
	if err != nil {
		return fmt.Errorf("the replaced site: %w", err)
	}
	defer closeOld()
	now, closeNow, err := f.other.dial(cmd, &f.otherKube, f.otherGrid)
	if err != nil {
		return fmt.Errorf("the other site: %w", err)
	}
	defer closeNow()
	if chosen, err = commonPartitions(old, now, chosen); err != nil {
		return err
	}
	found := 0
	err = f.write(cmd.OutOrStdout(), func(out io.Writer) (err error) {
		found, err = f.report(cmd.Context(), old, now, chosen, out, cmd.ErrOrStderr(), grid)
		return err
	})
	if err == nil && found > 0 {
		return exitError(exitOrphans)
	}
	return err
}

// commonPartitions are those that are chosen, or all.
func commonPartitions(old, now *client.Client, chosen []wire.PartitionID) ([]wire.PartitionID, error) {
	n, m := len(old.Table()), len(now.Table())
	if n != m {
		return nil, fmt.Errorf("the replaced site has %d partitions, the other one %d: they are not a pair of sites", n, m)
	}
	for _, id := range chosen {
		if int(id) >= n {
			return nil, usageError{fmt.Errorf("--partition: value %s, allowed: p0..p%d", id, n-1)}
		}
	}
	if len(chosen) > 0 {
		return chosen, nil
	}
	for id := range n {
		chosen = append(chosen, wire.PartitionID(id))
	}
	return chosen, nil
}

// report writes what only old holds, and returns how many orders that are.
func (f *orphansFlags) report(ctx context.Context, old, now *client.Client, parts []wire.PartitionID, out, notes io.Writer, grid string) (found int, err error) {
	r, err := link.NewReport(out, f.format)
	if err != nil {
		return 0, err
	}
	for _, id := range parts {
		fork, err := link.Orphans(ctx, old, now, id, r.Write)
		if err := errors.Join(err, r.Flush()); err != nil {
			return found, fmt.Errorf("the report is not whole: %w", err)
		}
		found += fork.Orders
		fmt.Fprintf(notes, "%s: both have entry %d (hash %s); %s has %d entries behind it, %d orders, of which %d were sent again to the other site\n",
			id, fork.Seq, fork.Hash, grid, fork.Entries, fork.Orders, fork.SentAgain)
	}
	fmt.Fprintf(notes, "%d orders are in %s alone, in %d partitions\n", found, grid, len(parts))
	return found, nil
}

// write gives fn the file of the report. It gets its name once it is whole.
func (f *orphansFlags) write(out io.Writer, fn func(io.Writer) error) (err error) {
	if f.file == "" {
		return fn(out)
	}
	if _, err := os.Lstat(f.file); !errors.Is(err, fs.ErrNotExist) {
		return usageError{fmt.Errorf("--file: %s is there already, allowed: a new file; reports are not written over", f.file)}
	}
	part := f.file + ".part"
	w, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	if err := errors.Join(fn(w), w.Sync(), w.Close()); err != nil {
		return err
	}
	// Unlike a rename it does not replace a file that appeared meanwhile.
	if err := os.Link(part, f.file); err != nil {
		return fmt.Errorf("--file: %w; the report is in %s", err, part)
	}
	return os.Remove(part)
}
