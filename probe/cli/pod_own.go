package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/probe/htmlreport"
	"github.com/ordergrid/ordergrid/probe/pod"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
	"github.com/ordergrid/ordergrid/probe/system"
)

// suiteScenario is the name of the suite as a scenario of an OrderProbe.
const suiteScenario = "suite"

// own reports whether the pod starts the grids that it measures.
func (f *podFlags) own() bool {
	return f.scenario == suiteScenario || f.scenario == published.TimeplotScenario || slices.Contains(published.SystemScenarios(), f.scenario)
}

// runOwn runs a scenario about a system of processes, or the suite, in this pod. It waits for the start as others do.
func (f *podFlags) runOwn(cmd *cobra.Command, d *published.Data) error {
	mode, err := f.plan.mode()
	switch {
	case err != nil:
		return usage(err)
	case f.index != 0:
		return usage(fmt.Errorf("--index %d: %s has one pod, 0", f.index, f.scenario))
	case len(f.grid.endpoint) > 0:
		return usage(fmt.Errorf("--endpoint: %s starts the grids that it measures; leave it out", f.scenario))
	case f.budget < 0 || f.budget > 0 && f.scenario != suiteScenario:
		return usage(fmt.Errorf("--budget %v: it goes with %s, and is more than 0", f.budget, suiteScenario))
	}
	channel, err := pod.New(pod.Config{Probe: f.probe, ProbeUID: f.uid, Index: f.index, Namespace: f.ns, Server: f.server, AccountDir: f.account})
	if err != nil {
		return usage(err)
	}
	_, stop, err := serveMetrics(f.http, cmd.ErrOrStderr())
	if err != nil {
		return usage(err)
	}
	defer stop()
	own, incorrect, err := f.begin(cmd, d, channel, mode)
	if err == nil {
		err = handOver(cmd, channel, own)
	}
	if err != nil {
		// Report to the operator even if this pod is being stopped.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), 20*time.Second)
		defer cancel()
		return errors.Join(err, channel.Failed(ctx, err))
	}
	if incorrect {
		return &codeError{code: ExitIncorrect}
	}
	return nil
}

func handOver(cmd *cobra.Command, channel *pod.Channel, own *report.Own) error {
	b, left, err := own.Fit(pod.MaxResult)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "a ConfigMap has no room for %s\n", strings.Join(left, ", "))
	}
	return channel.Result(cmd.Context(), b)
}

// begin waits for the start and runs.
func (f *podFlags) begin(cmd *cobra.Command, d *published.Data, channel *pod.Channel, mode scenario.Mode) (own *report.Own, incorrect bool, err error) {
	ctx := cmd.Context()
	dir, err := os.MkdirTemp("", "order-probe-pod-")
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the results are handed over
	if err := channel.Ready(ctx); err != nil {
		return nil, false, err
	}
	waiting, cancel := context.WithTimeout(ctx, f.startWait)
	defer cancel()
	if _, err := channel.StartAt(waiting); err != nil {
		return nil, false, err
	}
	switch f.scenario {
	case suiteScenario:
		return f.ownSuite(cmd, d, dir, mode)
	case published.TimeplotScenario:
		return ownPlan(cmd, d, f.scenario, dir, mode)
	}
	return ownSystem(cmd, d, f.scenario, dir, mode)
}

func ownSystem(cmd *cobra.Command, d *published.Data, name, dir string, mode scenario.Mode) (*report.Own, bool, error) {
	var run runFlags
	rep, err := system.Run(cmd.Context(), d, name, run.systemOptions(cmd, mode, dir))
	if err == nil {
		err = saveSystem(dir, rep)
	}
	if err != nil {
		return nil, false, err
	}
	own, err := ownFiles(rep.Outcome(), dir)
	return own, rep.Verdict == system.Wrong, err
}

// ownPlan runs a scenario whose grids are of several shapes, one after the other.
func ownPlan(cmd *cobra.Command, d *published.Data, name, dir string, mode scenario.Mode) (*report.Own, bool, error) {
	f := runFlags{scenarios: []string{name}, out: dir, quiet: quietWait}
	f.onOwn()
	plan, err := scenario.New(d, name, scenario.Options{Mode: mode})
	if err != nil {
		return nil, false, usage(err)
	}
	rep, err := f.one(cmd, d, plan)
	if err != nil {
		return nil, false, err
	}
	own, err := ownFiles(rep.Outcome(d), dir)
	return own, rep.Verdict == report.ReportIncorrect, err
}

// ownFiles are the files of a scenario.
func ownFiles(outcome *report.Outcome, dir string) (*report.Own, error) {
	own := &report.Own{Schema: report.OwnSchema, Outcome: outcome, Files: map[string]string{}}
	for _, name := range []string{report.FileTable, report.FileResults, report.FileCSV, report.FilePage} {
		if err := addFile(own, name, filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return own, nil
}

// ownSuite runs the command suite, and keeps its page without the links to pages that nothing keeps.
func (f *podFlags) ownSuite(cmd *cobra.Command, d *published.Data, dir string, mode scenario.Mode) (*report.Own, bool, error) {
	c := suiteCommand()
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetOut(cmd.OutOrStdout())
	c.SetErr(cmd.ErrOrStderr())
	args := []string{"--out", dir, "--" + string(mode), "--no-color"}
	if f.budget > 0 {
		args = append(args, "--budget", f.budget.String())
	}
	c.SetArgs(args)
	ended := c.ExecuteContext(cmd.Context()) // that a scenario is not valid, or could not be run, is in its rows
	if err := cmd.Context().Err(); err != nil {
		return nil, false, fmt.Errorf("the suite was interrupted: %w", err)
	}
	own := &report.Own{Schema: report.OwnSchema, Files: map[string]string{}}
	for name, file := range map[string]string{report.FileTable: "suite.txt", report.FileResults: "suite.json", report.FileCSV: "suite.csv", "suite.md": "suite.md"} {
		if err := addFile(own, name, filepath.Join(dir, file)); err != nil {
			return nil, false, errors.Join(err, ended)
		}
	}
	s, err := report.ParseSuite([]byte(own.Files[report.FileResults]))
	if err != nil {
		return nil, false, err
	}
	var page bytes.Buffer
	if err := htmlreport.WriteSuite(&page, s, false); err != nil {
		return nil, false, err
	}
	own.Files[report.FilePage] = page.String()
	for _, r := range s.Runs {
		if err := addFile(own, r.Scenario+".txt", filepath.Join(dir, r.Scenario, report.FileTable)); err != nil {
			return nil, false, err
		}
	}
	return own, codeOf(ended) == ExitIncorrect, nil
}

func addFile(own *report.Own, name, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was read only
	b, err := io.ReadAll(io.LimitReader(file, pod.MaxResult+1))
	own.Files[name] = string(b)
	return err
}
