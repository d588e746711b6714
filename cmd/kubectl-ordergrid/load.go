package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/load"
	"github.com/ordergrid/ordergrid/internal/numtext"
)

// exitRefused means that rows were refused.
const exitRefused = 1

// loadFlags are those of every load, of orders and of values of a region.
type loadFlags struct {
	reachFlags
	format, query, state, refused string
	options                       load.Options
}

func (f *loadFlags) register(fl *pflag.FlagSet, formats string) {
	f.reachFlags.register(fl)
	fl.StringVar(&f.format, "format", "", formats+"; default by the ending of the file")
	fl.StringVar(&f.query, "query", "", "SELECT ... ORDER BY ..., for a source that begins with postgres://")
	fl.Float64Var(&f.options.Rate, "rate", 0, "rows a second at most; 0: as many as the grid takes")
	fl.IntVar(&f.options.InFlight, "in-flight", load.DefaultInFlight, fmt.Sprintf("rows on their way at a time, 1 to %d", load.MaxInFlight))
	fl.DurationVar(&f.options.Patience, "patience", load.DefaultPatience, "how long a row is tried again that the grid cannot take for now")
	fl.StringVar(&f.state, "state", "", "file that keeps how far the load came; default SOURCE.load.json (of a region SOURCE.REGION.load.json) for a file, none for a query")
	fl.StringVar(&f.refused, "refused", "", "report of refused rows, a line of JSON each; default SOURCE.refused.jsonl (of a region SOURCE.REGION.refused.jsonl) for a file, none for a query")
}

func loadCommand(k *kubeFlags) *cobra.Command {
	var f loadFlags
	var m load.Mapping
	cmd := &cobra.Command{
		Use:   "load GRID SOURCE",
		Short: "Load the orders of a file or a database into a grid",
		Long: `Submits every order of SOURCE, and settles every one: accepted, present (the grid has this very
message under its ClOrdID already) or refused, which is written to a report line by line.
SOURCE is

  FILE.csv       a table with a heading; columns are FIX fields: ClOrdID, Symbol, OrderQty, 38, ...
  FILE.parquet   the same, flat columns
  FILE.fix, .log a FIX log: one message or more a line, separated by SOH, | or ^A; orders (35=D, F, G) are taken
  postgres://... the result of --query, with columns as above; the password best in PGPASSWORD or ~/.pgpass

A load that is interrupted goes on where it was when the same command is run again: --state keeps
how far it came, and rows behind that are compared with what the grid has. A load that came to its
end sends nothing when it is run again, unless that file is removed. Rows that the grid cannot take
for now (it is full, or has too few copies) are tried again for --patience, then the load ends and
can be resumed. Orders of one partition are sent in the order of the source.

` + reachHelp + `

Exit codes: 0 every row is in the grid, 1 rows were refused, 2 wrong usage, 4 failed: run it again to resume.`,
		Example: `  kubectl ordergrid load trades orders.csv -n trading
  kubectl ordergrid load trades positions.csv --map id=ClOrdID --map notes=- --set 40=2 --set 60=20260102-08:00:00
  kubectl ordergrid load trades session.log --rate 5000
  kubectl ordergrid load dev postgres://oms@db/orders --query 'SELECT ... ORDER BY id' --endpoint 127.0.0.1:7400`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{fmt.Errorf("%d arguments, allowed: an OrderGrid and a source; see %s --help", len(args), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, k, args[0], args[1], args[1], m, func(c *client.Client) (load.Target, string, error) { return load.Orders(c), args[0], nil })
		},
	}
	fl := cmd.Flags()
	f.register(fl, "csv, parquet or fix")
	fl.StringToStringVar(&m.Columns, "map", nil, "COLUMN=FIELD, what a column is: a FIX tag or name; - leaves the column out. Repeat or separate by commas")
	fl.StringToStringVar(&m.Set, "set", nil, "FIELD=VALUE, for every row; repeat or separate by commas. Default: 35=D, 49=LOAD, 56=ORDERGRID, 34=the row, 52=TransactTime (60)")
	fl.StringVar(&m.Version, "fix-version", "FIX.4.4", "of the messages made from a table: FIX.4.4, FIX.4.2, or FIXT.1.1 for FIX 5.0 SP2")
	return cmd
}

// run loads the source of a name. Its state and report are kept in files that begin with files; target says what it is
// loaded into, and the name of that.
func (f *loadFlags) run(cmd *cobra.Command, k *kubeFlags, grid, name, files string, shape load.Shape, target func(*client.Client) (load.Target, string, error)) (err error) {
	src, err := load.Open(cmd.Context(), name, f.format, f.query, shape)
	if err != nil {
		return usageError{err}
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	f.options.State, f.options.Refusals = f.state, f.refused
	if f.query == "" {
		if !cmd.Flags().Changed("state") {
			f.options.State = files + ".load.json"
		}
		if !cmd.Flags().Changed("refused") {
			f.options.Refusals = files + ".refused.jsonl"
		}
	}
	c, done, err := f.dial(cmd, k, grid)
	if err != nil {
		return err
	}
	defer done()
	show := progressLine{out: cmd.ErrOrStderr(), terminal: isTerminal(cmd.ErrOrStderr())}
	f.options.Notify = show.show
	to, into, err := target(c)
	if err != nil {
		return err
	}
	l, err := load.New(to, into, src, f.options)
	if err != nil {
		return usageError{err}
	}
	begun := time.Now()
	n, err := l.Run(cmd.Context())
	show.end()
	fmt.Fprintf(cmd.OutOrStdout(), "%s rows in %v: %s accepted, %s present, %s refused\n", count(n.Rows), time.Since(begun).Round(time.Millisecond),
		count(n.Accepted), count(n.Present), count(n.Refused))
	switch {
	case l.Resumed() == 0:
	case l.Resumed() == n.Rows && err == nil:
		fmt.Fprintf(cmd.OutOrStdout(), "all of them by runs before: nothing was sent; remove %s to send them again\n", f.options.State)
	default:
		fmt.Fprintf(cmd.OutOrStdout(), "%s of them by runs before\n", count(l.Resumed()))
	}
	if n.Refused > 0 && f.options.Refusals != "" {
		fmt.Fprintf(cmd.OutOrStdout(), "refused rows, one a line: %s\n", f.options.Refusals)
	}
	switch {
	case err != nil && f.options.State != "":
		return fmt.Errorf("%w; run the same command again to resume behind row %d", err, n.Rows)
	case err != nil:
		return err
	case n.Refused > 0:
		return exitError(exitRefused)
	}
	return nil
}

// progressLine shows a load that runs: one line that changes on a terminal, a line every ten seconds elsewhere.
type progressLine struct {
	out      io.Writer
	terminal bool
	width    int
	calls    int
}

func (l *progressLine) show(p load.Progress) {
	l.calls++
	if !l.terminal && l.calls%10 != 0 {
		return
	}
	text := fmt.Sprintf("%s rows, %.0f/s, %s refused", count(p.Rows), p.Rate, count(p.Refused))
	if p.Fraction > 0 {
		text = fmt.Sprintf("%3.0f %%  %s, %v left", 100*p.Fraction, text, p.Remaining().Round(time.Second))
	}
	if p.Trouble != "" {
		text += ", waiting: " + p.Trouble
	}
	l.print(text)
}

// print shows a text in place of the one before.
func (l *progressLine) print(text string) {
	if !l.terminal {
		fmt.Fprintln(l.out, text)
		return
	}
	text = text[:min(len(text), 160)]
	fmt.Fprintf(l.out, "\r%s%s", text, strings.Repeat(" ", max(0, l.width-len(text))))
	l.width = len(text)
}

func (l *progressLine) end() {
	if l.width > 0 {
		fmt.Fprintln(l.out)
	}
}

func count(n int64) string { return numtext.Thousands(float64(n)) }
