package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/command"
)

// site is a row of the table, and an object with --json.
type site struct {
	Grid      string `json:"grid"`
	Partition string `json:"partition"`
	Role      string `json:"role"`
	Term      uint64 `json:"term"`
	Seq       uint64 `json:"seq,omitempty"`  // of a standby: the end of its log
	Hash      string `json:"hash,omitempty"` // of that entry
	Error     string `json:"error,omitempty"`
}

func sitesCommand() *cobra.Command {
	var f pairFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sites",
		Short: "Print role, term and end of log of both grids",
		Long: `Prints what each partition is at both grids: Active or Standby, the term of its site, and where
a standby's log ends. After a demotion seq and hash of the demoted grid are the token for the
promotion of the other one.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := f.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer p.close()
			var rows []site
			for _, g := range []struct {
				name string
				c    *client.Client
			}{{f.source.grid, p.source}, {f.target.grid, p.target}} {
				for _, id := range p.partitions {
					rows = append(rows, siteOf(cmd.Context(), g.c, g.name, id))
				}
			}
			return printSites(cmd.OutOrStdout(), rows, asJSON)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON for each partition of each grid")
	return cmd
}

func siteOf(ctx context.Context, c *client.Client, grid string, id wire.PartitionID) site {
	s, err := c.Site(ctx, id)
	row := site{Grid: grid, Partition: id.String(), Role: "Active", Term: s.Term}
	switch {
	case err != nil:
		row.Role, row.Error = "unknown", err.Error()
	case s.Standby:
		row.Role, row.Seq, row.Hash = "Standby", s.Stored.Seq, fmt.Sprintf("%016x", s.Stored.Hash)
	}
	return row
}

func printSites(w io.Writer, rows []site, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		for i := range rows {
			if err := enc.Encode(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "GRID\tPARTITION\tROLE\tTERM\tSEQ\tHASH")
	for _, r := range rows {
		if r.Error != "" {
			fmt.Fprintf(t, "%s\t%s\t%s\t\t\t%s\n", r.Grid, r.Partition, r.Role, r.Error)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%s\n", r.Grid, r.Partition, r.Role, r.Term, r.Seq, r.Hash)
	}
	return t.Flush()
}
