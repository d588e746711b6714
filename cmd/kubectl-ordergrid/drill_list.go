package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
)

func drillListCommand(k *kubeFlags) *cobra.Command {
	return drillKind.listCommand(k, `  kubectl ordergrid drill list -A
  kubectl ordergrid drill list -o json | jq -r '.items[].status.certificate.verdict'`, writeDrills)
}

// suiteText names the suite of a drill.
func suiteText(d *api.FailoverDrill) string {
	if d.Spec.Suite != "" {
		return string(d.Spec.Suite)
	}
	return fmt.Sprintf("%d own", len(d.Spec.Faults))
}

// stateText is the phase of a drill, in one word.
func stateText(d *api.FailoverDrill) string {
	if c := condition(d, api.ConditionRunning); c != nil {
		return c.Reason
	}
	return "new"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func writeDrills(w io.Writer, drills []api.FailoverDrill, v view) error {
	t := &table{colors: v.colors}
	head := []any{"NAMESPACE", "NAME", "GRID", "SUITE", "STATE", "STEPS", "VERDICT", "LOST", "OUTAGE", "AGE"}
	if v.wide {
		head = append(head, "SEED", "REASON")
	}
	t.row(head...)
	for i := range drills {
		d := &drills[i]
		verdict, lost, outage, reason := cell{text: "-"}, "-", "-", "-"
		if c := d.Status.Certificate; c != nil {
			verdict, lost, reason = verdictCell(string(c.Verdict), verdictCode(string(c.Verdict))), fmt.Sprint(c.Lost), orDash(c.Reason)
			if c.OutageMax != nil {
				outage = rounded(c.OutageMax.Duration).String()
			}
		}
		line := []any{d.Namespace, d.Name, d.Spec.GridRef.Name, suiteText(d), stateText(d), orDash(d.Status.Progress), verdict, lost, outage,
			duration.HumanDuration(v.now.Sub(d.CreationTimestamp.Time))}
		if v.wide {
			line = append(line, d.Status.Seed, reason)
		}
		t.row(line...)
	}
	return t.write(w)
}

// verdictCell colours a verdict by its exit code.
func verdictCell(verdict string, code int) cell {
	return cell{verdict, map[int]string{0: green, exitBroken: red, exitNothing: yellow}[code]}
}

func drillStatusCommand(k *kubeFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "status NAME",
		Short:   "Show the state of a drill, its steps, and whether a fault is in place",
		Example: `  kubectl ordergrid drill status pull-the-plug-x7c2d -n trading`,
		Args:    drillKind.one,
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := k.connect()
			if err != nil {
				return err
			}
			d, err := drillKind.get(cmd.Context(), cluster, args[0])
			if err != nil {
				return err
			}
			return writeDrill(cmd.OutOrStdout(), d, time.Now())
		},
	}
}

func writeDrill(w io.Writer, d *api.FailoverDrill, now time.Time) error {
	s := &d.Status
	fmt.Fprintf(w, "%s: %s on grid %s, seed %d, %s of %d steps finished\n\n", d.Name, suiteText(d), d.Spec.GridRef.Name, s.Seed, fmt.Sprint(s.FinishedSteps), s.PlannedSteps)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "CONDITION\tSTATUS\tSINCE\tREASON\tMESSAGE\n")
	for _, c := range s.Conditions {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", c.Type, c.Status, duration.HumanDuration(now.Sub(c.LastTransitionTime.Time)), c.Reason, c.Message)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, k := range s.Skipped {
		fmt.Fprintf(w, "\nskipped: %s (%s): %s\n", k.Fault, k.Type, k.Message)
	}
	if len(s.Steps) > 0 {
		fmt.Fprintf(t, "\nSTEP\tFAULT\tTYPE\tTARGETS\tPROVIDER\tSTATE\tWITNESS\tOUTCOME\tOUTAGE\tREDUNDANT AFTER\tP99 BEFORE/DURING/AFTER\n")
	}
	for i := range s.Steps {
		writeStep(t, &s.Steps[i])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if s.Certificate != nil {
		_, err := fmt.Fprintf(w, "\n%s\n", certificateLine(s.Certificate))
		return err
	}
	return nil
}

func writeStep(t io.Writer, s *api.DrillStep) {
	witness, outage, redundant, p99 := "-", "-", "-", "-"
	if s.Witness != nil {
		witness = string(s.Witness.State)
	}
	if s.Outage != nil {
		outage = rounded(s.Outage.Duration).String()
	}
	if s.RedundantAfter != nil {
		redundant = rounded(s.RedundantAfter.Duration).String()
	}
	if s.P99Before != nil && s.P99During != nil && s.P99After != nil {
		p99 = fmt.Sprintf("%s/%s/%s", rounded(s.P99Before.Duration), rounded(s.P99During.Duration), rounded(s.P99After.Duration))
	}
	target := "-"
	if len(s.Targets)+len(s.Nodes) > 0 {
		target = targetText(s)
	}
	fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Index+1, s.Fault, s.Type, target, orDash(s.Provider), s.State, witness, orDash(string(s.Outcome)), outage, redundant, p99)
}

func drillSuitesCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "suites [NAME]",
		Short: "List the suites, or the faults of one",
		Long: `Lists the suites that come with OrderGrid, and with a name the faults of one. -o yaml prints them in the form of
spec.faults of a FailoverDrill, to be changed and used as faults of your own. No cluster is asked.`,
		Example: `  kubectl ordergrid drill suites
  kubectl ordergrid drill suites network -o yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{fmt.Errorf("%d arguments, allowed: the name of one suite, or none", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "yaml" {
				return usageError{fmt.Errorf("--output: value %q, allowed: text, yaml", output)}
			}
			if len(args) == 0 {
				return writeSuites(cmd.OutOrStdout())
			}
			s, err := plan.SuiteByName(api.DrillSuite(args[0]))
			if err != nil {
				return usageError{err}
			}
			if output == "yaml" {
				text, err := yaml.Marshal(map[string]any{"faults": s.Faults})
				if err == nil {
					_, err = cmd.OutOrStdout().Write(text)
				}
				return err
			}
			return writeSuite(cmd.OutOrStdout(), &s)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, yaml")
	return cmd
}

func writeSuites(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "SUITE\tFAULTS\tREPETITIONS\tORDERS/S A PROBE\tSHOWS\n")
	for _, s := range plan.Suites() {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\n", s.Name, len(s.Faults), s.Repetitions, s.RatePerProbe, s.Shows)
	}
	return t.Flush()
}

func writeSuite(w io.Writer, s *plan.Suite) error {
	fmt.Fprintf(w, "%s\nshows: %s\nneeds: %s\n%d repetitions, order %s, %d orders/s of each probe\n\n", s.Name, s.Shows, s.Needs, s.Repetitions, s.Order, s.RatePerProbe)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "FAULT\tTYPE\tTARGET\tLASTS\tSTARTS\tEXPECTED\n")
	resolved, err := plan.ResolveSuite(&api.FailoverDrillSpec{Suite: s.Name})
	if err != nil {
		return err
	}
	for _, f := range resolved.Faults {
		target, lasts := "the grid", "a moment"
		if f.Target != nil {
			target = string(f.Target.Role)
			if f.Target.Peer != "" {
				target += " and " + string(f.Target.Peer)
			}
		}
		if f.Duration != nil {
			lasts = f.Duration.Duration.String()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, f.Type, target, lasts, f.Start, expectText(f.Expect))
	}
	return t.Flush()
}

func expectText(e *api.DrillExpectation) string {
	if e == nil {
		return "what steadyState says"
	}
	var parts []string
	if e.Injection == api.InjectionRefused {
		parts = append(parts, "is refused")
	}
	if e.Outage != nil {
		parts = append(parts, "outage at most "+e.Outage.Duration.String())
	}
	if e.P99 != nil {
		parts = append(parts, "p99 at most "+e.P99.Duration.String())
	}
	if e.FailedOrders == api.FailedOrdersNone {
		parts = append(parts, "no failed order")
	}
	switch e.Grid {
	case api.GridNotRedundant:
		parts = append(parts, "the grid warns")
	case api.GridRefusesOrders:
		parts = append(parts, "the grid refuses orders")
	}
	return strings.Join(parts, ", ")
}
