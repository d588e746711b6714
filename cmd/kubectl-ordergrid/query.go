package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/query/statement"
	orderview "github.com/ordergrid/ordergrid/grid-node/view"
)

// Rows of an answer without limit, and between two runs of --watch.
const (
	usualRows  = 1000
	watchPause = 2 * time.Second
)

type queryFlags struct {
	reachFlags
	columns      []string
	output       string
	explain      bool
	linearizable bool
	watch        time.Duration
	timeout      time.Duration
}

func queryCommand(k *kubeFlags) *cobra.Command {
	var f queryFlags
	cmd := &cobra.Command{
		Use:   "query GRID STATEMENT",
		Short: "Ask a question about the orders of a grid, in SQL",
		Long: `Asks the grid one question, a select statement about its orders:

  select COLUMN, ... | count(*), sum(C), min(C), max(C) | *  from orders
  [where ...] [group by ...] [order by ... desc] [limit N]

Columns: Seq, ClOrdID, OrigClOrdID, Symbol, Side, Account, Price, OrderQty, OrdType, TimeInForce,
TransactTime, Session, Received, MsgType, State, and those of spec.orderIndex. The grid keeps views
(spec.views); an answer is whole, of a prefix of each partition's log, or an error. Without a limit
it has ` + fmt.Sprint(usualRows) + ` rows at most.

` + reachHelp + `

Exit codes: 0, 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid query trades "select * from orders where Account = 'ACC04711' and State = 'new'" -n trading
  kubectl ordergrid query trades "select Symbol, count(*), sum(OrderQty) from orders group by Symbol order by 2 desc limit 10" -o csv
  kubectl ordergrid query trades "select count(*) from orders where Price > 100" --explain
  kubectl ordergrid query dev "select State, count(*) from orders group by State" --endpoint 127.0.0.1:7400 --watch=2s`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{fmt.Errorf("%d arguments, allowed: an OrderGrid and one statement in quotes; see %s --help", len(args), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0], args[1]) },
	}
	f.register(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", formatTable, strings.Join(answerFormats, ", ")+" (one object a row and line)")
	cmd.Flags().BoolVar(&f.explain, "explain", false, "show the plan of each partition in place of the answer")
	cmd.Flags().BoolVar(&f.linearizable, "linearizable", false, "the answer has every order that was acknowledged before, to any client")
	cmd.Flags().DurationVar(&f.watch, "watch", 0, "ask again each so often until interrupted; 2s if no time is given")
	cmd.Flags().Lookup("watch").NoOptDefVal = watchPause.String()
	cmd.Flags().StringSliceVar(&f.columns, "column", nil, "TAG:KIND[:NAME], a column of spec.orderIndex, with --endpoint: KIND is text, decimal or time")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 30*time.Second, "for one answer")
	completeFlag(cmd, "output", fixedNames(answerFormats...))
	return cmd
}

func (f *queryFlags) run(cmd *cobra.Command, k *kubeFlags, grid, text string) error {
	switch {
	case !slices.Contains(answerFormats, f.output):
		return usageError{fmt.Errorf("--output: value %q, allowed: %s", f.output, strings.Join(answerFormats, ", "))}
	case f.watch != 0 && f.watch < 100*time.Millisecond:
		return usageError{fmt.Errorf("--watch: value %s, allowed: 100ms and more", f.watch)}
	case f.timeout <= 0:
		return usageError{fmt.Errorf("--timeout: value %s, allowed: more than 0", f.timeout)}
	}
	extra, err := f.indexed(cmd.Context(), k, grid)
	if err != nil {
		return err
	}
	st, err := statement.Parse(text, statement.Columns(extra...))
	if err != nil {
		return usageError{err}
	}
	c, done, err := f.dial(cmd, k, grid)
	if err != nil {
		return err
	}
	defer done()
	a := asker{client: c, st: st, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), flags: f}
	if f.explain {
		return a.explain(cmd.Context())
	}
	return a.watch(cmd.Context())
}

// indexed are the further columns of the grid's views.
func (f *queryFlags) indexed(ctx context.Context, k *kubeFlags, grid string) (extra []orderview.Extra, err error) {
	for _, text := range f.columns {
		x, err := orderview.ParseExtra(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("--column: %w", err)}
		}
		extra = append(extra, x)
	}
	if len(f.endpoints) > 0 {
		return extra, nil
	}
	cluster, err := k.connect()
	if err != nil {
		return nil, err
	}
	og, err := cluster.grid(ctx, grid)
	if err != nil {
		return nil, err
	}
	for _, x := range og.Spec.OrderIndex {
		e, err := orderview.ParseExtra(fmt.Sprintf("%d:%s:%s", x.Tag, strings.ToLower(string(x.Type)), x.Name))
		if err != nil {
			return nil, fmt.Errorf("spec.orderIndex of %s: %w", grid, err)
		}
		extra = append(extra, e)
	}
	return extra, nil
}

// asker asks one statement.
type asker struct {
	client     *client.Client
	st         *statement.Statement
	out, notes io.Writer
	flags      *queryFlags
}

func (a *asker) explain(ctx context.Context) error {
	for _, p := range a.client.Table() {
		ctx, cancel := context.WithTimeout(ctx, a.flags.timeout)
		plan, err := a.client.Explain(ctx, p.ID, client.Query{Query: a.st.Query})
		cancel()
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "%s:\n%s\n", p.ID, strings.TrimRight(plan, "\n"))
	}
	return nil
}

// watch asks once, or again and again.
func (a *asker) watch(ctx context.Context) error {
	for {
		err := a.ask(ctx)
		if a.flags.watch == 0 || err != nil {
			if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
				return nil // interrupted, which is the regular end of --watch
			}
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(a.flags.watch):
		}
		if a.flags.output == formatTable {
			fmt.Fprintf(a.out, "\n%s\n", time.Now().UTC().Format(time.RFC3339))
		}
	}
}

func (a *asker) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.flags.timeout)
	defer cancel()
	q := client.Query{Query: a.st.Query, Linearizable: a.flags.linearizable}
	if q.Limit == 0 {
		q.Limit = usualRows
	}
	answer, err := a.client.Query(ctx, q)
	if err != nil {
		return err
	}
	if err := a.write(answer); err != nil {
		return err
	}
	if answer.Next != nil && a.st.Query.Limit == 0 {
		fmt.Fprintf(a.notes, "there are more than these %d rows: add limit, or a narrower filter\n", len(answer.Rows))
	}
	return nil
}
