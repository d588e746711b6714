package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/internal/tlsflag"
)

// reachHelp is for the help of commands that connect to nodes.
const reachHelp = `Nodes are reached through the API server (needs permission to port-forward to the pods),
with --direct at their pod addresses (inside the cluster), or at --endpoint without
Kubernetes ("grid-node dev"). Where the grid uses TLS, the certificate of
its tools is used (needs permission to read that Secret), or that of --tls-cert.`

// reachFlags select how the nodes of a grid are reached.
type reachFlags struct {
	endpoints []string
	direct    bool
	tls       tlsflag.Flags
}

func (f *reachFlags) register(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.endpoints, "endpoint", nil, "host:port of a node; Kubernetes is not used then")
	f.tls.Register(fl, "TLS is used for the grid")
	f.tls.RegisterToken(fl)
	fl.BoolVar(&f.direct, "direct", false, "connect to pod addresses without a tunnel through the API server")
}

// dial connects to the grid; done ends connections and tunnels.
func (f *reachFlags) dial(cmd *cobra.Command, k *kubeFlags, grid string) (c *client.Client, done func(), err error) {
	cfg, closeTunnels, err := f.config(cmd.Context(), k, grid)
	if err != nil {
		return nil, nil, err
	}
	if c, err = client.Dial(cmd.Context(), cfg); err != nil {
		closeTunnels()
		return nil, nil, err
	}
	return c, func() { _ = c.Close(); closeTunnels() }, nil
}

// config is the configuration for connecting to the grid; done ends the tunnels.
func (f *reachFlags) config(ctx context.Context, k *kubeFlags, grid string) (cfg client.Config, done func(), err error) {
	cfg = client.Config{Endpoints: f.endpoints, Grid: grid, Name: "kubectl-ordergrid", DialTimeout: 30 * time.Second, RequestTimeout: 30 * time.Second, IO: client.IONet}
	if host, err := os.Hostname(); err == nil {
		cfg.Name += "@" + host
	}
	cfg.Token = f.tls.Token()
	if len(f.endpoints) > 0 {
		cfg.TLS, err = f.tls.Client()
		return cfg, func() {}, err
	}
	cluster, err := k.connect()
	if err != nil {
		return cfg, nil, err
	}
	pods, err := cluster.gridPods(ctx, grid)
	if err != nil {
		return cfg, nil, err
	}
	if err := f.secure(ctx, cluster, grid, &cfg); err != nil {
		return cfg, nil, err
	}
	for i := range pods {
		cfg.Endpoints = append(cfg.Endpoints, address(&pods[i], v1alpha1.DataPort))
	}
	if f.direct {
		return cfg, func() {}, nil
	}
	tunnels := newForwarder(cluster, grid)
	cfg.Dial = tunnels.Dial
	return cfg, tunnels.close, nil
}

// gridPods are the running pods of a grid; at least one.
func (c *cluster) gridPods(ctx context.Context, grid string) ([]corev1.Pod, error) {
	if _, err := c.grid(ctx, grid); err != nil {
		return nil, err
	}
	pods, err := c.pods(ctx, grid)
	if err == nil && len(pods) == 0 {
		err = fmt.Errorf("ordergrid %s/%s has no running pod; see kubectl -n %s get pods -l %s=%s", c.namespace, grid, c.namespace, v1alpha1.LabelGrid, grid)
	}
	return pods, err
}

func address(p *corev1.Pod, port int) string {
	return net.JoinHostPort(p.Status.PodIP, strconv.Itoa(port))
}
