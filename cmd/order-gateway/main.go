// Command order-gateway is a FIX acceptor before a grid: it takes orders of FIX sessions
// and reports each once the grid has replicated it. It also streams orders to WebSocket
// clients.
package main

import (
	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/internal/command"
)

func main() { command.Main(rootCommand()) }

func rootCommand() *cobra.Command {
	f := &flags{}
	root := command.Root(&cobra.Command{
		Use:   "order-gateway",
		Short: "FIX sessions before an OrderGrid",
		Long: `order-gateway accepts FIX sessions (FIX 4.2, FIX 4.4), submits their orders to a grid, and
reports each with an ExecutionReport once all in-sync copies of the grid hold it.

The numbers of the sessions are in the memory of this process: when it ends, counterparties
reset their sessions (ResetSeqNumFlag=Y), and ask the grid for orders without a report.

Who may log on is in the file of --sessions. Passwords are taken over TLS only.

With --websocket it streams the grid's orders to WebSocket clients, and serves a console for
browsers; who may read what is in the file of --websocket-clients. Without --sessions it does
only that.

With --postgresql it answers SQL about the grid's orders by PostgreSQL's protocol, beside FIX or
alone.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.runAll(cmd.Context(), cmd.ErrOrStderr()) },
	})
	f.add(root.Flags())
	f.websocket.add(root.Flags())
	return root
}
