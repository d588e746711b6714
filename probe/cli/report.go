package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
)

func reportCommand() *cobra.Command {
	var f printFlags
	var export exportFlags
	cmd := &cobra.Command{
		Use:   "report DIR...",
		Short: "Print the reports of earlier runs again, from their results.json or result.json",
		Long: `Print the reports of earlier runs again, regenerated from the measurements. Results of
several probes of one run (result.json of its pods) are merged.`,
		Example: `  order-probe report results                                   the tables
  order-probe report --html report.html results                one HTML file with tables and plots
  order-probe report --svg plots --png plots results           each plot as a file`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if err := f.check(); err != nil {
				return usage(err)
			}
			return printReports(cmd, &f, &export, dirs)
		},
	}
	f.register(cmd.Flags())
	export.register(cmd.Flags())
	return cmd
}

func printReports(cmd *cobra.Command, f *printFlags, export *exportFlags, dirs []string) error {
	d, err := published.Load()
	if err != nil {
		return err
	}
	var results []*report.Result
	for _, dir := range dirs {
		r, err := readResult(dir)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	var end error
	var all []*report.Report
	reports := map[string]*report.Report{}
	for _, r := range joinRuns(results) {
		rep, err := report.New(d, r)
		if err != nil {
			return err
		}
		if err := f.print(cmd.OutOrStdout(), rep); err != nil {
			return err
		}
		reports[rep.Scenario] = rep
		all = append(all, rep)
		end = worse(end, outcome(rep))
	}
	cost := costOf(reports)
	if err := f.cost(cmd.OutOrStdout(), cost); err != nil {
		return err
	}
	if err := export.write(all, cost); err != nil {
		return err
	}
	return end
}

// readResult takes a directory or a file.
func readResult(path string) (*report.Result, error) {
	candidates := []string{filepath.Join(path, "results.json"), filepath.Join(path, "result.json"), path}
	for _, name := range candidates {
		if info, err := os.Stat(name); err != nil || info.IsDir() {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		r, err := report.ParseSaved(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return r, nil
	}
	return nil, fmt.Errorf("%s: no results.json or result.json: %w", path, fs.ErrNotExist)
}

// joinRuns merges results of the probes of one run.
func joinRuns(results []*report.Result) (joined []*report.Result) {
	for _, r := range results {
		merged := false
		for i, other := range joined {
			if m, err := report.Merge(other, r); err == nil && other.RunID == r.RunID {
				joined[i], merged = m, true
				break
			}
		}
		if !merged {
			joined = append(joined, r)
		}
	}
	return joined
}
