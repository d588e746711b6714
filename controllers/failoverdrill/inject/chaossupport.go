package inject

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/probe/nodefeatures"
)

// Labels that Chaos Mesh's chart gives the pods of its parts.
const (
	labelComponent   = "app.kubernetes.io/component"
	componentDaemon  = "chaos-daemon"
	componentManager = "controller-manager"
)

// annotationLacks is on daemons whose image lacks the programs of some kinds, such as the one built for a local
// cluster: a comma-separated list of kinds.
const annotationLacks = "ordergrid.dev/chaos-mesh-lacks"

// need is what a fault of the drill requires of a node.
func need(f *api.DrillFault) nodefeatures.Fault {
	row := faultTypes[f.Type]
	n := row.chaos
	if row.packets {
		n.Peers = f.Target == nil || f.Target.Peer != api.PeerEverything
	}
	return n
}

// Supports implements Injector. The features of nodes are detected by a Job on each.
func (c *ChaosMesh) Supports(ctx context.Context, scope *Scope) (map[api.DrillFaultType]Answer, error) {
	out := map[api.DrillFaultType]Answer{}
	parts, err := c.parts(ctx)
	if err != nil {
		return nil, err
	}
	var ask []api.DrillFault
	for i := range scope.Faults {
		f := &scope.Faults[i]
		answer, err := c.installed(f, parts, scope)
		switch {
		case err != nil:
			return nil, err
		case answer.Verdict == Yes && len(need(f).Needs()) > 0:
			ask = append(ask, *f)
		}
		out[f.Type] = worse(out[f.Type], answer)
	}
	if len(ask) == 0 {
		return out, c.removeFeatureJobs(ctx, scope.Drill)
	}
	reports, err := c.nodeFeatures(ctx, scope)
	if err != nil {
		return nil, err
	}
	asking := false
	for i := range ask {
		answer := able(&ask[i], scope.Nodes, reports)
		asking = asking || answer.Verdict == Asking
		out[ask[i].Type] = worse(out[ask[i].Type], answer)
	}
	if !asking {
		err = c.removeFeatureJobs(ctx, scope.Drill)
	}
	return out, err
}

// worse returns the worse of two answers about faults of one type: one unsupported fault makes the drill impossible.
func worse(a, b Answer) Answer {
	rank := map[Verdict]int{"": 0, Yes: 1, Asking: 2, No: 3}
	if rank[b.Verdict] > rank[a.Verdict] {
		return b
	}
	return a
}

// chaosPods are the running pods of Chaos Mesh.
type chaosPods struct {
	unknown  bool            // the operator has no permission to list
	managers int             // number of ready ones
	daemons  map[string]bool // by node: ready
	lacks    []string        // kinds that some daemon lacks the programs for
}

// parts lists the pods of Chaos Mesh in all namespaces. An operator whose permissions are limited to namespaces cannot.
func (c *ChaosMesh) parts(ctx context.Context) (*chaosPods, error) {
	p := &chaosPods{daemons: map[string]bool{}}
	var daemons, managers corev1.PodList
	err := c.Client.List(ctx, &daemons, client.MatchingLabels{labelComponent: componentDaemon})
	if apierrors.IsForbidden(err) {
		return &chaosPods{unknown: true}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for Chaos Mesh's daemons: %w", err)
	}
	for i := range daemons.Items {
		p.lacks = append(p.lacks, strings.Split(daemons.Items[i].Annotations[annotationLacks], ",")...)
		p.daemons[daemons.Items[i].Spec.NodeName] = p.daemons[daemons.Items[i].Spec.NodeName] || ready(&daemons.Items[i])
	}
	if len(daemons.Items) == 0 {
		return p, nil
	}
	err = c.Client.List(ctx, &managers, client.InNamespace(daemons.Items[0].Namespace), client.MatchingLabels{labelComponent: componentManager})
	if err != nil {
		return nil, fmt.Errorf("look for Chaos Mesh's controller manager: %w", err)
	}
	for i := range managers.Items {
		if ready(&managers.Items[i]) {
			p.managers++
		}
	}
	return p, nil
}

func ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

const (
	installIt    = "install Chaos Mesh 2.7 or later (https://chaos-mesh.org/docs/production-installation-using-helm/)"
	orAnExecutor = ", or start the operator with an executor that offers the type"
)

// installed reports whether the parts that inject the fault run.
func (c *ChaosMesh) installed(f *api.DrillFault, p *chaosPods, scope *Scope) (Answer, error) {
	n := faultTypes[f.Type].chaos
	if n.Kind == "" {
		return Answer{No, "Chaos Mesh has no fault of type " + string(f.Type)}, nil
	}
	if n.Kind == kindIO && scope.Grid != nil && len(scope.Grid.FileSinks()) == 0 {
		return Answer{No, fmt.Sprintf("%s concerns the files of a sink, and OrderGrid %s has none (spec.sinks); leave the fault out", f.Type, scope.Grid.Name)}, nil
	}
	_, err := c.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: chaosGroup.Group, Kind: n.Kind}, chaosGroup.Version)
	switch {
	case meta.IsNoMatchError(err):
		return Answer{No, fmt.Sprintf("Chaos Mesh is not installed: there is no kind %s in %s; %s%s", n.Kind, chaosGroup, installIt, orAnExecutor)}, nil
	case err != nil:
		return Answer{}, err
	}
	switch wrong := shape(f); {
	case wrong != "":
		return Answer{No, wrong}, nil
	case p.unknown:
		return Answer{Verdict: Yes}, nil
	case len(p.daemons) == 0:
		return Answer{No, fmt.Sprintf("Chaos Mesh's CRDs exist, but no pod with the label %s=%s runs: it is not installed, or being removed; %s%s", labelComponent, componentDaemon, installIt, orAnExecutor)}, nil
	case p.managers == 0:
		return Answer{No, "no pod of Chaos Mesh's controller manager is ready: injected faults would not be recovered; check Deployment chaos-controller-manager"}, nil
	case slices.Contains(p.lacks, n.Kind):
		return Answer{No, fmt.Sprintf("the image of Chaos Mesh's daemon lacks the programs for %s, according to its annotation %s; use the image of a release%s", n.Kind, annotationLacks, orAnExecutor)}, nil
	case n.Action == "pod-kill" || n.Action == "pod-failure":
		return Answer{Verdict: Yes}, nil // the API server does it
	}
	var without []string
	for _, node := range scope.Nodes {
		if !p.daemons[node] {
			without = append(without, node)
		}
	}
	if len(without) > 0 {
		return Answer{No, fmt.Sprintf("no chaos-daemon is ready on %s; check DaemonSet chaos-daemon, its nodeSelector and tolerations", strings.Join(without, ", "))}, nil
	}
	return Answer{Verdict: Yes}, nil
}

// shape builds the fault's objects for some pod, and returns what Chaos Mesh does not support.
func shape(f *api.DrillFault) (wrong string) {
	somewhere := Plane{Address: netip.AddrFrom4([4]byte{192, 0, 2, 1})} // an address for documentation
	some := Fault{Spec: *f, Pods: make([]corev1.Pod, 1), Grid: &api.OrderGrid{}}
	some.Pods[0].Name = "pod"
	around := surroundings{planes: map[string]Plane{"pod": somewhere, "peer": somewhere}, apiServer: []string{"192.0.2.1"}, volume: "/sink"}
	if need(f).Peers {
		some.Peers = make([]corev1.Pod, 1)
		some.Peers[0].Name = "peer"
	}
	if _, err := chaosParts(&some, &around); err != nil {
		return err.Error()
	}
	return ""
}

// able reports whether the kernels of all nodes support a fault.
func able(f *api.DrillFault, nodes []string, reports map[string]featureReport) Answer {
	var waiting, lacks []string
	for _, node := range nodes {
		r := reports[node]
		switch {
		case r.problem != "":
			lacks = append(lacks, r.problem)
		case r.report == nil:
			waiting = append(waiting, node)
		default:
			for _, l := range r.report.Lacks(need(f)) {
				lacks = append(lacks, l.String())
			}
		}
	}
	switch {
	case len(lacks) > 0:
		return Answer{No, clip(strings.Join(lacks, "; "), 1000)}
	case len(waiting) > 0:
		return Answer{Asking, "the features of the kernels of " + strings.Join(waiting, ", ") + " are being detected"}
	}
	return Answer{Verdict: Yes}
}
