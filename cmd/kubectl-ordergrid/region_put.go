package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
)

type regionPutFlags struct {
	regionFlags
	file      string
	life      time.Duration
	forever   bool
	ifVersion uint64
}

func regionPutCommand(k *kubeFlags) *cobra.Command {
	var f regionPutFlags
	cmd := &cobra.Command{Use: "put GRID REGION KEY [VALUE]", Short: "Write a value", Args: countOf(3, 4, "an OrderGrid, a region, a key and a value"),
		Long: `Writes the value of a key, and prints the version that it has now. With --if-version it is written only
if the present one has that version, 0: if there is none. A failed attempt is repeated and applied once.

` + regionWriteHelp + `

Exit codes: 0 written, 1 the present value has another version, 2 wrong usage, 4 failed: it may be
written or not; repeat it.`,
		Example: `  kubectl ordergrid region put trades positions ACC-1/IBM 100 -n trading --tls-cert desk.crt --tls-key desk.key
  kubectl ordergrid region put dev quotes IBM --file quote.bin --life 5m --endpoint 127.0.0.1:7400
  kubectl ordergrid region put dev positions ACC-1/IBM 150 --if-version 17 --endpoint 127.0.0.1:7400`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args) }}
	f.register(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.file, "file", "", "file with the value, - for standard input")
	fl.DurationVar(&f.life, "life", 0, "how long the value stays; default: as the region has it")
	fl.BoolVar(&f.forever, "forever", false, "the value does not expire, also where the region has a default")
	fl.Uint64Var(&f.ifVersion, "if-version", 0, "write only if the present value has this version, 0: if there is none")
	return cmd
}

func (f *regionPutFlags) run(cmd *cobra.Command, k *kubeFlags, args []string) error {
	var opts []client.PutOption
	switch given := cmd.Flags().Changed("life"); {
	case given && f.life <= 0:
		return usageError{fmt.Errorf("--life: value %s, allowed: more than 0", f.life)}
	case given && f.forever:
		return usageError{errors.New("--life and --forever, allowed: one of them")}
	case given:
		opts = append(opts, client.Expires(f.life))
	case f.forever:
		opts = append(opts, client.Forever())
	}
	value, err := regionValue(cmd, args, f.file)
	if err != nil {
		return err
	}
	key := []byte(args[2])
	return f.with(cmd, k, args[0], func(ctx context.Context, c *client.Client) error {
		r, receipt, err := c.Region(args[1]), client.Receipt{}, error(nil)
		if cmd.Flags().Changed("if-version") {
			receipt, err = r.PutIf(ctx, key, value, f.ifVersion, opts...)
		} else {
			receipt, err = r.Put(ctx, key, value, opts...)
		}
		if errors.Is(err, client.ErrConditionFailed) {
			fmt.Fprintf(cmd.ErrOrStderr(), "region %s: key %q: %v\n", args[1], args[2], err)
			return exitError(exitUnchanged)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "region %s: key %q has version %d, in partition %s\n", args[1], args[2], receipt.Seq, receipt.Partition)
		return err
	})
}
