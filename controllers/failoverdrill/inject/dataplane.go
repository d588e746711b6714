package inject

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// networkStatus is the status of a pod's interfaces by a multi-network plugin such as Multus.
const networkStatus = "k8s.v1.cni.cncf.io/network-status"

// Plane is the network of a pod's orders: a network fault elsewhere has no effect.
type Plane struct {
	// Address of the pod there.
	Address netip.Addr
	// Device is the name of the interface in the pod, and Network the name of its network in the plugin. Empty: the
	// cluster's pod network.
	Device, Network string
}

// planes returns the network of orders for every pod and peer: at the address in the partitions' records, on the
// interface with this address. A peer without a record, a client, is on the network of the pods.
func planes(ctx context.Context, c client.Reader, f *Fault) (map[string]Plane, error) {
	var records api.GridPartitionList
	if err := c.List(ctx, &records, client.InNamespace(f.Grid.Namespace)); err != nil {
		return nil, err
	}
	out := make(map[string]Plane, len(f.Pods)+len(f.Peers))
	network := ""
	for i := range f.Pods {
		p, err := PlaneOf(&f.Pods[i], addresses(records.Items, f.Grid.Name, f.Pods[i].Name), "")
		if err != nil {
			return nil, err
		}
		out[f.Pods[i].Name], network = p, p.Network
	}
	for i := range f.Peers {
		p, err := PlaneOf(&f.Peers[i], addresses(records.Items, f.Grid.Name, f.Peers[i].Name), network)
		if err != nil {
			return nil, err
		}
		out[f.Peers[i].Name] = p
	}
	return out, nil
}

// addresses of a pod in the records of a grid.
func addresses(records []api.GridPartition, grid, pod string) (out []netip.Addr) {
	for i := range records {
		if records[i].Spec.GridRef.Name != grid {
			continue
		}
		members := records[i].Status.InSync
		if p := records[i].Status.Primary; p != nil {
			members = append(slices.Clone(members), *p)
		}
		for _, m := range members {
			a, err := netip.ParseAddrPort(m.Address)
			if m.PodName == pod && err == nil && !slices.Contains(out, a.Addr()) {
				out = append(out, a.Addr())
			}
		}
	}
	return out
}

// PlaneOf finds the interface of a pod that has one of the given addresses; an address that the pod does not have is of
// an earlier process. Without any, it is the interface on the network of that name; a pod of several networks without
// further information is an error.
func PlaneOf(pod *corev1.Pod, given []netip.Addr, network string) (Plane, error) {
	own := podAddresses(pod)
	for _, a := range given {
		if slices.Contains(own, a) {
			return Plane{Address: a}, nil
		}
	}
	interfaces, err := interfacesOf(pod)
	if err != nil {
		return Plane{}, err
	}
	var others int
	for _, i := range interfaces {
		for _, a := range i.IPs {
			if slices.Contains(given, a) || network != "" && i.Name == network {
				return Plane{Address: a, Device: i.Interface, Network: i.Name}, nil
			}
		}
		if !i.Default {
			others++
		}
	}
	switch {
	case len(own) == 0:
		return Plane{}, fmt.Errorf("pod %s has no address yet", pod.Name)
	case others > 0 || network != "":
		return Plane{}, fmt.Errorf("the network of the orders of pod %s is not known: its annotation %s has none of the addresses %v that the partitions' records give it, nor an interface on network %q; wait until the pod is in sync",
			pod.Name, networkStatus, given, network)
	}
	return Plane{Address: own[0]}, nil
}

func podAddresses(pod *corev1.Pod) (out []netip.Addr) {
	texts := []string{pod.Status.PodIP}
	for _, ip := range pod.Status.PodIPs {
		texts = append(texts, ip.IP)
	}
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// networkInterface is an entry of the annotation, which a plugin writes without validation.
type networkInterface struct {
	Name      string       `json:"name"`
	Interface string       `json:"interface"`
	IPs       []netip.Addr `json:"ips"`
	Default   bool         `json:"default"`
}

func interfacesOf(pod *corev1.Pod) ([]networkInterface, error) {
	text := pod.Annotations[networkStatus]
	if text == "" {
		return nil, nil
	}
	var out []networkInterface
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("pod %s: annotation %s is not a list of interfaces with name, interface and ips: %w", pod.Name, networkStatus, err)
	}
	return out, nil
}
