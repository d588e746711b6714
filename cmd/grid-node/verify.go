package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client/verify"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/command"
)

// exitError ends the program with a given exit code.
type exitError struct {
	code int
	text string
}

func (e exitError) Error() string { return e.text }

func (e exitError) ExitCode() int { return e.code }

func verifyCommand() *cobra.Command {
	var f clientFlags
	var partitions []string
	var sinkDir, sinks string
	var asJSON, again bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Compare the logs of all replicas byte for byte",
		Long: `Read the committed log of every replica of every partition and compare them byte
for byte; check that numbers are dense, the hash chain unbroken and no order there twice,
in one partition or in two.
With --sink-dir, or --sinks=nodes, also that the file sink has every entry; with --replay, of a
grid that matches, that every copy executed what its log says. The grid may be serving meanwhile.

Exit codes: 0 equal, 1 a difference was found, 4 something could not be read, or
a partition has no primary.`,
		Example: "  grid-node verify --endpoint 127.0.0.1:7400\n  grid-node verify --sinks nodes\n  grid-node verify --sink-dir ./sink --grid dev",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := verify.Options{SinkDir: sinkDir, Grid: f.grid, Replay: again}
			if err := verify.ParseSinks(sinks, &o); err != nil {
				return command.BadUsage(err)
			}
			if sinkDir != "" && f.grid == "" {
				return command.BadUsage(fmt.Errorf(`--grid: value "", allowed: the grid's name; --sink-dir needs it to find the files`))
			}
			for _, s := range partitions {
				p, err := wire.ParsePartitionID(s)
				if err != nil {
					return command.BadUsage(fmt.Errorf("--partition: %w", err))
				}
				o.Partitions = append(o.Partitions, p)
			}
			c, err := f.dial(cmd.Context())
			if err != nil {
				return exitError{verify.ExitIncomplete, err.Error()}
			}
			defer func() { _ = c.Close() }()
			r, err := verify.Run(cmd.Context(), verify.FromClient(c), o)
			if err != nil {
				return exitError{verify.ExitIncomplete, err.Error()}
			}
			write := r.WriteText
			if asJSON {
				write = r.WriteJSON
			}
			if err := write(cmd.OutOrStdout()); err != nil {
				return err
			}
			if code := r.ExitCode(); code != verify.ExitEqual {
				return exitError{code, fmt.Sprintf("verify: %d problems, %d not read, %d not served", r.Problems, r.Unread, r.Unserved)}
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringSliceVar(&partitions, "partition", nil, "partitions to compare, for example p1; default all")
	cmd.Flags().StringVar(&sinkDir, "sink-dir", "", "directory of the file sink of all nodes; needs --grid")
	cmd.Flags().StringVar(&sinks, "sinks", "", verify.SinksHelp)
	cmd.Flags().BoolVar(&again, "replay", false, verify.ReplayHelp)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}
