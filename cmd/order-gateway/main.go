// Command order-gateway is a gateway before a grid, for clients that speak a protocol of the
// field: it takes orders of FIX sessions and reports each once the grid has replicated it, streams
// orders to WebSocket clients, and answers SQL.
package main

import (
	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/internal/command"
)

func main() { command.Main(rootCommand()) }

func rootCommand() *cobra.Command {
	f := &flags{protocols: protocols()}
	root := command.Root(&cobra.Command{
		Use:   "order-gateway",
		Short: "FIX sessions, streams and SQL before an OrderGrid",
		Long: `order-gateway accepts FIX sessions (FIX 4.2, FIX 4.4, FIX 5.0 SP2 over FIXT 1.1), submits their
orders to a grid, and reports each with an ExecutionReport once all in-sync copies of the grid hold it.

The numbers of the sessions are in the log of the grid: when this process ends, counterparties log
on at another one, or at the next, and go on with the numbers they have.

Who may log on is in the file of --sessions, with passwords in files of their own; all are
read again when they change. On SIGTERM sessions are logged out as their orders are answered.

With --websocket it streams the grid's orders to WebSocket clients, and serves a console for
browsers; who may read what is in the file of --websocket-clients. With --postgresql it answers
SQL about the grid's orders by PostgreSQL's protocol. Each of the three is served alone or beside
the others.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), cmd.ErrOrStderr()) },
	})
	f.add(root.Flags())
	root.AddCommand(command.Version("order-gateway"))
	return root
}
