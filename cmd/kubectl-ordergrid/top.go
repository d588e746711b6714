package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/scrape"
)

type topFlags struct {
	metrics  []string
	direct   bool
	pods     bool
	interval time.Duration
	count    int
	output   string
}

func topCommand(k *kubeFlags) *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top GRID",
		Short: "Show live orders/s, latency, lag and memory of each shard",
		Long: `Reads the metrics of every node twice and shows what happened between: a line per shard, or with --pods
per node. On a terminal it repeats until it is interrupted; else it prints one table.

  ORDERS/S    acknowledged as primary         REFUSED/S   refused, with a reason
  P50, P99    from receiving an order on the primary until every copy has it
  LAG         entries stored and not yet known to be committed, the largest
  SINK        age of the oldest committed order that a sink does not hold, of several the one that lags the most; - where
              nothing is written
  CPU         of the busiest node's loop, of one core
  MEMORY      of orders and indexes, of the fullest node
  FULL IN     time until orders are refused at the rate of the last half minute, of the node that is full first; what
              may be freed does not count. FULL: they are refused. -: nothing grows

Nodes are reached through the API server (needs permission to port-forward to the pods), with --direct at
their pod addresses (inside the cluster), or at --metrics without asking Kubernetes at all ("grid-node dev").

Exit codes: 0, 2 wrong usage, 4 no node could be read.`,
		Example: `  kubectl ordergrid top trades -n trading
  kubectl ordergrid top trades --pods --interval 5s --count 3
  kubectl ordergrid top trades --count 1 -o json | jq '.[].ordersPerSecond'`,
		Args: oneGrid,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.metrics, "metrics", nil, "host:port of a node's /metrics; Kubernetes is not used then")
	fl.BoolVar(&f.direct, "direct", false, "connect to pod addresses without a tunnel through the API server")
	fl.BoolVar(&f.pods, "pods", false, "a line per node instead of per shard")
	fl.DurationVar(&f.interval, "interval", 2*time.Second, "interval, at least 100ms")
	fl.IntVar(&f.count, "count", 0, "how many tables; default until interrupted on a terminal, else 1")
	fl.StringVarP(&f.output, "output", "o", "text", "text or json (an array per table)")
	return cmd
}

func (f *topFlags) run(cmd *cobra.Command, k *kubeFlags, grid string) error {
	switch {
	case f.output != "text" && f.output != "json":
		return usageError{fmt.Errorf("--output: value %q, allowed: text, json", f.output)}
	case f.interval < 100*time.Millisecond:
		return usageError{fmt.Errorf("--interval: value %v, allowed: 100ms or more", f.interval)}
	case f.count < 0:
		return usageError{fmt.Errorf("--count: value %d, allowed: 0 or more", f.count)}
	}
	targets, dial, err := targetsOf(cmd.Context(), k, grid, f.metrics, f.direct)
	if err != nil {
		return err
	}
	defer dial.close()
	screen := isTerminal(cmd.OutOrStdout()) && f.output == "text"
	count := f.count
	if count == 0 && !screen {
		count = 1
	}
	w := &watch{client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: dial.dialContext}}, targets: targets, last: map[string]*scrape.Reading{}}
	w.read(cmd.Context())
	for i := 0; count == 0 || i < count; i++ {
		select {
		case <-time.After(f.interval):
		case <-cmd.Context().Done():
			return nil
		}
		nodes, failed := w.read(cmd.Context())
		if cmd.Context().Err() != nil {
			return nil
		}
		if err := f.write(cmd.OutOrStdout(), screen, grid, nodes, failed); err != nil {
			return err
		}
		if len(nodes) == 0 && !screen {
			return fmt.Errorf("no node of %s could be read: %s", grid, strings.Join(failed, "; "))
		}
	}
	return nil
}

// clearScreen clears the screen and moves the cursor to the upper left corner.
const clearScreen = "\x1b[H\x1b[2J"

func (f *topFlags) write(w io.Writer, screen bool, grid string, nodes []usage, failed []string) error {
	rows := nodes
	if !f.pods {
		rows = byShard(nodes)
	}
	if f.output == "json" {
		if rows == nil {
			rows = []usage{}
		}
		return json.NewEncoder(w).Encode(rows)
	}
	if screen {
		fmt.Fprintf(w, "%s%s  %s  every %v, Ctrl-C ends\n\n", clearScreen, grid, time.Now().Format(time.TimeOnly), f.interval)
	}
	if err := writeUsage(w, rows); err != nil {
		return err
	}
	for _, why := range failed {
		fmt.Fprintln(w, why)
	}
	return nil
}

// target is a node whose metrics are read.
type target struct{ name, address string }

// way is how targets are dialled.
type way struct{ tunnels *forwarder }

// targetsOf are the HTTP ports of the nodes of a grid, or those given.
func targetsOf(ctx context.Context, k *kubeFlags, grid string, addresses []string, direct bool) (targets []target, w way, err error) {
	for _, address := range addresses {
		targets = append(targets, target{address, address})
	}
	if len(targets) > 0 {
		return targets, w, nil
	}
	cluster, err := k.connect()
	if err != nil {
		return nil, w, err
	}
	pods, err := cluster.gridPods(ctx, grid)
	if err != nil {
		return nil, w, err
	}
	for i := range pods {
		targets = append(targets, target{pods[i].Name, address(&pods[i], v1alpha1.HTTPPort)})
	}
	slices.SortFunc(targets, func(a, b target) int { return strings.Compare(a.name, b.name) })
	if !direct {
		w.tunnels = newForwarder(cluster, grid)
	}
	return targets, w, nil
}
