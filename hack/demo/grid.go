package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/e2e/kube"
)

// namespace of the demo's grids; Pod Security "restricted" is enforced in it.
const namespace = "ordergrid-demo"

//go:embed demo.yaml
var manifests []byte

// tablesFromCluster installs the operator with Helm, applies two grids (a pair with replication, a single server without), and a
// probe for each, one after the other: two probes at once would measure each other.
func tablesFromCluster(ctx context.Context, d *demo) error {
	c := d.cluster.kube
	chart := kube.OwnChart(".")
	chart.Helm, chart.Set = d.cluster.helm, append(chart.Set, "metrics.insecure=Accept") // for the Prometheus of the demo, which has no account there
	d.out.line("$ helm upgrade --install ordergrid charts/ordergrid -n ordergrid-system --create-namespace --wait --set %s", strings.Join(chart.Set, ","))
	if _, err := c.Install(ctx, chart); err != nil {
		return err
	}
	parts := strings.Split(string(manifests), "\n---\n")
	grids, probes := strings.Join(parts[:3], "\n---\n"), parts[3:]
	if err := d.apply(ctx, "the OrderGrids", grids); err != nil {
		return err
	}
	if err := d.waitForGrids(ctx); err != nil {
		return err
	}
	table, err := c.Run(ctx, "get", "og,gp,sts,pods", "-n", namespace, "-o", "wide")
	if err != nil {
		return err
	}
	d.out.block(table)
	for _, p := range probes {
		if err := d.runProbe(ctx, p); err != nil {
			return err
		}
	}
	if err := d.verify(ctx); err != nil {
		return err
	}
	return d.findMetrics(ctx)
}

// verify lets the plugin compare the two copies of every order that the probe submitted.
func (d *demo) verify(ctx context.Context) error {
	const plugin = "bin/kubectl-ordergrid"
	if err := d.out.build(ctx, "kubectl-ordergrid", "-ldflags", "-s -w", "-o", plugin, "./cmd/kubectl-ordergrid"); err != nil {
		return err
	}
	d.out.line("$ kubectl ordergrid verify pair -n %s", namespace)
	cmd := exec.CommandContext(ctx, plugin, "verify", "pair", "-n", namespace)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.cluster.kube.Kubeconfig)
	return d.out.stream(cmd)
}

func (d *demo) apply(ctx context.Context, what, manifest string) error {
	d.out.line("$ kubectl apply -f - # %s", what)
	said, err := d.cluster.kube.Apply(ctx, []byte(manifest))
	if err != nil {
		return err
	}
	for l := range strings.Lines(said) {
		d.out.line("  %s", strings.TrimSpace(l))
	}
	return nil
}

type condition struct{ Type, Status, Reason, Message string }

type object struct {
	Metadata struct{ Name string }
	Status   struct {
		Conditions []condition
		Verdict    string
	}
}

// condition of that type; the zero condition when it is not there yet.
func (o object) condition(name string) condition {
	for _, c := range o.Status.Conditions {
		if c.Type == name {
			return c
		}
	}
	return condition{}
}

func (d *demo) waitForGrids(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	progress := func(s string) { d.out.line("  waiting: %s", s) }
	return kube.WaitFor(ctx, "the OrderGrids being available and redundant", progress, func(ctx context.Context) (bool, string, error) {
		var list struct{ Items []object }
		if err := d.cluster.kube.Get(ctx, &list, "ordergrids", "-n", namespace); err != nil {
			return false, "", err
		}
		var missing []string
		for _, g := range list.Items {
			for _, want := range []string{"Available", "Redundant"} {
				if c := g.condition(want); c.Status != "True" && (want == "Available" || g.Metadata.Name != "single") {
					missing = append(missing, fmt.Sprintf("%s: %s is not True (%s %s)", g.Metadata.Name, want, c.Reason, c.Message))
				}
			}
		}
		return len(list.Items) > 0 && len(missing) == 0, strings.Join(missing, "; "), nil
	})
}

func (d *demo) runProbe(ctx context.Context, manifest string) error {
	name := probeName(manifest)
	// A probe that has ended is never run again; a second demo wants new figures.
	if _, err := d.cluster.kube.Run(ctx, "delete", "orderprobe", name, "-n", namespace, "--ignore-not-found", "--wait"); err != nil {
		return err
	}
	if err := d.apply(ctx, "OrderProbe "+name, manifest); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 6*time.Minute)
	defer cancel()
	var probe object
	progress := func(s string) { d.out.line("  %s: %s", name, s) }
	err := kube.WaitFor(ctx, "OrderProbe "+name+" ending", progress, func(ctx context.Context) (bool, string, error) {
		probe = object{}
		if err := d.cluster.kube.Get(ctx, &probe, "orderprobe", name, "-n", namespace); err != nil {
			return false, "", err
		}
		if f := probe.condition("Failed"); f.Status == "True" {
			return true, "", nil
		}
		running := probe.condition("Running")
		return probe.condition("Complete").Status == "True", running.Reason + " " + running.Message, nil
	})
	if err != nil {
		return err
	}
	if f := probe.condition("Failed"); f.Status == "True" {
		return fmt.Errorf("OrderProbe %s failed: %s: %s", name, f.Reason, f.Message)
	}
	table, err := d.cluster.kube.Run(ctx, "get", "configmap", name+"-report", "-n", namespace, "-o", `jsonpath={.data.table\.txt}`)
	if err != nil {
		return err
	}
	d.out.block(table)
	switch probe.Status.Verdict {
	case "Valid", "Invalid": // Invalid: the machine was busy; every cell of the table is marked
		return nil
	}
	return fmt.Errorf("OrderProbe %s: verdict %q: orders were lost, duplicated or out of sequence", name, probe.Status.Verdict)
}

func probeName(manifest string) string {
	for l := range strings.Lines(manifest) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(l), "name: "); ok {
			return name
		}
	}
	return ""
}

func (d *demo) findMetrics(ctx context.Context) error {
	ip, err := d.cluster.kube.Run(ctx, "get", "pod", "pair-s0-0", "-n", namespace, "-o", "jsonpath={.status.podIP}")
	if err != nil {
		return err
	}
	if ip == "" {
		return errors.New("pod pair-s0-0 has no address")
	}
	d.cluster.metricsAddress = ip + ":9400"
	return nil
}
