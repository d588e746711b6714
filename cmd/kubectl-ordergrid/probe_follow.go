package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/probe/htmlreport"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
)

func probeFollowCommand(k *kubeFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "follow NAME",
		Short: "Show the progress of a probe until there is a result, and print it",
		Long: `Shows each change of state of the probe, then prints the table and ends with the verdict.

` + probeCodes,
		Example: `  kubectl ordergrid probe follow stac-pair-x7c2d -n trading`,
		Args:    probeKind.one,
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := k.connect()
			if err != nil {
				return err
			}
			return followProbe(cmd.Context(), cluster, args[0], cmd.OutOrStdout())
		},
	}
}

// followProbe writes a line for each change of state of the probe; its error is the verdict.
func followProbe(ctx context.Context, c *cluster, name string, out io.Writer) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	shown := ""
	for {
		p, err := lookAtProbe(ctx, c, name)
		switch {
		case ctx.Err() != nil:
		case apierrors.IsNotFound(err) || err != nil && !mayPass(err):
			return err
		case err != nil:
			shown = showOnce(out, shown, fmt.Sprintf("the API server does not answer (%v); the probe goes on, waiting", err))
		default:
			state, message := probeState(p)
			shown = showOnce(out, shown, state+": "+message)
			if probeOver(p) {
				return finishProbe(ctx, c, p, out)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			fmt.Fprintf(out, "interrupted; orderprobe/%s goes on; kubectl delete orderprobe %s%s ends it\n", name, name, inNamespace(c))
			return exitError(exitInterrupted)
		}
	}
}

func lookAtProbe(ctx context.Context, c *cluster, name string) (*api.OrderProbe, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	return probeKind.get(ctx, c, name)
}

func showOnce(out io.Writer, shown, text string) string {
	if text != shown {
		fmt.Fprintf(out, "%s  %s\n", time.Now().Format(time.TimeOnly), text)
	}
	return text
}

// finishProbe prints the result of a finished probe.
func finishProbe(ctx context.Context, c *cluster, p *api.OrderProbe, out io.Writer) error {
	if p.Status.ReportConfigMap != "" {
		table, err := c.probeFile(ctx, p, probeForms["table"])
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n%s\n", table)
	}
	if p.Status.Verdict != "" {
		fmt.Fprintf(out, "verdict %s: %s\n", p.Status.Verdict, p.Status.VerdictReason)
	}
	if code := probeVerdictCode(p); code != 0 {
		return exitError(code)
	}
	return nil
}

// probeForms are the files of a probe's report, by the value of --output.
var probeForms = map[string]string{"table": "table.txt", "csv": "results.csv", "json": "results.json"}

// probeFile reads one file of the report of a probe.
func (c *cluster) probeFile(ctx context.Context, p *api.OrderProbe, file string) (string, error) {
	if p.Status.ReportConfigMap == "" {
		state, message := probeState(p)
		return "", fmt.Errorf("probe %s has no report (%s: %s); kubectl ordergrid probe follow %s waits for it", p.Name, state, message, p.Name)
	}
	var m corev1.ConfigMap
	if err := c.core.Get().Namespace(c.namespace).Resource("configmaps").Name(p.Status.ReportConfigMap).Do(ctx).Into(&m); err != nil {
		return "", fmt.Errorf("report of probe %s: %w", p.Name, err)
	}
	text, ok := m.Data[file]
	if !ok {
		return "", fmt.Errorf("ConfigMap %s/%s has no key %s", c.namespace, m.Name, file)
	}
	return text, nil
}

func probeReportCommand(k *kubeFlags) *cobra.Command {
	var output, page string
	cmd := &cobra.Command{
		Use:   "report NAME",
		Short: "Print the report of a probe, or write it as a page of HTML",
		Long: `Prints the measurements of a probe beside the published ones. --html also writes a page: tables, histograms and plots in
one file that needs no network.

Exit codes: 0 printed, whatever the verdict, 2 wrong usage, 4 failed, or there is no report yet.`,
		Example: `  kubectl ordergrid probe report stac-pair-x7c2d -n trading
  kubectl ordergrid probe report stac-pair-x7c2d --html report.html`,
		Args: probeKind.one,
		RunE: func(cmd *cobra.Command, args []string) error {
			file, ok := probeForms[output]
			if !ok {
				return usageError{fmt.Errorf("--output: value %q, allowed: table, csv, json", output)}
			}
			cluster, err := k.connect()
			if err != nil {
				return err
			}
			p, err := probeKind.get(cmd.Context(), cluster, args[0])
			if err != nil {
				return err
			}
			text, err := cluster.probeFile(cmd.Context(), p, file)
			if err != nil {
				return err
			}
			if page != "" {
				if err := cluster.probePage(cmd.Context(), p, page); err != nil {
					return fmt.Errorf("--html: %w", err)
				}
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, csv, json")
	cmd.Flags().StringVar(&page, "html", "", "file to write the page to")
	completeFlag(cmd, "output", fixedNames("table", "csv", "json"))
	return cmd
}

// probePage writes the page of a probe's report, rendered from the measurements.
func (c *cluster) probePage(ctx context.Context, p *api.OrderProbe, path string) error {
	if p.Spec.Scenario.OwnGrids() { // it has its page
		text, err := c.probeFile(ctx, p, report.FilePage)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // results are public
	}
	saved, err := c.probeFile(ctx, p, probeForms["json"])
	if err != nil {
		return err
	}
	result, err := report.ParseSaved([]byte(saved))
	if err != nil {
		return fmt.Errorf("%w; a report that would not fit into a ConfigMap is kept without its histograms", err)
	}
	data, err := published.Load()
	if err != nil {
		return err
	}
	rep, err := report.New(data, result)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(htmlreport.Write(file, []*report.Report{rep}, nil), file.Close())
}
