package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/load"
)

// regionLoadFlags are those of region load.
type regionLoadFlags struct {
	loadFlags
	entries load.Entries
	puts    load.Puts
}

func regionLoadCommand(k *kubeFlags) *cobra.Command {
	var f regionLoadFlags
	cmd := &cobra.Command{
		Use:   "load GRID REGION SOURCE",
		Short: "Load the values of a file or a database into a region",
		Args:  countOf(3, 3, "an OrderGrid, a region and a source"),
		Long: `Puts a value of every row of SOURCE, and settles every row: accepted, present (the key has this very
value already) or refused, which is written to a report line by line. A key that has another value
refuses the row, so nothing that others wrote is overwritten; with --replace the row replaces it.
SOURCE is

  FILE.csv       a table with a heading
  FILE.parquet   the same, flat columns
  FILE.jsonl     lines of JSON, an object each
  postgres://... the result of --query; the password best in PGPASSWORD or ~/.pgpass

The key is column key, or those that --key names, joined with --join. The value is column value, or
the one that --value names, as it stands. Without one it is a JSON object of all columns that are
not of the key: --map renames them or leaves them out. Members of it are strings, empty ones are
left out; of a line of JSON they keep their types. A member valueBase64 is a value of any bytes.

A load that is interrupted goes on where it was when the same command is run again, with the same
--replace, --life and --forever: --state keeps how far it came, and rows behind that are compared
with what the region has. A load that has come to its end removes that file: run again, it begins
with the first row. Rows of one key are settled in the order of the source.

` + reachHelp + `
Where the grid enforces authorization the permissions Submit, Write and Read are needed. The certificate of the
grid's tools does not have Write: give --tls-cert or --token of a client that a rule permits it.

Exit codes: 0 every row is in the region, 1 rows were refused, 2 wrong usage, 4 failed: run it again to resume.`,
		Example: `  kubectl ordergrid region load trades positions positions.csv --key account,symbol -n trading --tls-cert desk.crt --tls-key desk.key
  kubectl ordergrid region load trades quotes quotes.jsonl --key symbol --life 10m --rate 5000
  kubectl ordergrid region load dev limits postgres://risk@db/limits --query 'SELECT id, most FROM limits ORDER BY id' --key id --endpoint 127.0.0.1:7400`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.load(cmd, k, args[0], args[1], args[2]) },
	}
	fl := cmd.Flags()
	f.register(fl, "csv, parquet or jsonl")
	fl.StringSliceVar(&f.entries.Key, "key", nil, "COLUMN of the key; several, repeated or separated by commas, are joined. Default: key")
	fl.StringVar(&f.entries.Joint, "join", "/", "what stands between the columns of the key")
	fl.StringVar(&f.entries.Value, "value", "", "COLUMN that is the value as it stands; default: value, if there is one")
	fl.StringToStringVar(&f.entries.Columns, "map", nil, "COLUMN=NAME, a column's name in the value; - leaves it out. Repeat or separate by commas")
	fl.DurationVar(&f.puts.Life, "life", 0, "how long the values live from when they are put; 0: as the region has it")
	fl.BoolVar(&f.puts.Forever, "forever", false, "the values do not expire, whatever the region has")
	fl.BoolVar(&f.puts.Replace, "replace", false, "a row replaces another value of its key")
	return cmd
}

func (f *regionLoadFlags) load(cmd *cobra.Command, k *kubeFlags, grid, region, name string) error {
	switch {
	case f.puts.Life < 0 || f.puts.Life > 0 && f.puts.Forever:
		return usageError{fmt.Errorf("--life: value %v, allowed: 0 or more, and 0 with --forever", f.puts.Life)}
	case f.entries.Joint == "":
		return usageError{fmt.Errorf("--join: value %q, allowed: 1 byte or more", f.entries.Joint)}
	}
	return f.run(cmd, k, grid, name, name+"."+region, f.entries, func(c *client.Client) (load.Target, string, error) {
		all, err := c.Regions(cmd.Context())
		if err != nil {
			return nil, "", err
		}
		if !slices.ContainsFunc(all, func(r client.RegionInfo) bool { return r.Name == region }) {
			names := make([]string, 0, len(all))
			for _, r := range all {
				names = append(names, r.Name)
			}
			return nil, "", usageError{fmt.Errorf("region: value %q, allowed: one of the grid's: %s", region, strings.Join(names, ", "))}
		}
		return load.Values(c.Region(region), f.puts), grid + ", region " + region, nil
	})
}
