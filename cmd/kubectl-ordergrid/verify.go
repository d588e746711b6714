package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/verify"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

type verifyFlags struct {
	endpoints  []string
	partitions []string
	sinkDir    string
	direct     bool
	output     string
	timeout    time.Duration
}

func verifyCommand(k *kubeFlags) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify GRID",
		Short: "Compare all replicas of a grid byte for byte",
		Long: `Reads the committed log of every replica of every partition and compares them byte
for byte; checks that sequence numbers are dense, that the hash chain is unbroken and
that no order is there twice. The grid may be serving meanwhile; nothing is changed.

Nodes are reached through the API server (needs the right to port-forward to the pods),
with --direct at their pod addresses (inside the cluster), or at --endpoint without
asking Kubernetes at all ("grid-node dev").

Exit codes: 0 equal, 1 different, 2 wrong usage, 4 not everything could be read.`,
		Example: `  kubectl ordergrid verify trades -n trading
  kubectl ordergrid verify dev --endpoint 127.0.0.1:7400 --sink-dir /tmp/sink -o json`,
		Args: oneGrid,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.endpoints, "endpoint", nil, "host:port of a node; Kubernetes is not asked then")
	fl.BoolVar(&f.direct, "direct", false, "connect to pod addresses without a tunnel through the API server")
	fl.StringSliceVar(&f.partitions, "partition", nil, "check these only, for example s0p1; default all")
	fl.StringVar(&f.sinkDir, "sink-dir", "", "also compare with the file sinks in this local directory")
	fl.StringVarP(&f.output, "output", "o", "text", "text or json")
	fl.DurationVar(&f.timeout, "timeout", 10*time.Minute, "for everything")
	return cmd
}

func (f *verifyFlags) run(cmd *cobra.Command, k *kubeFlags, grid string) error {
	if f.output != "text" && f.output != "json" {
		return usageError{fmt.Errorf("--output: value %q, allowed: text, json", f.output)}
	}
	o := verify.Options{SinkDir: f.sinkDir, Grid: grid}
	for _, p := range f.partitions {
		id, err := wire.ParsePartitionID(p)
		if err != nil {
			return usageError{fmt.Errorf("--partition: %w", err)}
		}
		o.Partitions = append(o.Partitions, id)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	cfg, done, err := f.reach(ctx, k, grid)
	if err != nil {
		return err
	}
	defer done()
	c, err := client.Dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // it never fails
	r, err := verify.Run(ctx, verify.FromClient(c), o)
	if err != nil {
		return err
	}
	write := r.WriteText
	if f.output == "json" {
		write = r.WriteJSON
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	if code := r.ExitCode(); code != verify.ExitEqual {
		return exitError(code)
	}
	return nil
}

// reach says how to connect to the grid; done ends the tunnels.
func (f *verifyFlags) reach(ctx context.Context, k *kubeFlags, grid string) (cfg client.Config, done func(), err error) {
	cfg = client.Config{Endpoints: f.endpoints, Grid: grid, Name: "kubectl-ordergrid", DialTimeout: 30 * time.Second, RequestTimeout: 30 * time.Second, IO: client.IONet}
	if host, err := os.Hostname(); err == nil {
		cfg.Name += "@" + host
	}
	if len(f.endpoints) > 0 {
		return cfg, func() {}, nil
	}
	cluster, err := k.connect()
	if err != nil {
		return cfg, nil, err
	}
	if _, err := cluster.grid(ctx, grid); err != nil {
		return cfg, nil, err
	}
	pods, err := cluster.pods(ctx, grid)
	if err != nil {
		return cfg, nil, err
	}
	if len(pods) == 0 {
		return cfg, nil, fmt.Errorf("ordergrid %s/%s has no running pod; kubectl -n %s get pods -l %s=%s shows why", cluster.namespace, grid, cluster.namespace, v1alpha1.LabelGrid, grid)
	}
	for i := range pods {
		cfg.Endpoints = append(cfg.Endpoints, net.JoinHostPort(pods[i].Status.PodIP, strconv.Itoa(v1alpha1.DataPort)))
	}
	if f.direct {
		return cfg, func() {}, nil
	}
	tunnels := newForwarder(cluster, grid)
	cfg.Dial = tunnels.Dial
	return cfg, tunnels.close, nil
}
