package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/ledger"
)

func ledgerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ledger FILE...",
		Short: "Print ledger files (ledger-A.bin of --out) as CSV, one line an order",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			w := bufio.NewWriter(cmd.OutOrStdout())
			fmt.Fprintln(w, "clordid,index,fate,partition,seq,epoch,copies,thread,created_ns,sent_ns,ended_ns,hash,lineage")
			for _, name := range files {
				if err := printLedger(w, name); err != nil {
					return errors.Join(w.Flush(), err)
				}
			}
			return w.Flush()
		},
	}
}

func printLedger(w *bufio.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = ledger.Read(f, func(h ledger.Header, r ledger.Record) error {
		_, err := fmt.Fprintf(w, "%s,%d,%s,%s,%d,%d,%d,%d,%d,%d,%d,%016x,%d\n", h.ID.ClOrdID(r.Index), r.Index, r.Fate,
			wire.PartitionID(h.Partition), r.Seq, r.Epoch, r.Copies, r.Thread, r.Created, r.Sent, r.Ended, r.Hash, r.Lineage)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
