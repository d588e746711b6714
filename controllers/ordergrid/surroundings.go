package ordergrid

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

// What a grid needs of the cluster and the operator does not create: Kubernetes nodes, and the network of spec.fabric.

// readNodes reads the Kubernetes nodes without copying thousands of them.
func (r *run) readNodes(ctx context.Context) error {
	if r.KubeNodes == nil {
		return nil
	}
	var list corev1.NodeList
	if err := r.KubeNodes.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Kubernetes nodes: %w", err)
	}
	r.nodes, r.nodeNamed = list.Items, make(map[string]*corev1.Node, len(list.Items))
	for i := range r.nodes {
		r.nodeNamed[r.nodes[i].Name] = &r.nodes[i]
	}
	return nil
}

// checkPlaces checks the pods against the Kubernetes nodes.
func (r *run) checkPlaces(context.Context) error {
	if r.nodesRead = r.KubeNodes != nil; r.nodesRead {
		r.shortage = preflight(r.grid, &r.templates[0], r.nodes)
	}
	return nil
}

var networkKind = schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"}

// checkNetwork looks for the network while a pod is not on it; pods wait for it silently. It is empty if the network
// exists or cannot be read.
func (r *Reconciler) checkNetwork(ctx context.Context, o *observation) string {
	if f := judgeFabric(o); f.status == "" || f.status == metav1.ConditionTrue {
		return ""
	}
	key := client.ObjectKey{Namespace: objects.NetworkNamespace(o.grid), Name: o.grid.Spec.Fabric.Network.Name}
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(networkKind)
	switch err := r.Live.Get(ctx, key, definition); {
	case meta.IsNoMatchError(err):
		return "the cluster has no kind NetworkAttachmentDefinition: install Multus, which provides the networks of spec.fabric"
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("NetworkAttachmentDefinition %s in namespace %s does not exist: create it, or set spec.fabric.network to one of `kubectl get network-attachment-definitions -A`", key.Name, key.Namespace)
	}
	return ""
}

// StripNode keeps of a cached Kubernetes node what preflight uses. In a cluster of thousands the rest, images above
// all, would be most of the operator's memory.
func StripNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels},
		Spec:       corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status:     corev1.NodeStatus{Allocatable: node.Status.Allocatable, Addresses: node.Status.Addresses},
	}, nil
}

// StripPod keeps of a cached pod what the operator uses: of spec, the node it is on, its stage of TLS, its external
// address, and its functions. The rest, volumes and containers above all, would be a good part of the operator's memory with thousands of
// pods; what is kept is shared by all pods.
func StripPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	stripped := &corev1.Pod{ObjectMeta: pod.ObjectMeta, Status: pod.Status, Spec: corev1.PodSpec{
		NodeName: pod.Spec.NodeName, Containers: strippedContainers[stageOf(&pod.Spec)],
	}}
	if listens, port := listensOutside(&pod.Spec); listens {
		args := []string{flagExternal}
		for _, c := range stripped.Spec.Containers {
			args = append(args, c.Args...)
		}
		stripped.Spec.Containers = []corev1.Container{{Name: containerName, Args: args, Ports: []corev1.ContainerPort{{Name: portExternal, HostPort: port}}}}
	}
	if functions := functionArgsOf(&pod.Spec); len(functions) > 0 {
		kept := corev1.Container{Name: containerName}
		if len(stripped.Spec.Containers) > 0 {
			kept = stripped.Spec.Containers[0]
		}
		kept.Args = slices.Concat(kept.Args, functions)
		stripped.Spec.Containers = []corev1.Container{kept}
	}
	stripped.ManagedFields = nil
	return stripped, nil
}

// strippedContainers are the containers kept by StripPod, by stage.
var strippedContainers = [...][]corev1.Container{
	stagePlain:  nil,
	stageAccept: {{Name: containerName, Args: transitionArgs(stageAccept)}},
	stageDial:   {{Name: containerName, Args: transitionArgs(stageDial)}},
	stageTLS:    {{Name: containerName, Args: []string{flagCert}}},
}

// nodeMatters accepts changes that may affect where pods fit. A node's periodic status does not.
var nodeMatters = predicate.Funcs{
	UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*corev1.Node)
		after, ok2 := e.ObjectNew.(*corev1.Node)
		return !ok1 || !ok2 || !maps.Equal(before.Labels, after.Labels) || before.Spec.Unschedulable != after.Spec.Unschedulable ||
			!slices.Equal(taintsOf(before), taintsOf(after)) || !equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable)
	},
}

func taintsOf(node *corev1.Node) (list []string) {
	for i := range node.Spec.Taints {
		list = append(list, node.Spec.Taints[i].ToString())
	}
	return list
}

// gridsOfNode are the grids affected by a Kubernetes node: those it may help, and those with a pod on it, which may
// have to be replaced. The others, perhaps a thousand, are not reconciled.
func (r *Reconciler) gridsOfNode(ctx context.Context, node client.Object) []reconcile.Request {
	requests := r.gridsThatWait(ctx, node)
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return requests
	}
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName != node.GetName() {
			continue
		}
		for _, request := range gridOfPod(ctx, &pods.Items[i]) {
			if !slices.Contains(requests, request) {
				requests = append(requests, request)
			}
		}
	}
	return requests
}

// gridsThatWait are the grids that a Kubernetes node may help.
func (r *Reconciler) gridsThatWait(ctx context.Context, _ client.Object) (requests []reconcile.Request) {
	var grids api.OrderGridList
	if err := r.Client.List(ctx, &grids, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has not started; every grid is reconciled when it has
	}
	for i := range grids.Items {
		grid := &grids.Items[i]
		if !meta.IsStatusConditionTrue(grid.Status.Conditions, api.ConditionSchedulable) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(grid)})
		}
	}
	return requests
}
