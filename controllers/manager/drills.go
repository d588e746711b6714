package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
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
	// What makes faults and looks for them reads without a cache, and reads kinds that may be installed later.
	plain, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, err
	}
	live := apply.Logged(plain)
	defaults := o.Drill
	defaults.Image, defaults.ImagePullPolicy = o.Probe.Image, o.Probe.ImagePullPolicy // the recorder is a command of the probe
	injectors := []inject.Injector{
		&inject.ChaosMesh{Client: live, ProbeImage: defaults.Image, ProbePullPolicy: defaults.ImagePullPolicy, ProbeNamespace: o.DrillNodeFeaturesNamespace},
		&inject.Grid{Client: live},
	}
	services, err := executors(o.DrillExecutors, o.DrillExecutorTokens)
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(services) {
		injectors = append(injectors, &inject.Executor{Name: name, Service: services[name], Reader: live})
	}
	observer := &witness.Observer{Client: live, Nodes: nodestatus.NewClient(3*time.Second, nil)}
	return &failoverdrill.Reconciler{
		Client: apply.Logged(mgr.GetClient()), Live: mgr.GetAPIReader(), Recorder: messages.Logged(mgr.GetEventRecorder("ordergrid-operator")), Clock: clock.RealClock{},
		Injectors: injectors,
		Witness:   observer,
		Memories:  observer,
		Keys:      failoverdrill.StoredKey{Client: live, Live: live, Namespace: ownNamespace(o.LeaderElectionNamespace)},
		Versions:  versions(mgr, live),
		Defaults:  defaults,
	}, nil
}

// executors makes the clients of executors, from NAME=URL and NAME=FILE.
func executors(urls, tokens []string) (map[string]*executor.Client, error) {
	files := map[string]string{}
	for _, t := range tokens {
		name, file, found := strings.Cut(t, "=")
		if !found || name == "" || file == "" {
			return nil, fmt.Errorf("--drill-executor-token: %q is not NAME=FILE", t)
		}
		files[name] = file
	}
	out := map[string]*executor.Client{}
	for _, e := range urls {
		name, url, found := strings.Cut(e, "=")
		switch {
		case !found || name == "" || strings.ContainsAny(name, "/ "):
			return nil, fmt.Errorf("--drill-executor: %q is not NAME=URL", e)
		case out[name] != nil:
			return nil, fmt.Errorf("--drill-executor: %q is given twice; names are in status of drills and have to differ", name)
		case files[name] == "":
			return nil, fmt.Errorf("--drill-executor: %s has no token; give --drill-executor-token=%s=FILE", name, name)
		}
		token, err := os.ReadFile(files[name])
		if err != nil {
			return nil, fmt.Errorf("--drill-executor-token: %s: %w", name, err)
		}
		if out[name], err = executor.NewClient(url, strings.TrimSpace(string(token)), nil); err != nil {
			return nil, fmt.Errorf("--drill-executor: %s: %w", name, err)
		}
		delete(files, name)
	}
	for name := range files {
		return nil, fmt.Errorf("--drill-executor-token: there is no executor %s; give --drill-executor=%s=URL", name, name)
	}
	return out, nil
}

func sortedKeys[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// checkDrills names the option about drills that cannot be right.
func (o Options) checkDrills() error {
	if slices.Contains(o.Drill.Namespaces, "") {
		return errors.New(`--drill-namespaces: an empty name; give names of namespaces, or "*"`)
	}
	return nil
}

// ownNamespace is the one the operator runs in.
func ownNamespace(given string) string {
	if given != "" {
		return given
	}
	if name, err := os.ReadFile(namespaceFile); err == nil {
		return strings.TrimSpace(string(name))
	}
	return corev1.NamespaceDefault // outside a cluster
}

// versions of what takes part in a drill.
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
