package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ordergrid/ordergrid/e2e/cluster"
	"github.com/ordergrid/ordergrid/e2e/kube"
)

// clusterInfo is what later steps need of the cluster.
type clusterInfo struct {
	kube           kube.Cluster
	tools          string // directory with kubectl and helm
	metricsAddress string // of some grid pod
}

// clusterProgram is built once; `go run` would print its own exit status over the program's.
const clusterProgram = "bin/cluster"

// bringUpCluster makes sure of a Kubernetes, with the product's images on its nodes.
func bringUpCluster(ctx context.Context, d *demo) error {
	kind, why, err := cluster.Choose(ctx, "")
	if err != nil {
		d.out.line("No cluster can be had here: %v", err)
		d.out.block(afterQuick)
		return errStopHere
	}
	d.out.line("cluster: %s (%s)", kind, why)
	if err := d.out.quietly(ctx, "go build cluster", "go", "build", "-o", clusterProgram, "./e2e/cluster/cmd/cluster"); err != nil {
		return err
	}
	if err := d.out.command(ctx, clusterProgram, "binaries"); err != nil {
		return err
	}
	if err := d.out.command(ctx, clusterProgram, "up"); err != nil {
		return err
	}
	if err := d.out.command(ctx, clusterProgram, "image", "build", "--all", "--out", "out/images"); err != nil {
		return err
	}
	archives, err := filepath.Glob("out/images/*.tar")
	if err != nil {
		return err
	}
	if err := d.out.command(ctx, clusterProgram, append([]string{"load"}, archives...)...); err != nil {
		return err
	}
	if err := d.findTools(ctx); err != nil {
		return err
	}
	nodes, err := d.cluster.kube.Run(ctx, "get", "nodes", "-L", "ordergrid.dev/pool")
	if err != nil {
		return err
	}
	d.out.block(nodes)
	return nil
}

// findTools asks the cluster program where kubeconfig, kubectl and helm are.
func (d *demo) findTools(ctx context.Context) error {
	config, err := output(ctx, clusterProgram, "kubeconfig")
	if err != nil {
		return err
	}
	tools, err := output(ctx, clusterProgram, "binaries", "--dir")
	if err != nil {
		return err
	}
	d.cluster.tools = tools
	d.cluster.kube = kube.Cluster{Kubectl: filepath.Join(tools, "kubectl"), Kubeconfig: config}
	return nil
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
