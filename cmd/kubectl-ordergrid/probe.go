package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/probe/published"
)

// probeCodes is for the help of commands that end with a verdict.
const probeCodes = `Exit codes: 0 Valid, 1 Incorrect (orders were lost, duplicated, or there was a gap), 2 wrong usage, 3 Invalid or failed: the
figures say nothing, 4 the command itself failed, 130 interrupted; the probe goes on.`

// scenarioNames are those accepted by the API server.
var scenarioNames = func() (names []string) {
	for _, s := range api.GridScenarios() {
		names = append(names, string(s))
	}
	return append(append(append(names, published.TimeplotScenario), published.SystemScenarios()...), string(api.ScenarioSuite))
}()

func probeCommand(k *kubeFlags) *cobra.Command {
	return probeKind.group("Measure a grid and compare it with published figures",
		`Runs OrderProbes: benchmarks by pods in the cluster, of one grid or of grids that they start, with the published table beside the measured one.
What is measured and how: docs/probe.md.`,
		probeRunCommand(k), probeFollowCommand(k), probeReportCommand(k), probeListCommand(k))
}

// probeState is the phase of a probe in one word, and the reason. The three conditions carry the same reason and
// message.
func probeState(p *api.OrderProbe) (reason, message string) {
	for _, kind := range []string{api.ConditionFailed, api.ConditionComplete, api.ConditionRunning} {
		if c := meta.FindStatusCondition(p.Status.Conditions, kind); c != nil {
			return c.Reason, c.Message
		}
	}
	return "new", "the operator has not seen it yet"
}

func probeOver(p *api.OrderProbe) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, api.ConditionComplete) || meta.IsStatusConditionTrue(p.Status.Conditions, api.ConditionFailed)
}

// probeVerdictCode is the exit code of a finished probe.
func probeVerdictCode(p *api.OrderProbe) int {
	switch {
	case p.Status.Verdict == api.VerdictIncorrect:
		return exitBroken
	case p.Status.Verdict == api.VerdictValid && meta.IsStatusConditionTrue(p.Status.Conditions, api.ConditionComplete):
		return 0
	}
	return exitNothing
}

func probeListCommand(k *kubeFlags) *cobra.Command {
	return probeKind.listCommand(k, `  kubectl ordergrid probe list -A -o wide`, writeProbes)
}

func writeProbes(w io.Writer, probes []api.OrderProbe, v view) error {
	t := &table{colors: v.colors}
	head := []any{"NAMESPACE", "NAME", "GRID", "SCENARIO", "STATE", "VERDICT", "MEAN", "P99", "AGE"}
	if v.wide {
		head = append(head, "PARAMETERS", "WHY")
	}
	t.row(head...)
	for i := range probes {
		p := &probes[i]
		state, _ := probeState(p)
		verdict := cell{text: "-"}
		if p.Status.Verdict != "" {
			verdict = verdictCell(string(p.Status.Verdict), probeVerdictCode(p))
		}
		line := []any{p.Namespace, p.Name, orDash(p.Spec.GridRef.Name), p.Spec.Scenario, state, verdict, orDash(p.Status.Mean), orDash(p.Status.P99),
			duration.HumanDuration(v.now.Sub(p.CreationTimestamp.Time))}
		if v.wide {
			line = append(line, p.Spec.Parameters, orDash(p.Status.VerdictReason))
		}
		t.row(line...)
	}
	return t.write(w)
}

type probeRunFlags struct {
	grid, name, parameters string
	rates                  []int32
	measure, budget        time.Duration
	follow                 bool
}

func probeRunCommand(k *kubeFlags) *cobra.Command {
	var f probeRunFlags
	cmd := &cobra.Command{
		Use:   "run SCENARIO [--grid GRID]",
		Short: "Start a probe, and follow it with -f",
		Long: `Creates an OrderProbe and, with --follow, shows its progress until there is a result, prints the table and ends with
its verdict. Ctrl-C leaves the probe running. A probe that waits (for a grid that is not redundant, for a recording)
begins by itself; what it waits for is shown. Scenarios stac-single, stac-pair, stac-scale, stac-knee, flow-... and
gs-write measure the OrderGrid of --grid; the pod of the others starts the grids that it needs. Scenario suite runs all
of them that need no recording.

For all other settings write an OrderProbe (docs/spec/orderprobe.md), kubectl create it, and follow it
with "kubectl ordergrid probe follow NAME".

` + probeCodes,
		Example: `  kubectl ordergrid probe run stac-pair --grid trades -n trading -f
  kubectl ordergrid probe run stac-pair --grid trades --parameters Quick --rates 500,1000 --measure 30s -f
  kubectl ordergrid probe run sol-fanout --parameters Quick -n trading -f
  kubectl ordergrid probe run suite --budget 30m -n trading -f`,
		ValidArgsFunction: first(fixedNames(scenarioNames...)),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(scenarioNames, args[0]) {
				return usageError{fmt.Errorf("scenario %q, allowed: one of %v", args, scenarioNames)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.grid, "grid", "", "OrderGrid to measure; required for scenarios that do")
	fl.StringVar(&f.name, "name", "", "name of the OrderProbe; default the scenario's and five characters")
	fl.StringVar(&f.parameters, "parameters", "", "Exact, Scaled or Quick; default Scaled")
	fl.Int32SliceVar(&f.rates, "rates", nil, "orders per second of each probe, one step after the other; default the scenario's")
	fl.DurationVar(&f.measure, "measure", 0, "how long each step is measured; default the scenario's")
	fl.DurationVar(&f.budget, "budget", 0, "with suite: how long all scenarios may take; default as long as their parameters say")
	fl.BoolVarP(&f.follow, "follow", "f", false, "wait for the result, print it, and end with its verdict")
	completeFlag(cmd, "parameters", fixedNames(string(api.ParametersExact), string(api.ParametersScaled), string(api.ParametersQuick)))
	return cmd
}

func (f *probeRunFlags) run(cmd *cobra.Command, k *kubeFlags, scenario string) error {
	switch own := api.Scenario(scenario).OwnGrids(); {
	case own && f.grid != "":
		return usageError{fmt.Errorf("--grid %s: the pod of %s starts the grids that it needs; leave --grid out", f.grid, scenario)}
	case !own && f.grid == "":
		return usageError{fmt.Errorf("--grid is missing: name the OrderGrid to measure")}
	}
	cluster, err := k.connect()
	if err != nil {
		return err
	}
	if f.grid != "" {
		if _, err := cluster.grid(cmd.Context(), f.grid); err != nil {
			return err
		}
	}
	p := &api.OrderProbe{TypeMeta: metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "OrderProbe"}, ObjectMeta: metav1.ObjectMeta{Name: f.name}}
	if f.name == "" {
		p.GenerateName = scenario + "-"
	}
	p.Spec = api.OrderProbeSpec{GridRef: api.GridReference{Name: f.grid}, Scenario: api.Scenario(scenario), Parameters: api.ParameterSet(f.parameters)}
	if f.budget != 0 {
		p.Spec.Budget = &metav1.Duration{Duration: f.budget}
	}
	if len(f.rates) > 0 || f.measure != 0 {
		p.Spec.Overrides = &api.ProbeOverrides{RatesPerProbe: f.rates}
		if f.measure != 0 {
			p.Spec.Overrides.Measure = &metav1.Duration{Duration: f.measure}
		}
	}
	created, err := probeKind.create(cmd.Context(), cluster, p)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "orderprobe/%s created; kubectl ordergrid probe follow %s%s shows its progress\n", created.Name, created.Name, inNamespace(cluster))
	if !f.follow {
		return nil
	}
	return followProbe(cmd.Context(), cluster, created.Name, cmd.OutOrStdout())
}
