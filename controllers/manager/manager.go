// Package manager assembles the operator: its cache, its controllers and its metrics and health endpoints.
package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/allow"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill"
	"github.com/ordergrid/ordergrid/controllers/gridfunction"
	"github.com/ordergrid/ordergrid/controllers/gridfunction/fetch"
	"github.com/ordergrid/ordergrid/controllers/gridlink"
	"github.com/ordergrid/ordergrid/controllers/gridregion"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/controllers/ordergateway"
	"github.com/ordergrid/ordergrid/controllers/ordergrid"
	"github.com/ordergrid/ordergrid/controllers/orderprobe"
)

// Options of the operator, set by flags.
type Options struct {
	// MetricsAddress and HealthAddress are where /metrics, /healthz and /readyz are served; "0" switches one off.
	MetricsAddress, HealthAddress string
	// MetricsInsecure serves metrics over plain HTTP without authorization. Otherwise they are served over TLS to
	// accounts that may get /metrics.
	MetricsInsecure bool
	// MetricsCertDir has tls.crt and tls.key of the metrics server; empty: it creates a self-signed certificate.
	MetricsCertDir string
	// LeaderElection allows several operators, one of which is active.
	LeaderElection bool
	// LeaderElectionNamespace of the Lease; empty means the operator's own namespace.
	LeaderElectionNamespace string
	// Namespaces to watch; none means all.
	Namespaces []string
	// Preflight reads Kubernetes nodes, which requires permission to list and watch them.
	Preflight bool
	// Workers is the number of objects of one kind reconciled at the same time.
	Workers int
	// Grid and Probe are the defaults for OrderGrids and OrderProbes.
	Grid  ordergrid.Defaults
	Probe orderprobe.Defaults
	// Link is the default for GridLinks.
	Link gridlink.Defaults
	// Gateway is the default for OrderGateways.
	Gateway ordergateway.Defaults
	// PodTemplateAllow, NAMESPACE=FEATURE each, is what spec.podTemplate of OrderGrids may have beyond a restricted
	// pod.
	PodTemplateAllow []string
	// FunctionAllow, NAMESPACE=HOST each, are hosts from which modules of GridFunctions may be fetched.
	FunctionAllow []string
	// Drill configures where drills may run. Its images are the probe's.
	Drill failoverdrill.Defaults
	// DrillAllow, NAMESPACE=TYPE each, are faults that drills may make there although they affect more than the grid.
	DrillAllow []string
	// DrillExecutors, NAME=URL each, make faults that Kubernetes has no means for; DrillExecutorTokens and
	// DrillExecutorCAs, NAME=FILE each, have their tokens and the authorities that vouch for them;
	// DrillExecutorInsecure has the names of those that may use plain http.
	DrillExecutors, DrillExecutorTokens, DrillExecutorCAs, DrillExecutorInsecure []string
	// DrillNodeFeaturesNamespace is where the Jobs run that detect the features of a node's kernel; empty means the
	// drill's.
	DrillNodeFeaturesNamespace string

	// shareProcess lets a test run two operators in one process, where names of controllers would collide.
	shareProcess bool
}

// Check names the invalid option.
func (o Options) Check() error {
	switch {
	case o.Grid.Image == "":
		return errors.New(`--grid-node-image: empty; name the image that OrderGrids without spec.image run, such as ordergrid.dev/grid-node:dev`)
	case o.Probe.Image == "":
		return errors.New(`--order-probe-image: empty; name the image that OrderProbes without spec.image run, such as ordergrid.dev/order-probe:dev`)
	case o.Link.Image == "":
		return errors.New(`--grid-link-image: empty; name the image that the pods of GridLinks run, such as ordergrid.dev/grid-link:dev`)
	case o.Workers < 1:
		return fmt.Errorf("--workers: %d is out of range; give at least 1", o.Workers)
	}
	for _, port := range o.Grid.APIServerPorts {
		if port < 1 || port > 65535 {
			return fmt.Errorf("--api-server-ports: %d is not a port; give numbers from 1 to 65535", port)
		}
	}
	if _, err := o.podTemplates(); err != nil {
		return err
	}
	if _, err := o.functionSources(); err != nil {
		return err
	}
	if err := o.checkDrills(); err != nil {
		return err
	}
	switch o.Grid.ImagePullPolicy {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
		return nil
	}
	return fmt.Errorf("--image-pull-policy: %q is not a pull policy; allowed are Always, IfNotPresent, Never, or nothing", o.Grid.ImagePullPolicy)
}

func (o Options) podTemplates() (allow.List, error) {
	return allow.Parse("--pod-template-allow", o.PodTemplateAllow, ordergrid.CheckPodFeature)
}

func (o Options) functionSources() (allow.List, error) {
	return allow.Parse("--function-allow", o.FunctionAllow, fetch.CheckHost)
}

// Scheme has the kinds the operator reads and writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), api.AddToScheme(scheme))
}

// New assembles the operator.
func New(cfg *rest.Config, o Options) (ctrl.Manager, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	// The Lease is longer than controller-runtime's default: a slow operator does no harm, while one that loses its
	// lease on a busy API server restarts needlessly. A leader that stops releases the Lease at once.
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cacheOptions(o.Namespaces),
		Metrics:                       server.Options{BindAddress: "0"}, // see metricsServer
		HealthProbeBindAddress:        o.HealthAddress,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              Lease,
		LeaderElectionNamespace:       o.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(30 * time.Second),
		RenewDeadline:                 new(20 * time.Second),
		RetryPeriod:                   new(4 * time.Second),
		GracefulShutdownTimeout:       new(10 * time.Second),
		Controller:                    config.Controller{SkipNameValidation: new(o.shareProcess)},
	})
	if err != nil {
		return nil, err
	}
	if o.Grid.PodTemplates, err = o.podTemplates(); err != nil {
		return nil, err
	}
	o.Grid.OperatorNamespace = ownNamespace(o.LeaderElectionNamespace)
	grids := &ordergrid.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("ordergrid-operator"),
		Clock: clock.RealClock{}, Nodes: ordergrid.NewNodeClient(), Defaults: o.Grid,
	}
	if o.Preflight {
		grids.KubeNodes = mgr.GetClient()
	}
	probes := &orderprobe.Reconciler{
		Client: apply.Logged(mgr.GetClient()), Live: mgr.GetAPIReader(), Recorder: messages.Logged(mgr.GetEventRecorder("ordergrid-operator")),
		Clock: clock.RealClock{}, Defaults: o.Probe,
	}
	links := &gridlink.Reconciler{
		Client: apply.Logged(mgr.GetClient()), Live: mgr.GetAPIReader(), Recorder: messages.Logged(mgr.GetEventRecorder("ordergrid-operator")),
		Clock: clock.RealClock{}, Links: ordergrid.NewNodeClient(), Defaults: o.Link,
	}
	gateways := &ordergateway.Reconciler{
		Client: apply.Logged(mgr.GetClient()), Live: mgr.GetAPIReader(), Recorder: messages.Logged(mgr.GetEventRecorder("ordergrid-operator")),
		Clock: clock.RealClock{}, Pods: ordergrid.NewNodeClient(), Defaults: o.Gateway,
	}
	functions := &gridfunction.Reconciler{
		Client: apply.Logged(mgr.GetClient()), Live: mgr.GetAPIReader(), Recorder: messages.Logged(mgr.GetEventRecorder("ordergrid-operator")), Clock: clock.RealClock{},
	}
	if functions.Sources, err = o.functionSources(); err != nil {
		return nil, err
	}
	regions := &gridregion.Reconciler{
		Client: apply.Logged(mgr.GetClient()), Recorder: messages.Logged(mgr.GetEventRecorder("ordergrid-operator")), Clock: clock.RealClock{},
	}
	page, err := newMetricsServer(context.Background(), cfg, o)
	if err != nil {
		return nil, err
	}
	if page != nil {
		if err := mgr.Add(page); err != nil {
			return nil, err
		}
	}
	drills, err := drills(mgr, o)
	if err != nil {
		return nil, err
	}
	return mgr, errors.Join(
		drills.SetupWithManager(mgr, o.Workers),
		grids.SetupWithManager(mgr, o.Workers),
		probes.SetupWithManager(mgr, o.Workers),
		links.SetupWithManager(mgr, o.Workers),
		gateways.SetupWithManager(mgr, o.Workers),
		functions.SetupWithManager(mgr),
		regions.SetupWithManager(mgr),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("ping", healthz.Ping),
	)
}

// cacheOptions limit the cache to the operator's objects: in a cluster with ten thousand pods it holds the grids' only.
func cacheOptions(namespaces []string) cache.Options {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{"app.kubernetes.io/managed-by": "ordergrid-operator"})}
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}:            ours,
			&appsv1.StatefulSet{}:           ours,
			&batchv1.Job{}:                  ours,
			&corev1.ConfigMap{}:             {Label: ours.Label, Transform: ordergrid.StripConfigMap},
			&corev1.Node{}:                  {Transform: ordergrid.StripNode},
			&corev1.Pod{}:                   {Label: ours.Label, Transform: ordergrid.StripPod},
			&corev1.Service{}:               ours,
			&corev1.ServiceAccount{}:        ours,
			&networkingv1.NetworkPolicy{}:   ours,
			&policyv1.PodDisruptionBudget{}: ours,
			&rbacv1.Role{}:                  ours,
			&rbacv1.RoleBinding{}:           ours,
		},
	}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = make(map[string]cache.Config, len(namespaces))
		for _, ns := range namespaces {
			options.DefaultNamespaces[ns] = cache.Config{}
		}
	}
	return options
}
