package inject

import (
	"net"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Directions of Chaos Mesh, seen from the pods that are hit.
const (
	chaosTo   = "to"
	chaosFrom = "from"
	chaosBoth = "both"
)

// networkParts: Chaos Mesh makes a partition with rules for both directions, the others with a queue on the egress of a pod.
func networkParts(f *Fault, s *surroundings) ([]object, error) {
	shape, err := networkShape(f)
	if err != nil {
		return nil, err
	}
	direction, err := networkDirection(f)
	if err != nil {
		return nil, err
	}
	device, err := commonDevice(s, f.Pods, f.Peers)
	switch {
	case err != nil:
		return nil, err
	case device == "" || len(f.Peers) == 0:
		return one(kindNetwork, onPodNetwork(f, shape, direction, device)), nil
	case f.Spec.Type == api.FaultNetworkPartition:
		return one(kindNetwork, towards(f.Pods, f.Peers, s, shape, direction, device)), nil
	}
	// Chaos Mesh knows a target pod by its address on the pod network only. On another network the peers are given by
	// their addresses there, and then it shapes only egress: each direction is an object of its own.
	var out []object
	if direction != chaosFrom {
		out = append(out, object{kindNetwork, "to", towards(f.Pods, f.Peers, s, shape, chaosTo, device)})
	}
	if direction != chaosTo {
		out = append(out, object{kindNetwork, "from", towards(f.Peers, f.Pods, s, clone(shape), chaosTo, device)})
	}
	return out, nil
}

// onPodNetwork lets Chaos Mesh find the peers' addresses. With a device there are no peers.
func onPodNetwork(f *Fault, shape map[string]any, direction, device string) map[string]any {
	spec := selecting(f.Pods, shape)
	spec["direction"] = direction
	if len(f.Peers) > 0 {
		spec["target"] = selector(f.Peers)
	}
	if device != "" {
		spec["device"] = device
	}
	return spec
}

func towards(pods, peers []corev1.Pod, s *surroundings, shape map[string]any, direction, device string) map[string]any {
	spec := selecting(pods, shape)
	var targets []any
	for i := range peers {
		targets = append(targets, s.planes[peers[i].Name].Address.String())
	}
	spec["direction"], spec["externalTargets"], spec["device"] = direction, targets, device
	return spec
}

func clone(spec map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range []string{"action", "duration", "delay", "loss", "duplicate", "corrupt", "bandwidth"} {
		if v, there := spec[key]; there {
			out[key] = v
		}
	}
	return out
}

// commonDevice is the interface that all of the pods use for orders.
func commonDevice(s *surroundings, groups ...[]corev1.Pod) (string, error) {
	var device, of string
	for _, pod := range slices.Concat(groups...) {
		p, known := s.planes[pod.Name]
		switch {
		case !known:
			return "", permanent("the interface of the orders of pod %s is not known", pod.Name)
		case of == "":
			device, of = p.Device, pod.Name
		case p.Device != device:
			return "", permanent("pod %s uses interface %q for orders and pod %s %q: one fault cannot hit both; name one of them in the fault's target", of, device, pod.Name, p.Device)
		}
	}
	return device, nil
}

// networkShape describes the disturbance of the packets.
func networkShape(f *Fault) (map[string]any, error) {
	spec := map[string]any{"action": faultTypes[f.Spec.Type].chaos.Action, "duration": lasting(f)}
	p := f.Spec.Network
	if p == nil {
		p = &api.NetworkFault{}
	}
	part := func(name string, value api.Percentage) error {
		if value == "" {
			return permanent("%s: network.%s is not given; set the part of the packets, such as 10%%", f.Spec.Type, name)
		}
		spec[name] = map[string]any{name: value.Number(), "correlation": p.Correlation.Number()}
		return nil
	}
	switch f.Spec.Type {
	case api.FaultNetworkLoss:
		return spec, part("loss", p.Loss)
	case api.FaultNetworkDuplicate:
		return spec, part("duplicate", p.Duplicate)
	case api.FaultNetworkCorrupt:
		return spec, part("corrupt", p.Corrupt)
	case api.FaultNetworkDelay:
		if p.Latency == nil {
			return nil, permanent("NetworkDelay: network.latency is not given; set the delay, such as 10ms")
		}
		delay := map[string]any{"latency": durationText(p.Latency.Duration), "correlation": p.Correlation.Number()}
		if p.Jitter != nil {
			delay["jitter"] = durationText(p.Jitter.Duration)
		}
		spec["delay"] = delay
	case api.FaultNetworkBandwidth:
		if p.Rate.Value() < 8 {
			return nil, permanent("NetworkBandwidth: network.rate is not given; set the bits per second, such as 10M")
		}
		bits := p.Rate.Value()
		spec["bandwidth"] = map[string]any{"rate": strconv.FormatInt(bits, 10) + "bit", "buffer": burst(bits), "limit": queue(bits)}
	}
	return spec, nil
}

// burst is how many bytes leave at once: what the link carries in 10 ms, at least one packet of the largest size.
func burst(bits int64) int64 { return max(bits/8/100, 64<<10) }

// queue is how many bytes may wait before packets are lost: what the link carries in 50 ms beyond the burst.
func queue(bits int64) int64 { return burst(bits) + max(bits/8/20, 64<<10) }

// networkDirection is both by default. Without peers Chaos Mesh shapes only egress.
func networkDirection(f *Fault) (string, error) {
	asked := api.DirectionBoth
	if f.Spec.Network != nil && f.Spec.Network.Direction != "" {
		asked = f.Spec.Network.Direction
	}
	alone := len(f.Peers) == 0 && f.Spec.Type != api.FaultNetworkPartition
	switch {
	case asked == api.DirectionTo:
		return chaosTo, nil
	case alone:
		return "", permanent("%s: network.direction is %s and target.peer is %s: Chaos Mesh shapes only what a pod sends there; set direction: To, or another peer", f.Spec.Type, asked, api.PeerEverything)
	case asked == api.DirectionFrom:
		return chaosFrom, nil
	}
	return chaosBoth, nil
}

// apiServerParts cuts pods off from the API server: from the address of its Service, which is translated outside the
// pod, and from the servers themselves, where something in the pod translates. Only the pods' egress is dropped,
// because a port can only be matched that way; a request that never arrives has no answer.
func apiServerParts(f *Fault, s *surroundings) ([]object, error) {
	if len(s.apiServer) == 0 {
		return nil, permanent("APIServerPartition: Service default/kubernetes has no address")
	}
	var targets []any
	for _, a := range s.apiServer {
		targets = append(targets, a)
	}
	return one(kindNetwork, selecting(f.Pods, map[string]any{
		"action": "partition", "direction": chaosTo, "externalTargets": targets, "duration": lasting(f),
	})), nil
}

// apiServerTargets are the addresses of the API server as used by a pod.
func apiServerTargets(service *corev1.Service, endpoints []discoveryv1.EndpointSlice) (out []string) {
	for _, ip := range service.Spec.ClusterIPs {
		if a, err := netip.ParseAddr(ip); err == nil && a.Is4() {
			out = append(out, ip)
		}
	}
	for i := range endpoints {
		if endpoints[i].AddressType != discoveryv1.AddressTypeIPv4 {
			continue // Chaos Mesh supports no other
		}
		for _, e := range endpoints[i].Endpoints {
			for _, p := range endpoints[i].Ports {
				for _, a := range e.Addresses {
					if p.Port != nil {
						out = append(out, net.JoinHostPort(a, strconv.Itoa(int(*p.Port))))
					}
				}
			}
		}
	}
	return out
}
