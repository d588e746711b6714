package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/client"
)

type promoteFlags struct {
	siteFlags
	token              string
	force              bool
	term               int64
	takeBack, withdraw bool
}

const maxTerm = 1<<31 - 1

// termUnit is what the term of a forced promotion counts since 1970: the other site's term may be unknown here, and two
// promotions of a pair are further apart than this.
const termUnit = 10 * time.Second

func promoteCommand(k *kubeFlags) *cobra.Command {
	var f promoteFlags
	cmd := &cobra.Command{
		Use:   "promote GRID",
		Short: "Make a standby the site that takes the orders",
		Long: `Makes the partitions of a standby active, in a later term of the site.

  --token FILE  clean: the token is what "demote" of the other site wrote. Each partition waits until
                its log ends with exactly that entry, so keep the link running. Nothing is lost.
  --force       the other site is out of reach. What this one lacks is lost, and the lineage rises.
                Then run the link from here to the other site at once: the later term stops it when
                it is back, and what it holds alone is in "kubectl ordergrid orphans".

The term is chosen: with a token one above those of both sites; by force the number of 10 s since
1970, which is above every earlier one, of the other site too, unless a clock was wrong. --term
names another, which must be above the other site's: a site of the same term is not stopped.

It may be run again after an interruption: what is promoted stays, and a partition that waits goes
on waiting with the same term. --withdraw takes back what is not carried out yet.

` + siteHelp + `

` + reachHelp + `

Exit codes: 0 promoted, or --withdraw is done; 1 refused, not done, or not in time; 2 wrong usage; 4 failed.`,
		Example: `  kubectl ordergrid promote trades -n trading --context site-b --token trades.token
  kubectl ordergrid promote trades -n trading --context site-b --force`,
		Args: oneGrid,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0]) },
	}
	fl := cmd.Flags()
	f.register(fl)
	f.registerWait(fl)
	fl.StringVar(&f.token, "token", "", "file with the token of the other site; - for standard input")
	fl.BoolVar(&f.force, "force", false, "without a token: what this site lacks is lost")
	fl.Int64Var(&f.term, "term", 0, "term of the site from then on; default see above")
	fl.BoolVar(&f.takeBack, "take-back", false, "the token is this grid's own: it was demoted, and the other site was not promoted")
	fl.BoolVar(&f.withdraw, "withdraw", false, "take back a promotion that is not carried out yet")
	return cmd
}

func (f *promoteFlags) checkPromotion() error {
	given := 0
	for _, b := range []bool{f.token != "", f.force, f.withdraw} {
		if b {
			given++
		}
	}
	switch {
	case given != 1:
		return usageError{fmt.Errorf("%d of --token, --force and --withdraw are given, allowed: one; a token is what kubectl ordergrid demote of the other site writes", given)}
	case f.takeBack && f.token == "":
		return usageError{fmt.Errorf("--take-back is about a token, and --token is not given")}
	case f.term < 0 || f.term > maxTerm:
		return usageError{fmt.Errorf("--term: value %d, allowed: 1..%d, above the terms of both sites", f.term, maxTerm)}
	}
	return f.check()
}

func (f *promoteFlags) run(cmd *cobra.Command, k *kubeFlags, grid string) error {
	if err := f.checkPromotion(); err != nil {
		return err
	}
	var token *siteToken
	var err error
	if f.token != "" {
		if token, err = readToken(f.token, cmd.InOrStdin()); err != nil {
			return err
		}
	}
	in, err := f.records(k, grid)
	if err != nil {
		return err
	}
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	parts, err := f.choose(ctx, in, grid)
	if err != nil {
		return err
	}
	if f.withdraw {
		return withdraw(out, parts, true, func(name string) error { return in.promote(ctx, name, nil) })
	}
	plan, err := f.plan(ctx, in, parts, token)
	if err != nil {
		fmt.Fprintln(out, "refused, nothing was changed:", err)
		return exitError(exitNotDone)
	}
	if err := f.compare(cmd, k, grid, plan); err != nil {
		fmt.Fprintln(out, "refused, nothing was changed:", err)
		return exitError(exitNotDone)
	}
	return f.carryOut(ctx, in, grid, plan, out)
}

// promotion is what is decided about a partition.
type promotion struct {
	record *siteRecord
	want   api.SitePromotion
	done   bool // in an earlier run
}

// plan decides about each partition, or returns why not.
func (f *promoteFlags) plan(ctx context.Context, in siteRecords, parts []siteRecord, token *siteToken) ([]promotion, error) {
	if token != nil {
		uid, err := in.identity(ctx)
		if err != nil {
			return nil, err
		}
		switch own := uid == token.UID; {
		case own && !f.takeBack:
			return nil, fmt.Errorf("the token is this grid's own, of %s: it was demoted so that the other site can be promoted. Promote that one (another --context?); if it was not, and must not be any more, take this one back with --take-back", token.Made.Format(time.RFC3339))
		case !own && f.takeBack:
			return nil, fmt.Errorf("--take-back is given, and the token is another grid's, %s; leave --take-back out", token.Grid)
		}
		if len(f.partitions) == 0 && len(token.Partitions) != len(parts) {
			return nil, fmt.Errorf("the token is of %d partitions, the grid has %d; it is another grid's, or of some partitions: name them with --partition", len(token.Partitions), len(parts))
		}
	}
	known := int64(0)
	for i := range parts {
		known = max(known, parts[i].term)
	}
	if token != nil {
		for _, e := range token.Partitions {
			known = max(known, e.Term)
		}
	}
	term := f.choosesTerm(known, time.Now())
	plan := make([]promotion, 0, len(parts))
	for i := range parts {
		p, err := f.planOne(&parts[i], token, term)
		if err != nil {
			return nil, err
		}
		plan = append(plan, p)
	}
	return plan, nil
}

// choosesTerm returns the term of new promotions; known is the highest that is known.
func (f *promoteFlags) choosesTerm(known int64, now time.Time) int64 {
	switch {
	case f.term == 0 && f.force:
		return max(known+1, now.Unix()/int64(termUnit/time.Second))
	case f.term == 0:
		return known + 1
	}
	return f.term
}

// planOne decides about a partition. A decision of an earlier run is kept, with its term.
func (f *promoteFlags) planOne(r *siteRecord, token *siteToken, term int64) (promotion, error) {
	p := promotion{record: r, want: api.SitePromotion{Term: term, Mode: api.PromoteForced}}
	if token != nil {
		e := token.of(r.partition)
		if e == nil {
			return p, fmt.Errorf("the token has no %s", r.partition)
		}
		p.want = api.SitePromotion{Term: term, Mode: api.PromoteClean, Seq: int64(e.Seq), Hash: e.Hash}
	}
	same := r.promote != nil && r.promote.Mode == p.want.Mode && r.promote.Seq == p.want.Seq && r.promote.Hash == p.want.Hash && (f.term == 0 || r.promote.Term == f.term)
	switch {
	case !r.claimed:
		return p, fmt.Errorf("%s: no grid node has claimed it yet; see kubectl ordergrid status", r.name)
	case !r.standby && same && r.promote.Term == r.term:
		p.want, p.done = *r.promote, true
	case !r.standby:
		return p, fmt.Errorf("%s is active, in term %d: a standby is promoted. Is this the right grid (--context, -n)? kubectl ordergrid sites shows what each partition is; --partition names some", r.name, r.term)
	case same && r.promote.Term > r.term:
		p.want = *r.promote
	case term <= r.term:
		return p, fmt.Errorf("--term %d: %s knows term %d, allowed: %d or more, above the other site's term, too", term, r.name, r.term, r.term+1)
	}
	return p, nil
}

// compare looks at the logs before anything is decided. A partition whose log has another history than the token would
// never be promoted. Nodes that cannot be asked are no reason to refuse: the partition itself compares.
func (f *promoteFlags) compare(cmd *cobra.Command, k *kubeFlags, grid string, plan []promotion) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), 30*time.Second)
	defer cancel()
	cfg, done, err := f.config(ctx, k, grid)
	var c *client.Client
	if err == nil {
		defer done()
		cfg.DialTimeout = 10 * time.Second
		c, err = client.Dial(ctx, cfg)
	}
	if err != nil {
		fmt.Fprintf(cmd.OutOrStdout(), "the nodes were not asked where their logs end: %v\n", err)
		return nil
	}
	defer c.Close() //nolint:errcheck // it never fails
	for i := range plan {
		p := &plan[i]
		if p.done {
			continue
		}
		end, err := endOf(ctx, c, p.record.partition)
		if err != nil {
			fmt.Fprintf(cmd.OutOrStdout(), "%s: its primary was not asked where its log ends: %v\n", p.record.name, err)
			continue
		}
		if err := p.compare(cmd.OutOrStdout(), &end); err != nil {
			return err
		}
	}
	return nil
}

// compare prints what a partition has and lacks, and refuses another history.
func (p *promotion) compare(out io.Writer, end *client.LogEnd) error {
	name, last, hash := p.record.name, end.LastSeq, hashText(end.LastSeq, end.LastHash)
	want := uint64(p.want.Seq)
	switch {
	case p.want.Mode == api.PromoteForced:
		fmt.Fprintf(out, "%s: goes on behind entry %d, hash %s; what the other site has behind it is lost here\n", name, last, orDash(hash))
	case last > want:
		return fmt.Errorf("%s: its log ends with entry %d, the token names entry %d: it holds entries that the demoted site lacks, another history. Name the token of its source, made at its last demotion, or see docs/multi-site.md about --force", name, last, want)
	case last == want && hash != p.want.Hash:
		return fmt.Errorf("%s: entry %d has hash %s, the token names %s: another history. Name the token of its source", name, last, hash, p.want.Hash)
	case last < want:
		fmt.Fprintf(out, "%s: %d entries are to come over the link, up to entry %d\n", name, want-last, want)
	default:
		fmt.Fprintf(out, "%s: holds everything, up to entry %d\n", name, last)
	}
	return nil
}

// carryOut writes the decisions, and waits.
func (f *promoteFlags) carryOut(ctx context.Context, in siteRecords, grid string, plan []promotion, out io.Writer) error {
	var names []string
	terms := map[string]int64{}
	for i := range plan {
		p := &plan[i]
		if p.done {
			fmt.Fprintf(out, "%s: promoted already, term %d\n", p.record.name, p.want.Term)
			continue
		}
		if err := in.promote(ctx, p.record.name, &p.want); err != nil {
			return fmt.Errorf("%s: %w; run the command again", p.record.name, err)
		}
		names = append(names, p.record.name)
		terms[p.record.name] = p.want.Term
	}
	if len(names) == 0 || !f.wait {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	left, err := f.await(waiting, in, names, out, func(r *siteRecord) bool { return !r.standby && r.term >= terms[r.name] })
	if len(left) == 0 {
		if f.force {
			fmt.Fprintf(out, "now run the link from %s to the other site: it stops that one when it is back; then kubectl ordergrid orphans reports what it holds alone\n", grid)
		}
		return nil
	}
	hint := "keep the link from the demoted site running: each waits for the last entry of the token"
	if f.force {
		hint = "each needs a primary; if the other site's term is the same or higher, its primary knows that and waits: name a higher --term"
	}
	fmt.Fprintf(out, "%s: not promoted after %v%s; %s. The decision stays: run the command again, or with --withdraw. kubectl ordergrid sites %s shows where the logs end\n",
		strings.Join(left, ", "), f.timeout, because(err), hint, grid)
	return exitError(exitNotDone)
}
