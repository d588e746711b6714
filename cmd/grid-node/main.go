// Command grid-node is the data plane of OrderGrid: one process per pod, or a
// whole grid of processes on one machine (grid-node dev).
package main

import (
	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/internal/command"
)

func main() { command.Main(rootCommand()) }

func rootCommand() *cobra.Command {
	root := command.Root(&cobra.Command{
		Use:   "grid-node",
		Short: "A node of an OrderGrid: keeps orders in memory, replicated and in sequence",
		Long: `grid-node keeps financial orders in memory, in sequence, in more than one process.

On a laptop, a whole grid and a first order:
  grid-node dev
  grid-node submit --endpoint 127.0.0.1:7400

In a cluster the operator starts "grid-node serve" in every pod.`,
	})
	root.AddCommand(serveCommand(), devCommand(), submitCommand(), getCommand(), verifyCommand(), command.Version("grid-node"))
	return root
}
