package ordergrid

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

func TestExternalAddress(t *testing.T) {
	listening := func(hostPort int32) corev1.PodSpec {
		return corev1.PodSpec{NodeName: "xeon-1", Containers: []corev1.Container{{Name: containerName, Args: []string{flagExternal, ":7401"},
			Ports: []corev1.ContainerPort{{Name: portExternal, HostPort: hostPort}}}}}
	}
	at := func(hostPort int32) *corev1.Pod {
		return &corev1.Pod{Spec: listening(hostPort), Status: corev1.PodStatus{HostIP: "10.0.0.11"}}
	}
	placed := at(0)
	unplaced := at(17401)
	unplaced.Spec.NodeName, unplaced.Status.HostIP = "", ""
	before := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "xeon-1", Containers: []corev1.Container{{Name: containerName}}}, Status: corev1.PodStatus{HostIP: "10.0.0.11"}}
	node := &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.11"}, {Type: corev1.NodeExternalIP, Address: "2001:db8::11"}}}}
	service := func(port int32, ingress ...corev1.LoadBalancerIngress) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "rtd-s1-0-external"}}
		s.Spec.Ports = []corev1.ServicePort{{Port: 7400, NodePort: port}}
		s.Status.LoadBalancer.Ingress = ingress
		return s
	}
	lb, np, hp := api.ExternalLoadBalancers, api.ExternalNodePorts, api.ExternalHostPorts
	for name, c := range map[string]struct {
		x       api.ExternalAccessSpec
		pod     *corev1.Pod
		service *corev1.Service
		node    *corev1.Node
		want    string
		why     string
	}{
		"a load balancer's IP":            {x: api.ExternalAccessSpec{Type: lb}, pod: placed, service: service(31000, corev1.LoadBalancerIngress{IP: "192.0.2.7"}), want: "192.0.2.7:7400"},
		"a load balancer's name":          {x: api.ExternalAccessSpec{Type: lb}, pod: placed, service: service(31000, corev1.LoadBalancerIngress{Hostname: "lb7.example.com"}), want: "lb7.example.com:7400"},
		"a load balancer of a future pod": {x: api.ExternalAccessSpec{Type: lb}, service: service(31000, corev1.LoadBalancerIngress{IP: "192.0.2.7"}), want: "192.0.2.7:7400"},
		"a name for a load balancer":      {x: api.ExternalAccessSpec{Type: lb, Host: "{pod}.example.com"}, pod: placed, service: service(31000, corev1.LoadBalancerIngress{IP: "192.0.2.7"}), want: "rtd-s1-0.example.com:7400"},
		"no load balancer":                {x: api.ExternalAccessSpec{Type: lb, Host: "{pod}.example.com"}, pod: placed, service: service(31000), why: "Service rtd-s1-0-external has no load balancer yet"},
		"a node port":                     {x: api.ExternalAccessSpec{Type: np}, pod: placed, service: service(31000), want: "10.0.0.11:31000"},
		"a node port, ExternalIP":         {x: api.ExternalAccessSpec{Type: np, NodeAddress: api.NodeExternalIP}, pod: placed, service: service(31000), node: node, want: "[2001:db8::11]:31000"},
		"a node without ExternalIP":       {x: api.ExternalAccessSpec{Type: np, NodeAddress: api.NodeExternalIP}, pod: placed, service: service(31000), node: &corev1.Node{}, why: "Kubernetes node xeon-1 has no ExternalIP"},
		"nodes are not read":              {x: api.ExternalAccessSpec{Type: np, NodeAddress: api.NodeExternalIP}, pod: placed, service: service(31000), why: "chart value preflight"},
		"no node port yet":                {x: api.ExternalAccessSpec{Type: np}, pod: placed, service: service(0), why: "has no node port yet"},
		"one name for all node ports":     {x: api.ExternalAccessSpec{Type: np, Host: "trades.example.com"}, service: service(31000), want: "trades.example.com:31000"},
		"a host port":                     {x: api.ExternalAccessSpec{Type: hp}, pod: at(17401), want: "10.0.0.11:17401"},
		"a host port from 20000":          {x: api.ExternalAccessSpec{Type: hp, HostPort: &api.ExternalHostPort{First: 20000}}, pod: at(20001), want: "10.0.0.11:20001"},
		"a host port by the node's name":  {x: api.ExternalAccessSpec{Type: hp, Host: "{node}.dc1.example.com"}, pod: at(17401), want: "xeon-1.dc1.example.com:17401"},
		"a host port of no node":          {x: api.ExternalAccessSpec{Type: hp}, pod: unplaced, why: "it is not on a Kubernetes node yet"},
		"a pod that does not listen":      {x: api.ExternalAccessSpec{Type: np}, pod: before, service: service(31000), why: "is to be replaced"},
		"one behind a load balancer":      {x: api.ExternalAccessSpec{Type: lb}, pod: before, service: service(31000, corev1.LoadBalancerIngress{IP: "192.0.2.7"}), why: "is to be replaced"},
		"a pod without a host port":       {x: api.ExternalAccessSpec{Type: hp}, pod: placed, why: "is to be replaced"},
		"another host port":               {x: api.ExternalAccessSpec{Type: hp, HostPort: &api.ExternalHostPort{First: 20000}}, pod: at(17401), why: "is to be replaced"},
		"a host port of no pod":           {x: api.ExternalAccessSpec{Type: hp}, why: "it is not on a Kubernetes node yet"},
	} {
		t.Run(name, func(t *testing.T) {
			grid := pairGrid()
			grid.Spec.ExternalAccess = &c.x
			got, why := externalAddress(grid, 1, "rtd-s1-0", c.pod, c.service, c.node)
			if got != c.want || (c.why == "") != (why == "") || !strings.Contains(why, c.why) {
				t.Errorf("got %q, %q; want %q, %q", got, why, c.want, c.why)
			}
		})
	}
}

func (b *bench) externalServices() (names []string) {
	b.t.Helper()
	var list corev1.ServiceList
	if err := b.client.List(b.t.Context(), &list, client.InNamespace(b.namespace), client.HasLabels{api.LabelExternalPod}); err != nil {
		b.t.Fatal(err)
	}
	for _, s := range list.Items {
		names = append(names, s.Name)
	}
	return names
}

func (b *bench) wantExternal(grid *api.OrderGrid, status metav1.ConditionStatus, reason, text string, addresses ...string) {
	b.t.Helper()
	c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionExternalAccessReady)
	if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) {
		b.t.Fatalf("ExternalAccessReady is %+v, want %s %s with %q", c, status, reason, text)
	}
	for where, list := range map[string][]api.ExternalAddress{"status": grid.Status.ExternalAddresses, "record 0": b.record(grid, 0, 0).Spec.ExternalAddresses} {
		var got []string
		for _, a := range list {
			got = append(got, a.PodName+"="+a.Address)
		}
		if fmt.Sprint(got) != fmt.Sprint(addresses) {
			b.t.Errorf("%s has %v, want %v", where, got, addresses)
		}
	}
	if other := b.record(grid, 1, 0).Spec.ExternalAddresses; len(other) > 0 {
		b.t.Errorf("record 1 has %v, want none: record 0 does", other)
	}
}

func (b *bench) record(grid *api.OrderGrid, shard, index int32) *api.GridPartition {
	b.t.Helper()
	p := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Namespace: grid.Namespace, Name: api.PartitionName(grid.Name, numberOf(grid, shard, index))}}
	b.get(p)
	return p
}

// TestExternalAccessOnAndOff: Services of a real API server get addresses one after the other, and are deleted when
// they are no longer needed.
func TestExternalAccessOnAndOff(t *testing.T) {
	b := newBench(t)
	spec := securedSpec(api.TLSSpec{})
	spec.Shards = 2
	grid := b.create("rtd", spec)
	b.run(grid)
	if names := b.externalServices(); len(names) > 0 || meta.FindStatusCondition(grid.Status.Conditions, api.ConditionExternalAccessReady) != nil {
		t.Fatalf("without external access there are %v and %+v", names, grid.Status.Conditions)
	}

	grid.Spec.ExternalAccess = &api.ExternalAccessSpec{Type: api.ExternalLoadBalancers}
	b.write(grid)
	b.run(grid)
	b.wantExternal(grid, metav1.ConditionFalse, "AddressPending", "4 of 4 pods have no address for clients outside the cluster. rtd-s0-0: Service rtd-s0-0-external has no load balancer yet")
	var addresses []string
	for i, pod := range []string{"rtd-s0-0", "rtd-s0-1", "rtd-s1-0", "rtd-s1-1"} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: pod + "-external"}}
		b.get(s)
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: fmt.Sprint("192.0.2.", i+1)}}
		if err := b.client.Status().Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, fmt.Sprintf("%s=192.0.2.%d:7400", pod, i+1))
		b.run(grid)
		if i < 3 {
			b.wantExternal(grid, metav1.ConditionFalse, "AddressPending", fmt.Sprintf("%d of 4", 3-i), addresses...)
		}
	}
	b.wantExternal(grid, metav1.ConditionTrue, "AddressesKnown", "all 4 pods", addresses...)
	if writes := b.run(grid); len(writes) > 0 {
		t.Errorf("a pass without anything to do wrote %v", writes)
	}

	// Another type changes the same Services; node ports lead to the pods' Kubernetes nodes.
	grid.Spec.ExternalAccess = &api.ExternalAccessSpec{Type: api.ExternalNodePorts, Host: "grid.example.com", TrafficPolicy: api.TrafficCluster}
	b.write(grid)
	b.run(grid)
	b.run(grid)
	if c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionExternalAccessReady); c.Status != metav1.ConditionTrue || !strings.HasPrefix(grid.Status.ExternalAddresses[3].Address, "grid.example.com:3") {
		t.Errorf("with node ports: %+v, %+v", c, grid.Status.ExternalAddresses)
	}

	// A foreign Service of the same name is neither taken over nor removed.
	mine := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "mine", Labels: map[string]string{api.LabelGrid: "rtd", api.LabelExternalPod: "rtd-s0-0"}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 7400}}}}
	if err := b.client.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	grid.Spec.ExternalAccess = nil
	b.write(grid)
	b.run(grid)
	if names := fmt.Sprint(b.externalServices()); names != "[mine]" {
		t.Errorf("after it was switched off there are %s, want [mine]", names)
	}
	if c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionExternalAccessReady); c != nil || len(grid.Status.ExternalAddresses)+len(b.record(grid, 0, 0).Spec.ExternalAddresses) > 0 {
		t.Errorf("after it was switched off: %+v, %+v", c, grid.Status.ExternalAddresses)
	}
}

// TestExternalAccessTakesTLS: at creation or as a change.
func TestExternalAccessTakesTLS(t *testing.T) {
	b := newBench(t)
	grid := b.create("plain", api.OrderGridSpec{Security: api.SecuritySpec{Insecure: api.InsecureAccept}})
	grid.Spec.ExternalAccess = &api.ExternalAccessSpec{Type: api.ExternalNodePorts}
	if err := b.client.Update(t.Context(), grid); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "needs spec.security.tls") {
		t.Errorf("got %v, want that it needs TLS", err)
	}
}
