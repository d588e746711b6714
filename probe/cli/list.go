package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the scenarios and their requirements",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := published.Load()
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			for _, name := range scenario.Names(d) {
				s, _ := d.Scenario(name)
				fmt.Fprintf(w, "%s\n  %s\n  published tables %s\n  judged by        %s\n", name, s.Reproduces, strings.Join(s.PublishedTables, ", "), s.Verdict)
				for _, mode := range []scenario.Mode{scenario.Exact, scenario.Scaled, scenario.Quick} {
					p, err := scenario.New(d, name, scenario.Options{Mode: mode})
					if err != nil {
						return err
					}
					fmt.Fprintf(w, "  %-7s %2d steps of %v + %v; %d shard(s), replicas %d; up to %d probes; %d MiB of orders in a node; takes %v\n",
						mode, len(p.Steps), p.WarmupTime(), p.MeasureTime(), p.Shards, p.Replicas, p.Probes,
						p.OrdersPerPartition()*int64(p.Replicas)*bytesPerOrder>>20, p.Length())
				}
			}
			listSystem(d, func(format string, args ...any) { fmt.Fprintf(w, format, args...) })
			fmt.Fprintf(w, "\nA run is valid when:\n")
			for _, g := range d.Guards {
				fmt.Fprintf(w, "  %-10s %s\n", g.Name, g.Rule)
			}
			return nil
		},
	}
}
