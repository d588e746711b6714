package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

type mapFlags struct {
	regionFlags
	argumentFlags
	region, output string
	slices, atOnce int
	orders         bool
	partitions     []int
	sliceTimeout   time.Duration
}

var mapFormats = []string{formatTable, formatJSON}

func functionMapCommand(k *kubeFlags) *cobra.Command {
	var f mapFlags
	cmd := &cobra.Command{
		Use:   "map GRID FUNCTION",
		Short: "Call a function of kind Compute for all entries of a region, all orders, or for arguments alone",
		Long: `Calls a function of kind Compute (spec.callbacks.compute of the OrderGrid, docs/functions.md) for every entry
of a region (--region) or every order that the log holds (--orders), on the primary of each partition, or
without these for arguments alone, on all nodes. It computes on threads beside orders and changes nothing. The
entries of a partition are those after one entry of its log (column ENTRY), the orders those up to it:
everything acknowledged before the call is in it. Orders that were freed, since they are downstream, are not.

With --slices N each partition's entries or orders, or without them the work, are divided into N parts that are
computed side by side, as far as nodes have threads for it: half of their cores. Prints a line for each part:
what the function answered, for how many entries it was called, and how long that took. All parts are
there, or the command fails; one whose node is lost is computed anew at the next primary.

` + argumentsHelp + ` A reply is printed as text, or in
hexadecimal digits where it is none, and cut where it is long; -o json has all of it, with replyBase64 in place
of reply where that is no UTF-8. What is done so far is shown on a terminal, elsewhere every ten seconds.

` + regionReadHelp + `

Exit codes: 0 all parts are there, 1 the function returned an error or failed, or a part needs more than a
bound of the nodes (a minute, fuel, memory): ask for more slices, 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid function map trades total --region positions -n trading
  kubectl ordergrid function map trades notional --orders --slices 4 -n trading
  kubectl ordergrid function map dev primes --args-hex 1027000001000000 --slices 8 --endpoint 127.0.0.1:7400
  kubectl ordergrid function map dev primes --region numbers --args-hex 0000000001000000 --endpoint 127.0.0.1:7400 -o json`,
		Args: countOf(2, 2, "an OrderGrid and a function"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0], args[1]) },
	}
	f.regionFlags.register(cmd)
	f.argumentFlags.register(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.region, "region", "", "region whose entries the function is called for; default: none, it gets the arguments alone")
	fl.BoolVar(&f.orders, "orders", false, "call the function for the orders that the log holds; takes the permission Watch")
	fl.IntSliceVar(&f.partitions, "partition", nil, "with --region or --orders: numbers of partitions, such as 0,3; default: all")
	fl.IntVar(&f.slices, "slices", 1, fmt.Sprintf("into how many parts the work is divided, of each partition with --region or --orders: 1 to %d", wire.MaxSlices))
	fl.IntVar(&f.atOnce, "at-once", 0, fmt.Sprintf("how many parts are under way at a time at most: 1 to %d, 0 is %d", client.MaxAtOnce, client.MaxAtOnce))
	fl.DurationVar(&f.sliceTimeout, "slice-timeout", time.Minute, "of one part at one node: 1ms to 1m")
	fl.StringVarP(&f.output, "output", "o", formatTable, "table, json")
	completeFlag(cmd, "output", fixedNames(mapFormats...))
	fl.Lookup("timeout").DefValue, f.timeout = "5m0s", 5*time.Minute
	return cmd
}

func (f *mapFlags) check() error {
	if _, err := choose("output", f.output, mapFormats, make([]int, len(mapFormats))); err != nil {
		return err
	}
	switch {
	case f.slices < 1 || f.slices > wire.MaxSlices:
		return usageError{fmt.Errorf("--slices: value %d, allowed: 1 to %d", f.slices, wire.MaxSlices)}
	case f.atOnce < 0 || f.atOnce > client.MaxAtOnce:
		return usageError{fmt.Errorf("--at-once: value %d, allowed: 0 to %d", f.atOnce, client.MaxAtOnce)}
	case f.orders && f.region != "":
		return usageError{errors.New("--orders: not with --region; give one of them")}
	case len(f.partitions) > 0 && f.region == "" && !f.orders:
		return usageError{errors.New("--partition: needs --region or --orders, since arguments alone are of no partition")}
	case f.sliceTimeout < time.Millisecond || f.sliceTimeout > time.Minute:
		return usageError{fmt.Errorf("--slice-timeout: value %s, allowed: 1ms to 1m", f.sliceTimeout)}
	}
	return nil
}

func (f *mapFlags) run(cmd *cobra.Command, k *kubeFlags, grid, function string) error {
	if err := f.check(); err != nil {
		return err
	}
	arguments, err := f.arguments(cmd)
	if err != nil {
		return err
	}
	if len(arguments) > wire.MaxMapArgs {
		return usageError{fmt.Errorf("arguments have %d bytes, allowed: 0 to %d", len(arguments), wire.MaxMapArgs)}
	}
	return f.with(cmd, k, grid, func(ctx context.Context, c *client.Client) error {
		show := newMapProgress(cmd.ErrOrStderr(), f.slices)
		of, err := f.of(len(c.Table()))
		if err != nil {
			return err
		}
		switch {
		case of != nil:
			show.all *= len(of)
		case f.region != "" || f.orders:
			show.all *= len(c.Table())
		}
		parts, err := c.Map(ctx, function, client.MapRequest{Region: f.region, Orders: f.orders, Partitions: of, Args: arguments, Slices: f.slices, AtOnce: f.atOnce, Timeout: f.sliceTimeout, OnPart: show.part})
		show.line.end()
		if failed := (*client.FunctionError)(nil); errors.As(err, &failed) || errors.Is(err, client.ErrMapBound) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%d of %d parts were there: %v\n", show.done, show.all, err)
			return exitError(exitFailedCall)
		}
		if err != nil {
			return err
		}
		return writeParts(cmd.OutOrStdout(), f.output, parts)
	})
}

// of returns the partitions of --partition, of a grid with so many; nil: all.
func (f *mapFlags) of(partitions int) (list []wire.PartitionID, err error) {
	for _, n := range f.partitions {
		if n < 0 || n >= partitions {
			return nil, usageError{fmt.Errorf("--partition: value %d, allowed: 0 to %d", n, partitions-1)}
		}
		list = append(list, wire.PartitionID(n))
	}
	return list, nil
}

// mapProgress shows a Map that is under way.
type mapProgress struct {
	line      progressLine
	all, done int
	rows      uint64
	begun     time.Time
	said      time.Time
}

func newMapProgress(out io.Writer, all int) *mapProgress {
	now := time.Now()
	return &mapProgress{line: progressLine{out: out, terminal: isTerminal(out)}, all: all, begun: now, said: now}
}

// sayEach is how often progress is a line of its own where there is no terminal.
const sayEach = 10 * time.Second

func (p *mapProgress) part(x client.MapPart) {
	p.done++
	p.rows += x.Rows
	if now := time.Now(); p.line.terminal || now.Sub(p.said) >= sayEach {
		p.said = now
		p.line.print(fmt.Sprintf("%3d %%  %d of %d parts, %s entries, %v", 100*p.done/max(p.all, 1), p.done, p.all, count(int64(p.rows)), now.Sub(p.begun).Round(100*time.Millisecond)))
	}
}

// mapPartJSON is a part as JSON.
type mapPartJSON struct {
	Partition   string  `json:"partition"`
	Slice       int     `json:"slice"`
	Rows        uint64  `json:"rows"`
	Fuel        uint64  `json:"fuel"`
	From        uint64  `json:"from,omitempty"`  // with --orders, the number of the first entry of the log that counted
	Entry       string  `json:"entry,omitempty"` // the last one of the log that counted; absent for arguments alone
	Hash        string  `json:"hash,omitempty"`  // with --orders, of that entry
	Epoch       uint64  `json:"epoch"`
	Address     string  `json:"address"`
	Seconds     float64 `json:"seconds"`
	Reply       *string `json:"reply,omitempty"`
	ReplyBase64 []byte  `json:"replyBase64,omitempty"`
}

func entryOf(p *client.MapPart) string {
	if p.Seq == 0 {
		return ""
	}
	return fmt.Sprintf("%s/%d", p.Partition, p.Seq)
}

func writeParts(out io.Writer, format string, parts []client.MapPart) error {
	if format == formatJSON {
		list := make([]mapPartJSON, 0, len(parts))
		for i := range parts {
			p := &parts[i]
			j := mapPartJSON{Partition: p.Partition.String(), Slice: p.Slice, Rows: p.Rows, Fuel: p.Fuel, Entry: entryOf(p), Epoch: p.Epoch, Address: p.Address, Seconds: p.Took.Seconds(), From: p.From}
			if p.Hash != 0 {
				j.Hash = fmt.Sprintf("%016x", p.Hash)
			}
			if text := string(p.Reply); utf8.ValidString(text) {
				j.Reply = &text
			} else {
				j.ReplyBase64 = p.Reply
			}
			list = append(list, j)
		}
		return indented(out, list)
	}
	var t table
	t.row("PARTITION", "SLICE", "ENTRIES", "FUEL", "ENTRY", "NODE", "TOOK", "REPLY")
	for i := range parts {
		p := &parts[i]
		entry := entryOf(p)
		if entry == "" {
			entry = "-"
		}
		t.row(p.Partition, p.Slice, p.Rows, p.Fuel, entry, p.Address, p.Took.Round(10*time.Microsecond), replyText(p.Reply))
	}
	return t.write(out)
}

// mostReply bytes of a reply are in a table.
const mostReply = 64

// replyText is a reply on one line: as text if it can be printed, otherwise in hexadecimal digits.
func replyText(reply []byte) string {
	text, cut := string(reply), ""
	if len(reply) > mostReply {
		text, cut = string(reply[:mostReply]), "..."
	}
	if text == "" {
		return "-"
	}
	for _, r := range text {
		if r < ' ' || r > '~' {
			return fmt.Sprintf("%x%s", text, cut)
		}
	}
	return fmt.Sprintf("%q%s", text, cut)
}
