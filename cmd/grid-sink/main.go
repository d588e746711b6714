// Command grid-sink follows the committed log of a grid and writes it to a system outside: each subcommand is one kind
// of target. It is a process of its own because the clients of these systems cost time and garbage that have no place
// beside the data loop of a node.
package main

import (
	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/internal/command"
)

func main() { command.Main(rootCommand()) }

func rootCommand() *cobra.Command {
	root := command.Root(&cobra.Command{
		Use:   "grid-sink",
		Short: "Writes the committed log of an OrderGrid to a system outside, each entry exactly once",
		Long: `grid-sink follows the committed log of every partition of a grid and writes it to a system
outside. The position is kept there, in the transaction of the orders, so that nothing is
lost and nothing is there twice, through any failure of the grid, the target or grid-sink.

The grid needs a sink of type External: spec.sinks in an OrderGrid, --external-sink of grid-node.`,
	})
	root.AddCommand(commands()...)
	return root
}

// commands has a line for each kind of target, and for version.
func commands() []*cobra.Command {
	return []*cobra.Command{
		archiveCommand(),
		bridgeCommand(),
		kafkaCommand(),
		postgresCommand(),
		command.Version("grid-sink"),
	}
}
