// Command operator is OrderGrid's Kubernetes operator: it reconciles OrderGrids, OrderProbes that measure them and
// FailoverDrills that inject faults into them.
package main

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ordergrid/ordergrid/controllers/manager"
	"github.com/ordergrid/ordergrid/internal/cgroup"
	"github.com/ordergrid/ordergrid/internal/version"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var (
		o          manager.Options
		pullPolicy string
		level      string
	)
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "OrderGrid's Kubernetes operator",
		Long: "operator reconciles OrderGrids, OrderProbes and FailoverDrills.\n\n" +
			"It connects to the cluster it runs in, or to the one $KUBECONFIG names. It is not on the path\n" +
			"of an order: a grid keeps serving while the operator is stopped.",
		Version:       version.String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := setLogger(level); err != nil {
				return err
			}
			o.Grid.ImagePullPolicy = corev1.PullPolicy(pullPolicy)
			o.Probe.ImagePullPolicy, o.Link.ImagePullPolicy = o.Grid.ImagePullPolicy, o.Grid.ImagePullPolicy
			o.Gateway.ImagePullPolicy = o.Grid.ImagePullPolicy
			if err := o.Check(); err != nil {
				return err
			}
			cfg, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("no cluster: %w; run in one, or set KUBECONFIG", err)
			}
			mgr, err := manager.New(cfg, o)
			if err != nil {
				return err
			}
			limitMemory()
			ctrl.Log.Info("starting", "version", version.String(), "gridNodeImage", o.Grid.Image, "orderProbeImage", o.Probe.Image)
			return mgr.Start(ctrl.SetupSignalHandler())
		},
	}
	cmd.AddCommand(checkCommand())
	f := cmd.Flags()
	f.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", `where /metrics is served; "0" switches it off`)
	f.BoolVar(&o.MetricsInsecure, "metrics-insecure", false, "serve /metrics over plain HTTP without authorization, not over TLS to authorized accounts")
	f.StringVar(&o.MetricsCertDir, "metrics-cert-dir", "", "directory with tls.crt and tls.key for /metrics, reloaded when they change (default: a self-signed certificate)")
	f.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", `where /healthz and /readyz are served; "0" switches them off`)
	f.BoolVar(&o.LeaderElection, "leader-elect", true, "allow several operators, one of which is active")
	f.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the Lease (default: the operator's own)")
	f.StringSliceVar(&o.Namespaces, "watch-namespaces", nil, "namespaces to watch, separated by commas (default: all)")
	f.BoolVar(&o.Preflight, "preflight", false, "read Kubernetes nodes, which requires permission to list and watch them, and report what nodes lack for a grid's pods")
	f.StringArrayVar(&o.PodTemplateAllow, "pod-template-allow", nil, `NAMESPACE=FEATURE that spec.podTemplate of OrderGrids may have there beyond a restricted pod, such as trading=PriorityClass/high; "*" is every namespace; may be repeated (docs/spec/ordergrid.md)`)
	f.StringArrayVar(&o.FunctionAllow, "function-allow", nil, `NAMESPACE=HOST[:PORT] from which modules of GridFunctions there may be fetched, such as trading=registry.example:5000; *.DOMAIN is every host below it, "*" every namespace; may be repeated (default: none, docs/functions.md)`)
	f.StringSliceVar(&o.Drill.Namespaces, "drill-namespaces", nil, `namespaces in which FailoverDrills may run, separated by commas; "*" is all (default: none)`)
	f.StringArrayVar(&o.DrillAllow, "drill-allow", nil, `NAMESPACE=TYPE of a fault that drills may make there although it affects more than the grid: APIServerOutage, NodeLinkDown or NodePowerOff; "*" is every namespace; may be repeated`)
	f.StringVar(&o.DrillNodeFeaturesNamespace, "drill-node-features-namespace", "", "namespace of the Jobs that detect which faults a node's kernel supports; they need NET_ADMIN and SYS_ADMIN (default: the drill's)")
	f.StringArrayVar(&o.DrillExecutors, "drill-executor", nil, "NAME=URL of a service that makes faults Kubernetes has no means for; may be repeated")
	f.StringArrayVar(&o.DrillExecutorTokens, "drill-executor-token", nil, "NAME=FILE with the token of such a service; may be repeated")
	f.StringArrayVar(&o.DrillExecutorCAs, "drill-executor-ca", nil, "NAME=FILE with the authorities, in PEM form, of such a service at an https URL; may be repeated")
	f.StringArrayVar(&o.DrillExecutorInsecure, "drill-executor-insecure", nil, "NAME of such a service that is used over plain http; may be repeated")
	f.IntVar(&o.Workers, "workers", 4, "objects of one kind reconciled at the same time")
	f.StringVar(&o.Grid.Image, "grid-node-image", "ordergrid.dev/grid-node:dev", "image of OrderGrids without spec.image")
	f.StringVar(&o.Grid.SinkImage, "grid-sink-image", "ordergrid.dev/grid-sink:dev", "image of the pods of sinks of type Kafka and PostgreSQL")
	f.StringVar(&o.Link.Image, "grid-link-image", "ordergrid.dev/grid-link:dev", "image of the pods of GridLinks")
	f.StringVar(&o.Gateway.Image, "order-gateway-image", "ordergrid.dev/order-gateway:dev", "image of the pods of OrderGateways")
	f.StringVar(&o.Probe.Image, "order-probe-image", "ordergrid.dev/order-probe:dev", "image of OrderProbes without spec.image")
	f.Int32SliceVar(&o.Grid.APIServerPorts, "api-server-ports", []int32{443, 6443}, "ports at which pods reach the API server, for the NetworkPolicies of grids: that of its Service and that of the servers behind it")
	f.StringVar(&pullPolicy, "image-pull-policy", "", "pull policy of pods without one: Always, IfNotPresent or Never (default: as Kubernetes does by tag)")
	f.StringVar(&level, "log-level", "info", "least level that is logged: debug, info, warn or error")
	return cmd
}

// limitMemory makes garbage collection more frequent as the container's memory limit approaches: with a thousand grids
// the heap may double between two collections and be OOM-killed over garbage. $GOMEMLIMIT takes precedence.
func limitMemory() {
	if limit, _, ok := cgroup.MemoryLimit(); ok && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit - limit/10)
	}
}

// setLogger writes the logs of controller-runtime and client-go as JSON lines to standard error.
func setLogger(level string) error {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return fmt.Errorf("--log-level: %q is not a level; allowed are debug, info, warn and error", level)
	}
	logger := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: l}))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return nil
}
