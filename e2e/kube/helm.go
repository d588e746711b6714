package kube

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Chart is a Helm chart to install. The zero Helm is helm of $PATH.
type Chart struct {
	Helm      string
	Path      string // directory of the chart
	Release   string
	Namespace string   // made if it is not there
	Set       []string // key=value
	Values    string   // path of a file of values; "" is none
	// Foreign is a chart of others: its custom resource definitions are the
	// caller's business, and its pods are not stamped with the time.
	Foreign bool
}

// System is the namespace that OrderGrid is installed in.
const System = "ordergrid-system"

// OwnChart is OrderGrid's chart of the checkout at root, as every suite installs it: each has namespaces of its own, which
// come and go.
func OwnChart(root string) Chart {
	return Chart{Path: filepath.Join(root, "charts", "ordergrid"), Release: "ordergrid", Namespace: System, Set: []string{"clusterWide=Accept"}}
}

// Install is `helm upgrade --install --wait`: the same command installs, upgrades and does nothing.
func (c Cluster) Install(ctx context.Context, chart Chart) (string, error) {
	args := []string{"upgrade", "--install", chart.Release, chart.Path, "--namespace", chart.Namespace, "--create-namespace", "--wait", "--timeout", "3m"}
	for _, s := range chart.Set {
		args = append(args, "--set", s)
	}
	if chart.Values != "" {
		args = append(args, "--values", chart.Values)
	}
	if chart.Foreign {
		return c.helm(ctx, chart, append(args, "--skip-crds"))
	}
	// A tag such as dev is another image after every build, and nothing of the release would change with it.
	args = append(args, "--set-string", `podAnnotations.ordergrid\.dev/installed-at=`+time.Now().UTC().Format(time.RFC3339))
	return c.helm(ctx, chart, args)
}

// Uninstall removes the release; the custom resource definitions stay, as Helm's users expect.
func (c Cluster) Uninstall(ctx context.Context, chart Chart) (string, error) {
	return c.helm(ctx, chart, []string{"uninstall", chart.Release, "--namespace", chart.Namespace, "--wait", "--ignore-not-found"})
}

func (c Cluster) helm(ctx context.Context, chart Chart, args []string) (string, error) {
	program := chart.Helm
	if program == "" {
		program = "helm"
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = os.Environ()
	if c.Kubeconfig != "" {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+c.Kubeconfig)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("helm %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
