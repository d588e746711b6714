package ordergrid

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Clients outside the cluster reach every pod at an address of its own (spec.externalAccess). The operator creates the
// Services, finds their addresses, or those of the Kubernetes nodes, and writes them into the record of partition 0,
// where grid nodes see them at once and return them to clients of the external port.

const (
	reasonAddressesKnown = "AddressesKnown"
	reasonAddressPending = "AddressPending"
	// addressRetry is the interval to look for an address that triggers no reconcile.
	addressRetry = 10 * time.Second
)

// externalState is the addresses of the pods for external clients, and which pods have none, and why.
type externalState struct {
	addresses []api.ExternalAddress
	pending   []string
}

// keepExternal creates and removes Services, and finds addresses. Without spec.externalAccess it removes what was
// created before.
func (r *run) keepExternal(ctx context.Context) error {
	wanted := map[string]bool{}
	if x := r.grid.Spec.ExternalAccess; x != nil {
		found := &externalState{}
		for shard := range r.grid.Spec.Shards {
			for ordinal := range r.copies[shard].pods {
				name := api.PodName(r.grid.Name, shard, ordinal)
				service, err := r.applyExternal(ctx, shard, name)
				if err != nil {
					return err
				}
				if service != nil {
					wanted[service.Name] = true
				}
				r.findAddress(found, shard, name, podNamed(r.pods, name), service)
			}
		}
		r.external = found
	}
	return r.removeExternal(ctx, wanted)
}

// applyExternal returns the pod's Service from the API, nil if it needs none.
func (r *run) applyExternal(ctx context.Context, shard int32, pod string) (*corev1.Service, error) {
	if r.grid.Spec.ExternalAccess.Type == api.ExternalHostPorts {
		return nil, nil
	}
	desired := externalService(r.grid, shard, pod)
	if _, err := r.applier.Apply(ctx, r.grid, desired); err != nil {
		return nil, err
	}
	have := &corev1.Service{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(desired), have)
	if apierrors.IsNotFound(err) { // the cache does not have it yet, and triggers a reconcile when it does
		return desired, nil
	}
	return have, err
}

// removeExternal deletes unneeded Services: of removed pods, or all of them.
func (r *run) removeExternal(ctx context.Context, wanted map[string]bool) error {
	services, err := r.services(ctx)
	if err != nil {
		return err
	}
	for i := range services {
		s := &services[i]
		if s.Labels[api.LabelExternalPod] != "" && !wanted[s.Name] && owned(r.grid, s) {
			if _, err := r.delete(ctx, &corev1.Service{}, s.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// services of the grid, read once per pass.
func (r *run) services(ctx context.Context) ([]corev1.Service, error) {
	if r.servicesRead == nil {
		var list corev1.ServiceList
		if err := r.list(ctx, r.Client, r.grid, &list, client.MatchingLabels{api.LabelGrid: r.grid.Name}); err != nil {
			return nil, fmt.Errorf("list Services: %w", err)
		}
		r.servicesRead = &list
	}
	return r.servicesRead.Items, nil
}

// findAddress adds the pod's address, or why there is none, to the state.
func (r *run) findAddress(found *externalState, shard int32, name string, pod *corev1.Pod, service *corev1.Service) {
	var node *corev1.Node
	if x := r.grid.Spec.ExternalAccess; x.NodeAddress == api.NodeExternalIP && pod != nil && pod.Spec.NodeName != "" && r.KubeNodes != nil {
		node = r.node(pod.Spec.NodeName)
		r.lookWithin(addressRetry) // changed addresses of Kubernetes nodes trigger no reconcile
	}
	address, why := externalAddress(r.grid, shard, name, pod, service, node)
	if why != "" {
		found.pending = append(found.pending, fmt.Sprintf("%s: %s", name, why))
		return
	}
	found.addresses = append(found.addresses, api.ExternalAddress{PodName: name, Address: address})
}

// externalAddress is host:port of a pod, or why there is none. pod may be nil, and so may service (HostPort) and node
// (not needed, or not read).
func externalAddress(grid *api.OrderGrid, shard int32, name string, pod *corev1.Pod, service *corev1.Service, node *corev1.Node) (address, why string) {
	x := grid.Spec.ExternalAccess
	port := int32(api.DataPort)
	if pod != nil {
		listens, at := listensOutside(&pod.Spec)
		if !listens || x.Type == api.ExternalHostPorts && at != hostPort(grid, shard) {
			return "", "it was created before this change of spec.externalAccess or of TLS, and is to be replaced"
		}
	}
	switch x.Type {
	case api.ExternalHostPorts:
		port = hostPort(grid, shard)
	case api.ExternalNodePorts:
		if port = 0; len(service.Spec.Ports) > 0 {
			port = service.Spec.Ports[0].NodePort
		}
		if port == 0 {
			return "", fmt.Sprintf("Service %s has no node port yet", service.Name)
		}
	case api.ExternalLoadBalancers:
	}
	host, why := externalHost(x, name, pod, service, node)
	if why != "" {
		return "", why
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port))), ""
}

func externalHost(x *api.ExternalAccessSpec, name string, pod *corev1.Pod, service *corev1.Service, node *corev1.Node) (host, why string) {
	switch {
	case x.Type == api.ExternalLoadBalancers:
		ingress := service.Status.LoadBalancer.Ingress
		switch {
		case len(ingress) == 0:
			return "", fmt.Sprintf("Service %s has no load balancer yet; if that lasts, `kubectl describe service %s` has the reason; a cluster without a load balancer controller never assigns one", service.Name, service.Name)
		case x.Host != "":
			return strings.ReplaceAll(x.Host, "{pod}", name), ""
		case ingress[0].IP != "":
			return ingress[0].IP, ""
		}
		return ingress[0].Hostname, ""
	case x.Host != "" && !strings.Contains(x.Host, "{node}"):
		return strings.ReplaceAll(x.Host, "{pod}", name), ""
	case pod == nil || pod.Spec.NodeName == "" || pod.DeletionTimestamp == nil && pod.Status.HostIP == "":
		return "", "it is not on a Kubernetes node yet"
	case x.Host != "":
		return strings.NewReplacer("{pod}", name, "{node}", pod.Spec.NodeName).Replace(x.Host), ""
	case x.NodeAddress != api.NodeExternalIP:
		return pod.Status.HostIP, ""
	case node == nil:
		return "", "the operator does not read Kubernetes nodes (chart value preflight), and nodeAddress ExternalIP requires it"
	}
	i := slices.IndexFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeExternalIP })
	if i < 0 {
		return "", fmt.Sprintf("Kubernetes node %s has no ExternalIP; set spec.externalAccess.nodeAddress to InternalIP, or host", pod.Spec.NodeName)
	}
	return node.Status.Addresses[i].Address, ""
}

// recordExternal writes the addresses into the record that has them. Its present content, nil if there is none yet, stays
// while addresses could not be determined.
func (r *run) recordExternal(record, now *api.GridPartition) {
	switch {
	case record.Spec.Partition != 0 || r.grid.Spec.ExternalAccess == nil:
	case r.external != nil:
		record.Spec.ExternalAddresses = r.external.addresses
	case now != nil:
		record.Spec.ExternalAddresses = now.Spec.ExternalAddresses
	}
}

// judgeExternal: every pod has an address for external clients. Without spec.externalAccess there is no such condition.
func judgeExternal(o *observation) judgement {
	if o.grid.Spec.ExternalAccess == nil {
		return judgement{}
	}
	if o.external == nil {
		return judgement{metav1.ConditionUnknown, reasonNotLooked, "the operator could not look for addresses, see condition " + api.ConditionStalled}
	}
	if n := len(o.external.pending); n > 0 {
		return judgement{metav1.ConditionFalse, reasonAddressPending, fmt.Sprintf("%d of %d pods have no address for clients outside the cluster. %s", n, n+len(o.external.addresses), sentences(o.external.pending))}
	}
	return judgement{metav1.ConditionTrue, reasonAddressesKnown, fmt.Sprintf("%s an address for clients outside the cluster, and grid nodes publish it", all(len(o.external.addresses), "pod has", "pods have"))}
}
