// Command grid-link carries the committed log of a grid to a standby of it in another cluster, and reports what a site
// that was replaced holds alone.
package main

import (
	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/internal/command"
)

func main() { command.Main(rootCommand()) }

func rootCommand() *cobra.Command {
	root := command.Root(&cobra.Command{
		Use:   "grid-link",
		Short: "Carries the log of an OrderGrid to a standby in another cluster",
		Long: `grid-link follows the committed log of every partition of a grid, the source, and sends its
entries, as they are, to a standby of it in another cluster, the target. It keeps nothing:
where it goes on is the end of the standby's log.

Both grids need a sink of type External of one name: spec.sinks in an OrderGrid,
--external-sink of grid-node.`,
	})
	root.AddCommand(runCommand(), sitesCommand(), orphansCommand(), command.Version("grid-link"))
	return root
}
