package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

type demoteFlags struct {
	siteFlags
	token    string
	withdraw bool
}

func demoteCommand(k *kubeFlags) *cobra.Command {
	var f demoteFlags
	cmd := &cobra.Command{
		Use:   "demote GRID",
		Short: "Stop a site so that the other one can be promoted without a loss",
		Long: `Makes the partitions of an active grid standbys: each refuses new orders, commits what it has
accepted, and stops. From then until the other site is promoted no order is taken anywhere. What is
printed at the end is the token: where each log ends. "promote" of the other site takes it, waits
until its own logs end there, and nothing is lost.

It may be run again after an interruption: what is demoted stays, and the token is the same. A
standby that was never demoted has no token: its log may lack entries of the other site.

To go back, as long as the other site was not promoted: promote this grid with its own token and
--take-back. --withdraw takes back what is not carried out yet.

` + siteHelp + ` The ends of the logs are read from the nodes.

` + reachHelp + `

Exit codes: 0 demoted and the token is complete, or --withdraw is done; 1 not done, or not in time;
2 wrong usage; 4 failed.`,
		Example: `  kubectl ordergrid demote trades -n trading --context site-a --token trades.token
  kubectl ordergrid promote trades -n trading --context site-b --token trades.token`,
		Args: oneGrid,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0]) },
	}
	fl := cmd.Flags()
	f.register(fl)
	f.registerWait(fl)
	fl.StringVar(&f.token, "token", "", "file that the token is written to, replaced if it is there; default standard output")
	fl.BoolVar(&f.withdraw, "withdraw", false, "take back a demotion that is not carried out yet")
	return cmd
}

func (f *demoteFlags) run(cmd *cobra.Command, k *kubeFlags, grid string) error {
	if err := f.check(); err != nil {
		return err
	}
	in, err := f.records(k, grid)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	parts, err := f.choose(ctx, in, grid)
	if err != nil {
		return err
	}
	if f.withdraw {
		return withdraw(cmd.OutOrStdout(), parts, false, func(name string) error { return in.demote(ctx, name, nil) })
	}
	notes := cmd.ErrOrStderr()
	if err := refuseDemotion(parts); err != nil {
		fmt.Fprintln(notes, err)
		return exitError(exitNotDone)
	}
	var names []string
	for i := range parts {
		r := &parts[i]
		if names = append(names, r.name); r.standby || r.waiting() != "" {
			continue
		}
		if err := in.demote(ctx, r.name, &api.SiteDemotion{Term: r.term}); err != nil {
			return err
		}
	}
	fmt.Fprintf(notes, "%s stops taking orders; the other site has to be promoted before any is taken again\n", grid)
	if !f.wait {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	if left, err := f.await(waiting, in, names, notes, func(r *siteRecord) bool { return r.standby }); len(left) > 0 {
		fmt.Fprintf(notes, "%s: still active after %v%s. The decision stays: run the command again, or with --withdraw. See kubectl ordergrid partitions %s: "+
			"a partition needs a primary, and as many copies in sync as it has to have, to commit what it accepted\n", strings.Join(left, ", "), f.timeout, because(err), grid)
		return exitError(exitNotDone)
	}
	t, err := f.ends(cmd, k, in, grid)
	if err != nil {
		return err
	}
	return f.print(cmd.OutOrStdout(), notes, t)
}

// because appends an error to a sentence.
func because(err error) string {
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		return ""
	}
	return ": " + err.Error()
}

// refuseDemotion names what stands in the way.
func refuseDemotion(parts []siteRecord) error {
	for i := range parts {
		switch r := &parts[i]; {
		case !r.claimed:
			return fmt.Errorf("%s: no grid node has claimed it yet, so there is nothing to demote; delete the grid if the other site is to serve", r.name)
		case r.standby && (r.demote == nil || r.demote.Term != r.term):
			return fmt.Errorf("%s: it is a standby in term %d and was not demoted in it, so the end of its log is no token: it may lack entries of the other site. Demote the site that is active, or, if that is lost, promote this one with --force",
				r.name, r.term)
		}
	}
	return nil
}

// ends reads where the logs of the demoted partitions end.
func (f *demoteFlags) ends(cmd *cobra.Command, k *kubeFlags, in siteRecords, grid string) (*siteToken, error) {
	ctx := cmd.Context()
	uid, err := in.identity(ctx)
	if err != nil {
		return nil, err
	}
	parts, err := f.choose(ctx, in, grid)
	if err != nil {
		return nil, err
	}
	c, done, err := f.dial(cmd, k, grid)
	if err != nil {
		return nil, fmt.Errorf("the grid is demoted, and its token could not be read: run the command again: %w", err)
	}
	defer done()
	t := &siteToken{Kind: tokenKind, Grid: grid, UID: uid, Made: time.Now().UTC().Truncate(time.Second)}
	for i := range parts {
		r := &parts[i]
		end, err := endOf(ctx, c, r.partition)
		if err != nil {
			return nil, fmt.Errorf("the grid is demoted, and its token could not be read: run the command again: %w", err)
		}
		if end.CommitSeq != end.LastSeq {
			return nil, fmt.Errorf("%s: entry %d is committed and the log ends with entry %d: a demoted partition has committed everything. Run the command again; if that does not help, %s", r.name, end.CommitSeq, end.LastSeq, "see kubectl ordergrid partitions")
		}
		e := tokenEnd{Partition: r.partition.String(), Term: r.term, Seq: end.LastSeq, Hash: hashText(end.LastSeq, end.LastHash)}
		switch {
		case r.ended == nil || r.ended.Term != r.term:
			if err := in.keep(ctx, r.name, e); err != nil {
				return nil, err
			}
		case *r.ended != e:
			return nil, fmt.Errorf("%s: when it was demoted its log ended with entry %d, and now with entry %d: the other site was promoted since, and its link brings entries here. There is nothing to demote", r.name, r.ended.Seq, e.Seq)
		}
		t.Partitions = append(t.Partitions, e)
	}
	return t, nil
}

// print writes the token to its file, whole or not at all, or to out.
func (f *demoteFlags) print(out, notes io.Writer, t *siteToken) error {
	text, err := json.MarshalIndent(t, "", "    ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if f.token == "" {
		_, err = out.Write(text)
		return err
	}
	if err := replaceFile(f.token, text); err != nil {
		return fmt.Errorf("--token: %w; the grid is demoted: run the command again with another file", err)
	}
	fmt.Fprintf(notes, "the token of %d partitions is in %s: kubectl ordergrid promote GRID --token %s, at the other site\n", len(t.Partitions), f.token, f.token)
	return nil
}

// replaceFile writes a file whole or not at all.
func replaceFile(name string, text []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		if gone := os.Remove(tmp.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// withdraw takes back the decisions about partitions of one role that are not carried out.
func withdraw(out io.Writer, parts []siteRecord, standby bool, undo func(name string) error) error {
	n := 0
	for i := range parts {
		r := &parts[i]
		if r.standby != standby || r.waiting() == "" {
			continue
		}
		if err := undo(r.name); err != nil {
			return err
		}
		n++
		fmt.Fprintf(out, "%s: withdrawn: %s. It stays %s in term %d, unless it happened at this moment\n", r.name, r.waiting(), r.role(), r.term)
	}
	if n == 0 {
		fmt.Fprintln(out, "nothing is decided that is not carried out; nothing was changed")
	}
	return nil
}
