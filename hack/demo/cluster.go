package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ordergrid/ordergrid/e2e/cluster"
	"github.com/ordergrid/ordergrid/e2e/kube"
	"github.com/ordergrid/ordergrid/internal/checkout"
)

// clusterInfo is what later steps need of the cluster.
type clusterInfo struct {
	kind           cluster.Kind
	kube           kube.Cluster
	tools          string // directory with kubectl
	helm           string
	metricsAddress string // of some grid pod
}

// clusterProgram is built once; `go run` would print its own exit status over the program's.
const clusterProgram = "bin/cluster"

// bringUpCluster makes sure of a Kubernetes, with the product's images on its nodes.
func bringUpCluster(ctx context.Context, d *demo) error {
	root, err := checkout.Root()
	if err != nil {
		return err
	}
	kind, why, err := cluster.Choose(ctx, root, os.Getenv("CLUSTER"))
	if err != nil {
		d.out.line("No cluster can be had here: %v", err)
		d.out.block(afterQuick)
		return errStopHere
	}
	d.cluster.kind = kind
	d.out.line("cluster: %s (%s)", kind, why)
	if err := d.out.build(ctx, "cluster", "-o", clusterProgram, "./e2e/cluster/cmd/cluster"); err != nil {
		return err
	}
	if err := d.findTools(ctx, kind); err != nil {
		return err
	}
	if err := d.out.command(ctx, clusterProgram, "up"); err != nil {
		return err
	}
	if err := d.loadImages(ctx); err != nil {
		return err
	}
	config, err := output(ctx, clusterProgram, "kubeconfig")
	if err != nil {
		return err
	}
	d.cluster.kube.Kubeconfig = config
	nodes, err := d.cluster.kube.Run(ctx, "get", "nodes", "-L", "ordergrid.dev/pool")
	if err != nil {
		return err
	}
	d.out.block(nodes)
	return nil
}

// loadImages builds the images that the demo's manifests run and puts them on the nodes. `make images-load` does so with all.
func (d *demo) loadImages(ctx context.Context) error {
	const dir = "out/images"
	names := []string{"operator", "grid-node", "order-probe"}
	if err := d.out.command(ctx, append([]string{clusterProgram, "image", "build", "--out", dir}, names...)...); err != nil {
		return err
	}
	load := []string{clusterProgram, "load"}
	for _, name := range names {
		load = append(load, filepath.Join(dir, name+".tar"))
	}
	return d.out.command(ctx, load...)
}

// findTools takes kubectl and helm from $PATH where the cluster came from elsewhere too, and else builds them, with all of Kubernetes.
func (d *demo) findTools(ctx context.Context, kind cluster.Kind) error {
	if kubectl, err := exec.LookPath("kubectl"); err == nil && kind != cluster.Local {
		if _, err := exec.LookPath("helm"); err == nil {
			d.cluster.tools, d.cluster.kube.Kubectl = filepath.Dir(kubectl), kubectl
			d.cluster.helm = "helm"
			return nil
		}
	}
	if err := d.out.command(ctx, clusterProgram, "binaries"); err != nil {
		return err
	}
	tools, err := output(ctx, clusterProgram, "binaries", "--dir")
	if err != nil {
		return err
	}
	d.cluster.tools, d.cluster.kube.Kubectl, d.cluster.helm = tools, filepath.Join(tools, "kubectl"), filepath.Join(tools, "helm")
	return nil
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
