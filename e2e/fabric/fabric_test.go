//go:build e2e

// Package fabric is placement and the second network on a real cluster with real Multus: where the pods run, which address
// they publish, which interface the copies of orders travel on, and what the conditions say when nodes or the network are
// missing. `make e2e SUITE=fabric` runs it. It needs two nodes with the labels of spec.placement.pool {Xeon, InfiniBand},
// one without, and a network that Multus makes of a NetworkAttachmentDefinition called fabric without a configuration;
// the local cluster has them (`cluster fabric`).
package fabric

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/fixture"
	"github.com/ordergrid/ordergrid/grid-node/fabric"
)

const (
	namespace = "ordergrid-fabric"
	network   = namespace + "/fabric"
	device    = "fabric0"
)

// TestFabric runs its parts in order; each needs the one before.
func TestFabric(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Minute)
	defer cancel()
	s := fixture.New(t, namespace)
	s.Open(ctx)
	s.Restrict(ctx)
	s.Apply(ctx, "networks.yaml")
	s.Parts(ctx,
		fixture.Part{Name: "a pair on the pool and on the fabric", Run: pairBecomesReady},
		fixture.Part{Name: "pods run on the pool only, copies on different nodes", Run: podsAreOnThePool},
		fixture.Part{Name: "the fabric's addresses are published", Run: addressesAreTheFabrics},
		fixture.Part{Name: "orders and their copies take the fabric only", Run: bytesTakeTheFabric},
		fixture.Part{Name: "the copies are equal, read through tunnels to the fabric's addresses", Run: copiesAreEqual},
		fixture.Part{Name: "a pool that is too small is named", Run: poolTooSmall},
		fixture.Part{Name: "a network that does not exist is named", Run: noNetwork},
		fixture.Part{Name: "without an address a pod does not start", Run: refuses},
		fixture.Part{Name: "a fallback is reported", Run: fallsBack},
	)
}

func pairBecomesReady(ctx context.Context, s *fixture.Fixture) {
	s.Apply(ctx, "pair.yaml")
	for _, condition := range []string{api.ConditionSchedulable, api.ConditionAvailable, api.ConditionRedundant, api.ConditionFabricReady} {
		s.Condition(ctx, "ordergrid", "pair", condition, "True")
	}
	s.Show(ctx)
}

func podsAreOnThePool(ctx context.Context, s *fixture.Fixture) {
	nodes := map[string]bool{}
	for _, pod := range podsOf(ctx, s, "pair") {
		var node corev1.Node
		if err := s.Kube.Get(ctx, &node, "node", pod.Spec.NodeName); err != nil {
			s.Fatal(err)
		}
		s.Logf("%s runs on %s, %s=%s", pod.Name, node.Name, api.LabelInfiniBandPCI, node.Labels[api.LabelInfiniBandPCI])
		for label, want := range map[string]string{api.LabelCPUVendor: "Intel", api.LabelCPUAVX512: "true", api.LabelRDMA: "true", api.LabelInfiniBandPCI: "true"} {
			if node.Labels[label] != want {
				s.Errorf("%s has no label %s=%s", node.Name, label, want)
			}
		}
		nodes[node.Name] = true
	}
	if len(nodes) != 2 {
		s.Errorf("two copies on %d nodes", len(nodes))
	}
	var all corev1.NodeList
	if err := s.Kube.Get(ctx, &all, "nodes"); err != nil {
		s.Fatal(err)
	}
	if len(all.Items) <= len(nodes) {
		s.Error("the cluster has no node outside the pool: the placement of pods is inconclusive")
	}
}

func addressesAreTheFabrics(ctx context.Context, s *fixture.Fixture) {
	published := map[string][]string{} // by pod
	var records api.GridPartitionList
	if err := s.Kube.Get(ctx, &records, "gridpartitions", "-n", namespace); err != nil {
		s.Fatal(err)
	}
	for _, r := range records.Items {
		if r.Spec.GridRef.Name != "pair" {
			continue
		}
		for _, m := range r.Status.InSync {
			published[m.PodName] = append(published[m.PodName], m.Address)
		}
	}
	for _, pod := range podsOf(ctx, s, "pair") {
		attachments, err := fabric.ParseStatus([]byte(pod.Annotations[api.AnnotationNetworkStatus]))
		if err != nil {
			s.Fatal(err)
		}
		addr, err := fabric.Find(attachments, network, device)
		if err != nil {
			s.Fatal(err)
		}
		want := netip.AddrPortFrom(addr, api.DataPort).String()
		s.Logf("%s: pod network %s, fabric %s, published %v", pod.Name, pod.Status.PodIP, addr, published[pod.Name])
		if addr.String() == pod.Status.PodIP || len(published[pod.Name]) != 2 || slices.ContainsFunc(published[pod.Name], func(a string) bool { return a != want }) {
			s.Errorf("%s publishes %v, want %s in both partitions", pod.Name, published[pod.Name], want)
		}
		info := metric(ctx, s, pod.Name, "ordergrid_node_fabric_info")
		s.Log(strings.Join(info, "\n"))
		if len(info) != 1 || !strings.Contains(info[0], fmt.Sprintf(`address="%s",interface="%s",link="ethernet",network="%s"`, addr, device, network)) {
			s.Errorf("fabric_info is %v", info)
		}
	}
}

func copiesAreEqual(ctx context.Context, s *fixture.Fixture) { s.Verify(ctx, "pair") }

func poolTooSmall(ctx context.Context, s *fixture.Fixture) {
	s.Apply(ctx, "three-copies.yaml")
	text := s.Condition(ctx, "ordergrid", "three-copies", api.ConditionSchedulable, "False")
	for _, want := range []string{"NodesMissing", "the pods need 3 Kubernetes nodes with ", "the cluster has 2 (", "no label " + api.LabelInfiniBandPCI + "=true"} {
		if !strings.Contains(text, want) {
			s.Errorf("the condition does not say %q", want)
		}
	}
	remove(ctx, s, "three-copies")
}

func noNetwork(ctx context.Context, s *fixture.Fixture) {
	s.Apply(ctx, "no-network.yaml")
	text := s.Condition(ctx, "ordergrid", "no-network", api.ConditionFabricReady, "False")
	if !strings.Contains(text, "NetworkMissing NetworkAttachmentDefinition forgotten in namespace "+namespace+" does not exist") {
		s.Error("the condition does not name the network")
	}
	remove(ctx, s, "no-network")
}

func refuses(ctx context.Context, s *fixture.Fixture) {
	s.Apply(ctx, "refuses.yaml")
	text := s.Condition(ctx, "ordergrid", "refuses", api.ConditionFabricReady, "False")
	if !strings.Contains(text, "NotAttached") || !strings.Contains(text, "gave interface fabric0 no address that others can reach") {
		s.Error("the condition does not report the missing address")
	}
	remove(ctx, s, "refuses")
}

func fallsBack(ctx context.Context, s *fixture.Fixture) {
	s.Apply(ctx, "falls-back.yaml")
	s.Condition(ctx, "ordergrid", "falls-back", api.ConditionRedundant, "True")
	text := s.Condition(ctx, "ordergrid", "falls-back", api.ConditionFabricReady, "False")
	if !strings.Contains(text, "PodNetworkInUse 2 of 2 pods") {
		s.Error("the condition does not report the use of the pod network")
	}
	remove(ctx, s, "falls-back")
}

func podsOf(ctx context.Context, s *fixture.Fixture, grid string) []corev1.Pod {
	s.Helper()
	var pods corev1.PodList
	if err := s.Kube.Get(ctx, &pods, "pods", "-n", namespace, "-l", api.LabelGrid+"="+grid+",app.kubernetes.io/component=grid-node"); err != nil {
		s.Fatal(err)
	}
	if len(pods.Items) != 2 {
		s.Fatalf("%d pods, want 2", len(pods.Items))
	}
	return pods.Items
}

func remove(ctx context.Context, s *fixture.Fixture, grid string) {
	s.Helper()
	s.Must(s.Kube.Run(ctx, "delete", "ordergrid", grid, "-n", namespace, "--wait"))
}
