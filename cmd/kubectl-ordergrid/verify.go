package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/verify"
)

type verifyFlags struct {
	reachFlags
	partitions []string
	sinkDir    string
	sinks      string
	replay     bool
	output     string
	timeout    time.Duration
}

func verifyCommand(k *kubeFlags) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify GRID",
		Short: "Compare all replicas of a grid byte for byte",
		Long: `Reads the committed log of every replica of every partition and compares them byte
for byte; checks that sequence numbers are dense, that the hash chain is unbroken and
that no order is there twice, in one partition or in two. The grid may be serving
meanwhile; nothing is changed.
With --sinks=nodes also that the file sinks have every entry, read through the nodes.
With --replay, of a grid that matches, also that every copy executed what its log says.

` + reachHelp + `

Exit codes: 0 equal, 1 different, 2 wrong usage, 4 not everything could be read, or
a partition has no primary.`,
		Example: `  kubectl ordergrid verify trades -n trading
  kubectl ordergrid verify trades -n trading --sinks nodes
  kubectl ordergrid verify exchange -n trading --replay
  kubectl ordergrid verify dev --endpoint 127.0.0.1:7400 --sink-dir /tmp/sink -o json`,
		Args: oneGrid,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0]) },
	}
	fl := cmd.Flags()
	f.register(fl)
	fl.StringSliceVar(&f.partitions, "partition", nil, "check these only, for example p1; default all")
	fl.StringVar(&f.sinkDir, "sink-dir", "", "also compare with the file sinks in this local directory")
	fl.StringVar(&f.sinks, "sinks", "", verify.SinksHelp)
	fl.BoolVar(&f.replay, "replay", false, verify.ReplayHelp)
	fl.StringVarP(&f.output, "output", "o", "text", "text or json")
	fl.DurationVar(&f.timeout, "timeout", 10*time.Minute, "for everything")
	return cmd
}

func (f *verifyFlags) run(cmd *cobra.Command, k *kubeFlags, grid string) error {
	if f.output != "text" && f.output != "json" {
		return usageError{fmt.Errorf("--output: value %q, allowed: text, json", f.output)}
	}
	o := verify.Options{SinkDir: f.sinkDir, Grid: grid, Replay: f.replay}
	if err := verify.ParseSinks(f.sinks, &o); err != nil {
		return usageError{err}
	}
	parts, err := parsePartitions(f.partitions)
	if err != nil {
		return err
	}
	o.Partitions = parts
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	cfg, done, err := f.config(ctx, k, grid)
	if err != nil {
		return err
	}
	defer done()
	c, err := client.Dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // it never fails
	r, err := verify.Run(ctx, verify.FromClient(c), o)
	if err != nil {
		return err
	}
	write := r.WriteText
	if f.output == "json" {
		write = r.WriteJSON
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	if code := r.ExitCode(); code != verify.ExitEqual {
		return exitError(code)
	}
	return nil
}
