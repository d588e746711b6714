package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/gateway/load"
	"github.com/ordergrid/ordergrid/grid-node/function"
)

type functionFlags struct {
	orders, format, kind, config, onError, output string
	tags                                          []uint
	pages                                         uint32
	fuel                                          int64
}

func functionCommand(k *kubeFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "function",
		Short: "Try and call functions: code of yours in the grid, as WebAssembly",
		Long:  "Functions are WebAssembly modules that decide on orders, derive records from them, or change values of\nregions or compute over all of them when a client calls them. A grid has the GridFunctions that spec.callbacks of its OrderGrid names.",
	}
	cmd.AddCommand(functionTestCommand(), functionRecordsCommand(k), functionInvokeCommand(k), functionMapCommand(k))
	return cmd
}

func functionTestCommand() *cobra.Command {
	var f functionFlags
	cmd := &cobra.Command{
		Use:   "test MODULE.wasm --orders FILE",
		Short: "Run a function against orders of a file",
		Long: `Loads a module as a node would, with every bound, and calls it with each order of a file:
what it refuses and why, what it changes, where it fails, nanoseconds and fuel a call.
--orders is a FIX log, a CSV or a Parquet file, as for kubectl ordergrid load. Orders that are
not valid FIX are counted and left out: a grid would not call a function with them.
Nothing is sent anywhere, and no cluster is needed.

Exit codes: 0 no call failed, 1 a call failed, 2 wrong usage, 4 the module or the orders cannot
be read, or the module is refused.`,
		Example: `  kubectl ordergrid function test fat-finger.wasm --orders session.log --config limits.txt
  kubectl ordergrid function test enrich-client.wasm --orders orders.csv --config desks.txt --tag 10001
  kubectl ordergrid function test audit-trail.wasm --kind Post --orders session.log --fuel 1000000 -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("%d arguments, allowed: one module; see %s --help", len(args), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.orders, "orders", "", "file with orders; needed")
	fl.StringVar(&f.format, "format", "", "of the orders: csv, fix or parquet; default by the ending of the file's name")
	fl.StringVar(&f.kind, "kind", "Pre", "Pre or Post")
	fl.StringVar(&f.config, "config", "", "file with the configuration of the function")
	fl.StringVar(&f.onError, "on-error", "Reject", "what happens to an order when a Pre function fails: Reject or Pass")
	fl.UintSliceVar(&f.tags, "tag", nil, "tags that a Pre function may set")
	fl.Uint32Var(&f.pages, "pages", 0, "memory, in pages of 64 KiB; 0 is 16")
	fl.Int64Var(&f.fuel, "fuel", 0, "of one call; 0 is 100,000")
	fl.StringVarP(&f.output, "output", "o", "text", "text or json")
	completeFlag(cmd, "kind", fixedNames("Pre", "Post"))
	completeFlag(cmd, "on-error", fixedNames("Reject", "Pass"))
	completeFlag(cmd, "output", fixedNames("text", "json"))
	return cmd
}

// choose returns the value for a name.
func choose[T any](flag, value string, names []string, values []T) (T, error) {
	for i, n := range names {
		if n == value {
			return values[i], nil
		}
	}
	var zero T
	return zero, usageError{fmt.Errorf("--%s: value %q, allowed: %s", flag, value, strings.Join(names, ", "))}
}

func (f *functionFlags) run(cmd *cobra.Command, path string) error {
	kind, err := choose("kind", f.kind, []string{"Pre", "Post"}, []function.Kind{function.Pre, function.Post})
	if err != nil {
		return err
	}
	onError, err := choose("on-error", f.onError, []string{"Reject", "Pass"}, []function.OnError{function.Reject, function.Pass})
	if err != nil {
		return err
	}
	if _, err := choose("output", f.output, []string{"text", "json"}, []int{0, 1}); err != nil {
		return err
	}
	if f.orders == "" {
		return usageError{errors.New("--orders: not set, allowed: a file with orders")}
	}
	opts := function.Options{Pages: f.pages, Fuel: f.fuel}
	for _, t := range f.tags {
		opts.Tags = append(opts.Tags, uint32(t))
	}
	if f.config != "" {
		if opts.Config, err = os.ReadFile(f.config); err != nil {
			return err
		}
	}
	bin, err := readModule(path)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	m, err := function.Load(ctx, bin, kind, opts)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer m.Close(ctx) //nolint:errcheck // it is memory
	src, err := load.Open(ctx, f.orders, f.format, "", load.Mapping{})
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // it is read only
	trial, err := newTrial(ctx, m, onError)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := trial.orders(ctx, src); err != nil {
		return err
	}
	return trial.print(cmd.OutOrStdout(), f.output)
}

// readModule reads no more than a module may have.
func readModule(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it is read only
	return io.ReadAll(io.LimitReader(file, function.MaxModule+1))
}
