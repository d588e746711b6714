package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// exitUnchanged means that a condition of region put does not hold, or that region remove found no value.
const exitUnchanged = exitNotFound

const regionReadHelp = reachHelp + `
Where the grid enforces authorization the permission Read is needed.`

const regionWriteHelp = reachHelp + `
Where the grid enforces authorization the permissions Write and Submit are needed. The certificate of the
grid's tools does not have Write: give --tls-cert or --token of a client that a rule permits it.`

// regionFlags are those of every command below region.
type regionFlags struct {
	reachFlags
	timeout time.Duration
}

func (f *regionFlags) register(cmd *cobra.Command) {
	f.reachFlags.register(cmd.Flags())
	cmd.Flags().DurationVar(&f.timeout, "timeout", 30*time.Second, "for everything")
}

// with calls fn with a client of the grid, and a context that ends after the timeout.
func (f *regionFlags) with(cmd *cobra.Command, k *kubeFlags, grid string, fn func(context.Context, *client.Client) error) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	cmd.SetContext(ctx)
	c, done, err := f.dial(cmd, k, grid)
	if err != nil {
		return err
	}
	defer done()
	return fn(ctx, c)
}

func regionCommand(k *kubeFlags) *cobra.Command {
	cmd := &cobra.Command{Use: "region", Short: "List, describe and load regions, read, write and remove their values",
		Long: "Works on the regions of a grid, keyed objects beside its orders (docs/regions.md)."}
	cmd.AddCommand(regionListCommand(k), regionDescribeCommand(k), regionDropCommand(k), regionGetCommand(k), regionPutCommand(k), regionRemoveCommand(k), regionLoadCommand(k))
	return cmd
}

// countOf checks the number of arguments.
func countOf(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usageError{fmt.Errorf("%d arguments, allowed: %s; see %s --help", len(args), what, cmd.CommandPath())}
		}
		return nil
	}
}

func regionListCommand(k *kubeFlags) *cobra.Command {
	var f regionFlags
	var output string
	cmd := &cobra.Command{Use: "ls GRID", Short: "List the regions with their entries and bytes", Args: oneGrid,
		Long:    "Prints the regions as the primaries have them: the sum of the partitions. A hyphen is no bound and no expiry\nof its own.\n\n" + regionReadHelp + "\n\nExit codes: 0 done, 2 wrong usage, 4 failed.",
		Example: "  kubectl ordergrid region ls trades -n trading\n  kubectl ordergrid region ls dev --endpoint 127.0.0.1:7400 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return usageError{fmt.Errorf("--output: value %q, allowed: text, json", output)}
			}
			return f.with(cmd, k, args[0], func(ctx context.Context, c *client.Client) error {
				all, err := c.Regions(ctx)
				if err != nil {
					return err
				}
				return writeRegions(cmd.OutOrStdout(), output, all)
			})
		}}
	f.register(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json")
	return cmd
}

// regionJSON is a region as JSON.
type regionJSON struct {
	Name     string `json:"name"`
	Entries  uint64 `json:"entries"`
	Bytes    uint64 `json:"bytes"`
	MaxBytes uint64 `json:"maxBytes,omitempty"`
	Life     string `json:"life,omitempty"`
}

func writeRegions(out io.Writer, format string, all []client.RegionInfo) error {
	list := make([]regionJSON, 0, len(all))
	for _, r := range all {
		list = append(list, regionJSON{r.Name, r.Entries, r.Bytes, r.MaxBytes, ""})
		if r.Life > 0 {
			list[len(list)-1].Life = r.Life.String()
		}
	}
	if format == "json" {
		return indented(out, list)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "REGION\tENTRIES\tBYTES\tMAX BYTES\tLIFE")
	for _, r := range list {
		most, life := "-", "-"
		if r.MaxBytes > 0 {
			most = strconv.FormatUint(r.MaxBytes, 10)
		}
		if r.Life != "" {
			life = r.Life
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\n", r.Name, r.Entries, r.Bytes, most, life)
	}
	return w.Flush()
}

func indented(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func regionGetCommand(k *kubeFlags) *cobra.Command {
	var f regionFlags
	var mode, output string
	cmd := &cobra.Command{Use: "get GRID REGION KEY", Short: "Read a value", Args: countOf(3, 3, "an OrderGrid, a region and a key"),
		Long: `Prints the value of a key: as it is (raw), with what is known about it (text), or as JSON, where
valueBase64 replaces value if that is no UTF-8.

` + regionReadHelp + `

Exit codes: 0 done, 1 the key has no value, 2 wrong usage, 4 failed.`,
		Example: "  kubectl ordergrid region get trades positions ACC-1/IBM -n trading\n  kubectl ordergrid region get dev positions ACC-1/IBM --endpoint 127.0.0.1:7400 -o raw > value",
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" && output != "raw" {
				return usageError{fmt.Errorf("--output: value %q, allowed: text, json, raw", output)}
			}
			m, err := client.ParseReadMode(mode)
			if err != nil {
				return usageError{fmt.Errorf("--mode: %w", err)}
			}
			return f.with(cmd, k, args[0], func(ctx context.Context, c *client.Client) error {
				e, err := c.Region(args[1]).Get(ctx, []byte(args[2]), client.WithMode(m))
				if errors.Is(err, client.ErrNotFound) {
					fmt.Fprintf(cmd.ErrOrStderr(), "region %s: key %q has no value\n", args[1], args[2])
					return exitError(exitNotFound)
				}
				if err != nil {
					return err
				}
				return writeEntry(cmd.OutOrStdout(), output, &e)
			})
		}}
	f.register(cmd)
	cmd.Flags().StringVar(&mode, "mode", "confirmed", client.ReadModeHelp)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json, raw (the value byte for byte)")
	return cmd
}

// entryJSON is a value as JSON.
type entryJSON struct {
	Key         string     `json:"key"`
	Value       *string    `json:"value,omitempty"`
	ValueBase64 []byte     `json:"valueBase64,omitempty"`
	Version     uint64     `json:"version"`
	Partition   string     `json:"partition"`
	Expires     *time.Time `json:"expires,omitempty"`
}

func writeEntry(out io.Writer, format string, e *client.Entry) error {
	switch text := string(e.Value); format {
	case "raw":
		_, err := out.Write(e.Value)
		return err
	case "json":
		j := entryJSON{Key: string(e.Key), Value: &text, Version: e.Version, Partition: e.Partition.String()}
		if !utf8.Valid(e.Value) {
			j.Value, j.ValueBase64 = nil, e.Value
		}
		if !e.Expires.IsZero() {
			at := e.Expires.UTC()
			j.Expires = &at
		}
		return indented(out, j)
	default:
		expires := "never"
		if !e.Expires.IsZero() {
			expires = e.Expires.UTC().Format(time.RFC3339Nano)
		}
		_, err := fmt.Fprintf(out, "key        %q\nversion    %d\npartition  %s\nexpires    %s\nvalue      %q\n", e.Key, e.Version, e.Partition, expires, e.Value)
		return err
	}
}

func regionRemoveCommand(k *kubeFlags) *cobra.Command {
	var f regionFlags
	cmd := &cobra.Command{Use: "remove GRID REGION KEY", Short: "Remove a key", Args: countOf(3, 3, "an OrderGrid, a region and a key"),
		Long:    "Removes a key with its value.\n\n" + regionWriteHelp + "\n\nExit codes: 0 removed, 1 the key had no value, 2 wrong usage, 4 failed.",
		Example: "  kubectl ordergrid region remove trades positions ACC-1/IBM -n trading --tls-cert desk.crt --tls-key desk.key",
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd, k, args[0], func(ctx context.Context, c *client.Client) error {
				there, err := c.Region(args[1]).Remove(ctx, []byte(args[2]))
				if err != nil {
					return err
				}
				if !there {
					fmt.Fprintf(cmd.ErrOrStderr(), "region %s: key %q has no value\n", args[1], args[2])
					return exitError(exitUnchanged)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "region %s: key %q is removed\n", args[1], args[2])
				return err
			})
		}}
	f.register(cmd)
	return cmd
}

// regionValue is the value of region put: an argument, or a file, "-" for standard input.
func regionValue(cmd *cobra.Command, args []string, file string) ([]byte, error) {
	if (len(args) == 4) == (file != "") {
		return nil, usageError{fmt.Errorf("%d values, allowed: one, as the argument VALUE or by --file", len(args)-3+min(len(file), 1))}
	}
	if file == "" {
		return []byte(args[3]), nil
	}
	return readValue(cmd, "file", file)
}

// readValue reads the file that a flag names, "-" for standard input, of at most as many bytes as a value may have.
func readValue(cmd *cobra.Command, flag, file string) ([]byte, error) {
	in := cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, usageError{fmt.Errorf("--%s: %w", flag, err)}
		}
		defer f.Close() //nolint:errcheck // it was only read
		in = f
	}
	value, err := io.ReadAll(io.LimitReader(in, wire.MaxRegionPair+1))
	if err == nil && len(value) > wire.MaxRegionPair {
		err = usageError{fmt.Errorf("--%s: more than %d bytes, allowed: at most as many with the key", flag, wire.MaxRegionPair)}
	}
	return value, err
}
