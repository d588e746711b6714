package manager

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/controllers/allow"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/witness"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/internal/version"
)

// namespaceFile has the namespace of the pod a program runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// drills assembles the controller of FailoverDrills.
func drills(mgr ctrl.Manager, o Options) (*failoverdrill.Reconciler, error) {
	// Injectors and witnesses read without a cache, and read kinds that may be installed later.
	plain, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, err
	}
	live := apply.Logged(plain)
	defaults := o.Drill
	if defaults.Allowed, err = o.drillAllowed(); err != nil {
		return nil, err
	}
	defaults.Image, defaults.ImagePullPolicy = o.Probe.Image, o.Probe.ImagePullPolicy // the recorder is a command of the probe
	injectors := []inject.Injector{
		&inject.ChaosMesh{Client: live, ProbeImage: defaults.Image, ProbePullPolicy: defaults.ImagePullPolicy, ProbeNamespace: o.DrillNodeFeaturesNamespace},
		&inject.Grid{Client: live},
	}
	services, err := executors(o)
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(services) {
		injectors = append(injectors, &inject.Executor{Name: name, Service: services[name], Reader: live})
	}
	keys := failoverdrill.StoredKey{Client: live, Live: live, Namespace: ownNamespace(o.LeaderElectionNamespace)}
	if len(defaults.Namespaces) > 0 { // without namespaces the operator has no permission
		if err := mgr.Add(keys); err != nil {
			return nil, err
		}
	}
	observer := &witness.Observer{Client: live, Nodes: nodestatus.NewClient(3*time.Second, nil)}
	return &failoverdrill.Reconciler{
		Client: apply.Logged(mgr.GetClient()), Live: mgr.GetAPIReader(), Recorder: messages.Logged(mgr.GetEventRecorder("ordergrid-operator")), Clock: clock.RealClock{},
		Injectors: injectors,
		Witness:   observer,
		Memories:  observer,
		Keys:      keys,
		Versions:  versions(mgr, live),
		Defaults:  defaults,
	}, nil
}

func sortedKeys[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (o Options) drillAllowed() (allow.List, error) {
	return allow.Parse("--drill-allow", o.DrillAllow, failoverdrill.CheckFaultType)
}

// checkDrills names the invalid option about drills.
func (o Options) checkDrills() error {
	if slices.Contains(o.Drill.Namespaces, "") {
		return errors.New(`--drill-namespaces: an empty name; give names of namespaces, or "*"`)
	}
	_, err := o.drillAllowed()
	return err
}

// ownNamespace is the operator's namespace.
func ownNamespace(given string) string {
	if given != "" {
		return given
	}
	if name, err := os.ReadFile(namespaceFile); err == nil {
		return strings.TrimSpace(string(name))
	}
	return corev1.NamespaceDefault // outside a cluster
}

// versions of the components of a drill.
func versions(mgr ctrl.Manager, live client.Reader) func(context.Context) map[string]string {
	return func(ctx context.Context) map[string]string {
		out := map[string]string{"operator": version.String()}
		if d, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient()); err == nil {
			if v, err := d.ServerVersion(); err == nil {
				out["kubernetes"] = v.GitVersion
			}
		}
		var pods corev1.PodList
		if err := live.List(ctx, &pods, client.MatchingLabels{"app.kubernetes.io/component": "chaos-daemon"}); err == nil {
			for i := range pods.Items {
				out["chaos-mesh"] = pods.Items[i].Labels["app.kubernetes.io/version"]
			}
		}
		return out
	}
}
