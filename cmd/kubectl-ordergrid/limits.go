package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/user"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

type killFlags struct {
	reachFlags
	on                                        bool
	session, trader, desk, algorithm, account string
	all                                       bool
	reason                                    string
	wait                                      bool
	timeout                                   time.Duration
}

const killHelp = `Exactly one of --session, --trader, --desk, --algorithm, --client and --all names what is meant. In
which tags of an order trader, desk and algorithm are is in the limits (traderTag and so on), the
client is the Account (1), a session has its id of 32 hexadecimal digits.

Each partition takes it at one position of its log, which has who, when and why, and prints that.
It may be repeated. Who is the identity that the grid knows, from the certificate or the token; in a
grid without authentication it is the name of the local user. Needs the permission Risk.

` + reachHelp + `

Exit codes: 0 every partition has it, 2 wrong usage, 4 at least one did not answer, or with --wait orders
still rest: repeat it.`

func killCommand(k *kubeFlags, on bool) *cobra.Command {
	f := killFlags{on: on}
	cmd := &cobra.Command{Use: "kill GRID", Short: "Stop new orders of a trader, a client, an algorithm, or all (kill switch)", Args: oneGrid,
		Long: `Makes all partitions refuse new orders and replaces of what is named. Cancels pass. In a grid that
matches, orders of it that rest are cancelled in parts; the column CANCELLED has how many they were, or
that some still rest. With --wait the command returns when none does.

` + killHelp,
		Example: "  kubectl ordergrid kill trades --trader ann --reason 'runaway algorithm' -n trading\n  kubectl ordergrid kill dev --all --reason drill --endpoint 127.0.0.1:7400",
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0]) }}
	if !on {
		cmd.Use, cmd.Short = "unkill GRID", "Take orders again after a kill"
		cmd.Long = "Ends a kill of the same scope and name, and the halt of an algorithm after repeated executions.\n\n" + killHelp
		cmd.Example = "  kubectl ordergrid unkill trades --trader ann --reason 'fixed, tested by bob' -n trading"
	}
	fl := cmd.Flags()
	f.register(fl)
	fl.StringVar(&f.session, "session", "", "id of a client's session")
	fl.StringVar(&f.trader, "trader", "", "name of a trader")
	fl.StringVar(&f.desk, "desk", "", "name of a desk")
	fl.StringVar(&f.algorithm, "algorithm", "", "name of an algorithm")
	fl.StringVar(&f.account, "client", "", "account (1) of a client")
	fl.BoolVar(&f.all, "all", false, "everybody")
	fl.StringVar(&f.reason, "reason", "", "why, for the log; required")
	fl.DurationVar(&f.timeout, "timeout", 30*time.Second, "for everything")
	if on {
		fl.BoolVar(&f.wait, "wait", false, "in a grid that matches, wait until all orders that rest and are meant are cancelled")
	}
	return cmd
}

// kill reads what is meant.
func (f *killFlags) kill() (k client.Kill, err error) {
	n := 0
	for scope, name := range []string{f.session, f.trader, f.desk, f.algorithm, f.account} {
		if name != "" {
			k.Scope, k.Name = order.GuardScope(scope), name
			n++
		}
	}
	if f.all {
		k.Scope = order.GuardAll
		n++
	}
	switch {
	case n != 1:
		return k, fmt.Errorf("%d of --session, --trader, --desk, --algorithm, --client and --all, allowed: one", n)
	case strings.TrimSpace(f.reason) == "" || len(f.reason) > order.MaxGuardWhy:
		return k, fmt.Errorf("--reason: value %.40q, allowed: 1..%d bytes", f.reason, order.MaxGuardWhy)
	case len(k.Name) > order.MaxGuardName:
		return k, fmt.Errorf("name of %d bytes, allowed: 1..%d", len(k.Name), order.MaxGuardName)
	}
	k.Why = f.reason
	if u, err := user.Current(); err == nil {
		k.Who = u.Username
	}
	return k, nil
}

func (f *killFlags) run(cmd *cobra.Command, k *kubeFlags, grid string) error {
	kill, err := f.kill()
	if err != nil {
		return usageError{err}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	cmd.SetContext(ctx)
	c, done, err := f.dial(cmd, k, grid)
	if err != nil {
		return err
	}
	defer done()
	do, word := c.Kill, "killed"
	if !f.on {
		do, word = c.Unkill, "taken again"
	}
	results, err := do(ctx, kill)
	if !f.on {
		printKills(cmd.OutOrStdout(), results, nil, word)
		return err
	}
	counts, waited := f.counts(ctx, c, &kill)
	printKills(cmd.OutOrStdout(), results, counts, word)
	return cmp.Or(err, waited)
}

// countTimeout bounds how long the count is asked for where it is not waited for: a node of a
// release before does not know the question.
const countTimeout = 2 * time.Second

// counts reads what the kill has cancelled; with --wait until nothing that it means rests.
func (f *killFlags) counts(ctx context.Context, c *client.Client, k *client.Kill) ([]client.KillCount, error) {
	if !c.BySymbol() {
		return nil, nil
	}
	for {
		ask, cancel := context.WithTimeout(ctx, countTimeout)
		counts, err := c.KillCounts(ask, k.Scope, k.Name)
		cancel()
		if !f.wait {
			return counts, nil // the kill is there: what is not known of its count is printed
		}
		if err == nil && !slices.ContainsFunc(counts, func(n client.KillCount) bool { return n.State == client.KillCancelling }) {
			return counts, nil
		}
		select {
		case <-ctx.Done():
			return counts, fmt.Errorf("--wait: not all orders that the kill means are cancelled after --timeout %s: %w", f.timeout, cmp.Or(err, ctx.Err()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func printKills(out io.Writer, results []client.KillResult, counts []client.KillCount, word string) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head, count := "PARTITION\tENTRY\tTIME\tRESULT", func(int) string { return "" }
	if counts != nil {
		head, count = head+"\tCANCELLED", func(p int) string { return "\t" + cancelled(&counts[p]) }
	}
	fmt.Fprintln(w, head)
	for i := range results {
		r := &results[i]
		switch {
		case r.Err != nil:
			fmt.Fprintf(w, "%s\t-\t-\tunknown%s\n", r.Partition, count(i))
		case r.Was:
			fmt.Fprintf(w, "%s\t%d\t%s\t%s before%s\n", r.Partition, r.Entry, r.Time.UTC().Format(time.RFC3339Nano), word, count(i))
		default:
			fmt.Fprintf(w, "%s\t%d\t%s\t%s%s\n", r.Partition, r.Entry, r.Time.UTC().Format(time.RFC3339Nano), word, count(i))
		}
	}
	_ = w.Flush() // the terminal is gone: the error of the command says what matters
}

// cancelled writes the count of a kill.
func cancelled(n *client.KillCount) string {
	switch {
	case n.Err != nil:
		return "unknown"
	case n.State == client.KillComplete:
		return fmt.Sprintf("%d orders", n.Cancelled)
	case n.State == client.KillCancelling:
		return "some still rest"
	case n.State == client.KillRefuses:
		return "none: a copy is of a release before"
	}
	return "-" // it is over
}

type limitsFlags struct {
	reachFlags
	output  string
	timeout time.Duration
}

func limitsCommand(k *kubeFlags) *cobra.Command {
	var f limitsFlags
	cmd := &cobra.Command{Use: "limits GRID", Short: "Print the limits in force and the active kills, partition by partition", Args: oneGrid,
		Long:    "Prints what the primaries have in force, by the committed log. Needs the permission Risk.\n\n" + reachHelp,
		Example: "  kubectl ordergrid limits trades -n trading\n  kubectl ordergrid limits dev --endpoint 127.0.0.1:7400 -o json",
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0]) }}
	f.register(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text, json")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 30*time.Second, "for everything")
	return cmd
}

func (f *limitsFlags) run(cmd *cobra.Command, k *kubeFlags, grid string) error {
	if f.output != "text" && f.output != "json" {
		return usageError{fmt.Errorf("--output: value %q, allowed: text, json", f.output)}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	cmd.SetContext(ctx)
	c, done, err := f.dial(cmd, k, grid)
	if err != nil {
		return err
	}
	defer done()
	all, err := c.Limits(ctx)
	if err != nil {
		return err
	}
	if f.output == "json" {
		e := json.NewEncoder(cmd.OutOrStdout())
		e.SetIndent("", "  ")
		return e.Encode(all)
	}
	return printLimits(cmd.OutOrStdout(), all)
}

func printLimits(out io.Writer, all []client.Limits) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PARTITION\tENTRY\tTIME\tWHAT\tWHO\tWHY")
	for i := range all {
		l := &all[i]
		if l.Entry == 0 {
			fmt.Fprintf(w, "%s\t-\t-\tno limits\t-\t-\n", l.Partition)
		} else {
			what, why := profileText(l.Profile)
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", l.Partition, l.Entry, l.Time.UTC().Format(time.RFC3339), what, l.Who, why)
		}
		for n := range l.Kills {
			a := &l.Kills[n]
			fmt.Fprintf(w, "%s\t%d\t%s\tkill %v %s\t%s\t%q\n", l.Partition, a.Entry, a.Time.UTC().Format(time.RFC3339), a.Scope, a.Name, a.Who, a.Why)
		}
	}
	return w.Flush()
}

// profileText writes a profile without its source, and which state of which RiskProfile it is.
func profileText(text string) (what, why string) {
	p, err := limits.ParseProfile([]byte(text))
	if err != nil || p.Source == nil {
		return text, "-" // of a file that a person keeps, or of another release
	}
	return string(p.Plain().Canonical()), fmt.Sprintf("RiskProfile %s, generation %d", p.Name, p.Source.Generation)
}
