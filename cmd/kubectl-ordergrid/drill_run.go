package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
)

type drillRunFlags struct {
	grid, name, lastCopy                    string
	repetitions, rate, probes, maxShards    int32
	seed                                    int64
	skipUnsupported, notRedundant, printing bool
	follow                                  bool
	startTimeout                            time.Duration
	followFlags
}

func drillRunCommand(k *kubeFlags) *cobra.Command {
	var f drillRunFlags
	cmd := &cobra.Command{
		Use:   "run SUITE --grid GRID",
		Short: "Start a drill, and follow it with -f",
		Long: `Creates a FailoverDrill of a suite ("kubectl ordergrid drill suites" lists them) and, with --follow, shows what happens,
one line an event, until there is a certificate, which it prints.

Ctrl-C while following leaves the drill running and prints how to abort it; with --abort-on-interrupt it is aborted, and
every fault recovered, before the command ends. A drill that does not begin within --start-timeout, or cannot without
manual action, is aborted too.

For faults of your own write a FailoverDrill (docs/spec/failoverdrill.md), kubectl create it and follow it with
"kubectl ordergrid drill follow NAME". --print shows the FailoverDrill that would be created.

` + drillCodes,
		Example: `  kubectl ordergrid drill run pull-the-plug --grid trades -n trading -f
  kubectl ordergrid drill run overnight --grid trades --repetitions 3 --seed 7 -f --out certificate
  kubectl ordergrid drill run network --grid trades --skip-unsupported`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("%d arguments, allowed: the name of one suite; see kubectl ordergrid drill suites", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.grid, "grid", "", "OrderGrid to inject faults into (required)")
	fl.StringVar(&f.name, "name", "", "name of the FailoverDrill; default the suite's and five characters")
	fl.Int32Var(&f.repetitions, "repetitions", 0, "of the whole suite, 1 to 1000; default the suite's")
	fl.Int64Var(&f.seed, "seed", 0, "of all random choices; default random, and shown")
	fl.Int32Var(&f.rate, "rate", 0, "orders per second of each probe, 1 to 100000; default the suite's")
	fl.Int32Var(&f.probes, "probes", 0, "number of probes, 1 to 26; default 2")
	fl.Int32Var(&f.maxShards, "max-shards", 0, "how many shards one fault may hit, 1 to 256; default 1")
	fl.StringVar(&f.lastCopy, "last-copy", "", "Keep refuses a fault that would end the last copy of a partition, Take injects it and loses orders; default Keep")
	fl.BoolVar(&f.notRedundant, "allow-not-redundant", false, "inject faults even if copies are missing")
	fl.BoolVar(&f.skipUnsupported, "skip-unsupported", false, "leave out unsupported faults, instead of not beginning")
	fl.BoolVarP(&f.follow, "follow", "f", false, "show what happens until there is a certificate, and end with its verdict")
	fl.DurationVar(&f.startTimeout, "start-timeout", 10*time.Minute, "with --follow: how long the drill may wait to begin")
	fl.BoolVar(&f.printing, "print", false, "only print the FailoverDrill, as YAML")
	f.register(fl)
	return cmd
}

func (f *drillRunFlags) run(cmd *cobra.Command, k *kubeFlags, suite string) error {
	drill, err := f.build(suite)
	if err != nil {
		return usageError{err}
	}
	if f.printing {
		return printManifest(cmd, drill, k.namespace)
	}
	if f.folder != "" { // check the folder before the drill, not after it
		if err := os.MkdirAll(f.folder, 0o755); err != nil {
			return err
		}
	}
	cluster, err := k.connect()
	if err != nil {
		return err
	}
	if drill, err = cluster.createDrill(cmd.Context(), drill); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if !f.follow {
		fmt.Fprintf(out, "failoverdrill/%s created; kubectl ordergrid drill follow %s%s shows what happens\n", drill.Name, drill.Name, inNamespace(cluster))
		return nil
	}
	w := f.follower(cluster, drill.Name, out, cmd.ErrOrStderr())
	w.startLimit = f.startTimeout
	return w.run(cmd.Context())
}

// build makes the object; errors are for the user.
func (f *drillRunFlags) build(suite string) (*api.FailoverDrill, error) {
	switch {
	case f.grid == "":
		return nil, fmt.Errorf("--grid is missing: name the OrderGrid to inject faults into")
	case !f.follow && (f.folder != "" || f.abortOnInterrupt):
		return nil, fmt.Errorf("--out and --abort-on-interrupt are for the end of a drill that is followed; add --follow")
	case f.startTimeout <= 0:
		return nil, fmt.Errorf("--start-timeout: value %s, allowed: more than 0s", f.startTimeout)
	}
	if _, err := plan.SuiteByName(api.DrillSuite(suite)); err != nil {
		return nil, err
	}
	d := &api.FailoverDrill{TypeMeta: metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "FailoverDrill"}, ObjectMeta: metav1.ObjectMeta{Name: f.name}}
	if f.name == "" {
		d.GenerateName = suite + "-"
	}
	s := &d.Spec
	s.GridRef.Name, s.Suite = f.grid, api.DrillSuite(suite)
	s.Traffic.Probes, s.Safety.MaxShards, s.Safety.LastCopy = f.probes, f.maxShards, api.LastCopyPolicy(f.lastCopy)
	if f.repetitions != 0 {
		s.Repetitions = new(f.repetitions)
	}
	if f.rate != 0 {
		s.Traffic.RatePerProbe = new(f.rate)
	}
	if f.seed != 0 {
		s.Seed = new(f.seed)
	}
	if f.notRedundant {
		s.Safety.WhenNotRedundant = api.NotRedundantAllow
	}
	if f.skipUnsupported {
		s.UnsupportedFaults = api.UnsupportedSkip
	}
	return d, nil
}

func (c *cluster) createDrill(ctx context.Context, d *api.FailoverDrill) (*api.FailoverDrill, error) {
	if _, err := c.grid(ctx, d.Spec.GridRef.Name); err != nil {
		return nil, err
	}
	return drillKind.create(ctx, c, d)
}

func printManifest(cmd *cobra.Command, d *api.FailoverDrill, namespace string) error {
	d.Namespace = namespace
	text, err := yaml.Marshal(d)
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}

// inNamespace repeats the namespace in suggested commands.
func inNamespace(c *cluster) string {
	if c.namespace == metav1.NamespaceDefault {
		return ""
	}
	return " -n " + strings.TrimSpace(c.namespace)
}
