package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/internal/command"
	"github.com/ordergrid/ordergrid/internal/tlsflag"
)

// clientFlags are common to the commands that talk to a grid.
type clientFlags struct {
	endpoints []string
	grid      string
	timeout   time.Duration
	tls       tlsflag.Flags
}

func (f *clientFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringSliceVar(&f.endpoints, "endpoint", []string{"127.0.0.1:7400"}, "host:port of any node, or of the grid's client service; several separated by commas")
	fl.StringVar(&f.grid, "grid", "", "name of the grid; empty takes the grid that answers")
	fl.DurationVar(&f.timeout, "timeout", 5*time.Second, "for connecting, and for each request with its retries")
	f.tls.Register(fl, "TLS is used for the grid")
	f.tls.RegisterToken(fl)
}

func (f *clientFlags) dial(ctx context.Context) (*client.Client, error) {
	cfg := client.Config{Endpoints: f.endpoints, Grid: f.grid, Name: "grid-node-cli", DialTimeout: f.timeout, RequestTimeout: f.timeout}
	var err error
	if cfg.TLS, err = f.tls.Client(); err != nil {
		return nil, command.BadUsage(err)
	}
	cfg.Token = f.tls.Token()
	return client.Dial(ctx, cfg)
}

func submitCommand() *cobra.Command {
	var f clientFlags
	var file, clOrdID string
	var seal bool
	cmd := &cobra.Command{
		Use:   "submit",
		Short: "Submit FIX orders and print a receipt for each",
		Long: `Submit orders, cancels and replaces (35=D, F, G) of FIX 4.2, 4.4 or 5.0 SP2 (8=FIXT.1.1) and print
a receipt for each: grid order id, epoch, copies, time taken.

Without --file one sample order is sent. A file holds one message a line; SOH may be
written as '|'. BodyLength (9) and CheckSum (10) have to be right, --seal sets them.`,
		Example: "  grid-node submit --endpoint 127.0.0.1:7400\n  grid-node submit --file orders.fix --seal\n  echo '8=FIX.4.2|35=D|11=A1|…' | grid-node submit --file - --seal",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			orders, err := ordersOf(file, clOrdID, seal, cmd.InOrStdin())
			if err != nil {
				return command.BadUsage(err)
			}
			c, err := f.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			return submitAll(cmd.Context(), c, orders, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&file, "file", "", "file with one message a line, - for standard input; default: one sample order")
	cmd.Flags().StringVar(&clOrdID, "clordid", "", "ClOrdID (11) of the sample order; default: a random one")
	cmd.Flags().BoolVar(&seal, "seal", false, "set BodyLength (9) and CheckSum (10) of each message")
	return cmd
}

func ordersOf(file, clOrdID string, seal bool, stdin io.Reader) ([][]byte, error) {
	if file == "" {
		if clOrdID == "" {
			clOrdID = "sample-" + rand.Text()[:12]
		}
		return [][]byte{sampleOrder(clOrdID, time.Now())}, nil
	}
	if clOrdID != "" {
		return nil, errors.New("--clordid: allowed without --file only; the file's orders have their own")
	}
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	orders, err := readOrders(in)
	if err != nil {
		return nil, fmt.Errorf("--file %s: %w", file, err)
	}
	if seal {
		for i := range orders {
			if orders[i], err = sealFIX(orders[i]); err != nil {
				return nil, fmt.Errorf("--file %s: message %d: %w", file, i+1, err)
			}
		}
	}
	return orders, nil
}

func readOrders(in io.Reader) (orders [][]byte, err error) {
	sc := bufio.NewScanner(in)
	sc.Buffer(make([]byte, 64<<10), 1<<20)
	for sc.Scan() {
		line := bytes.TrimRight(sc.Bytes(), "\r")
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if bytes.IndexByte(line, 1) < 0 {
			line = bytes.ReplaceAll(line, []byte{'|'}, []byte{1})
		}
		orders = append(orders, bytes.Clone(line))
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if len(orders) == 0 {
		return nil, errors.New("no message; one a line is needed")
	}
	return orders, nil
}

// submitAll sends one order after the other. A refused one does not stop the
// next; the first error is returned at the end.
func submitAll(ctx context.Context, c *client.Client, orders [][]byte, out, errs io.Writer) error {
	refused := 0
	var first error
	for i, o := range orders {
		start := time.Now()
		r, err := c.Submit(ctx, o)
		if err != nil {
			refused++
			first = errors.Join(first, err)
			fmt.Fprintf(errs, "order %d: %v\n", i+1, err)
			var re *client.RejectError
			if !errors.As(err, &re) {
				break // the grid is unreachable: the next order would wait as long
			}
			continue
		}
		fmt.Fprintf(out, "%s  ClOrdID %s  %d bytes  %s\n", r, clOrdIDOf(o), len(o), time.Since(start).Round(time.Microsecond))
	}
	for _, o := range c.Outages() {
		fmt.Fprintf(errs, "outage: %v\n", o)
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d orders were not accepted", refused, len(orders))
	}
	return nil
}
