package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

type recordFlags struct {
	reachFlags
	partitions       []string
	function, output string
	from             uint64
}

func functionRecordsCommand(k *kubeFlags) *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "records GRID",
		Short: "Show what functions of kind Post made of orders",
		Long: `Shows the records that functions of kind Post made of committed orders, and which calls failed: in
the order of each partition's log. Records are held as long as their entries, and less long where
they take too much memory; what is no longer held is left out and said.

` + reachHelp + `

Exit codes: 0, 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid function records trades -n trading --function audit-trail
  kubectl ordergrid function records dev --endpoint 127.0.0.1:7400 --partition p0 --from 1000 -o json`,
		Args: oneGrid,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0]) },
	}
	f.register(cmd.Flags())
	cmd.Flags().StringSliceVar(&f.partitions, "partition", nil, "only these, for example p1; default all")
	cmd.Flags().StringVar(&f.function, "function", "", "only records of this function")
	cmd.Flags().Uint64Var(&f.from, "from", 1, "first entry of each partition")
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text or json")
	completeFlag(cmd, "output", fixedNames("text", "json"))
	return cmd
}

func (f *recordFlags) run(cmd *cobra.Command, k *kubeFlags, grid string) error {
	if _, err := choose("output", f.output, []string{"text", "json"}, []int{0, 1}); err != nil {
		return err
	}
	if f.from == 0 {
		return usageError{fmt.Errorf("--from: value 0, allowed: an entry of 1 or more")}
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
	for _, p := range parts {
		if err := f.read(cmd, c, p); err != nil {
			return err
		}
	}
	return nil
}

func (f *recordFlags) read(cmd *cobra.Command, c *client.Client, p wire.PartitionID) error {
	write := func(r client.Record) error {
		if f.function != "" && r.Function != f.function {
			return nil
		}
		return writeRecord(cmd.OutOrStdout(), f.output, &r)
	}
	_, err := c.ReadRecords(cmd.Context(), p, "", f.from, write)
	if held, gone := freedUpTo(err); gone {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: records up to entry %d are no longer held\n", p, held)
		_, err = c.ReadRecords(cmd.Context(), p, "", held+1, write)
	}
	return err
}

// writeRecord writes a line: the bytes are in hexadecimal digits.
func writeRecord(w io.Writer, format string, r *client.Record) (err error) {
	if format == "json" {
		return json.NewEncoder(w).Encode(struct {
			Order    string `json:"order"`
			Function string `json:"function"`
			Fault    string `json:"fault,omitempty"`
			Record   string `json:"record,omitempty"`
		}{fmt.Sprintf("%s/%d", r.Partition, r.Entry), r.Function, r.Fault, hex.EncodeToString(r.Bytes)})
	}
	text := hex.EncodeToString(r.Bytes)
	if r.Fault != "" {
		text = "failed: " + r.Fault
	}
	_, err = fmt.Fprintf(w, "%s/%d  %s  %s\n", r.Partition, r.Entry, r.Function, text)
	return err
}
