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
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/kube"
	"github.com/ordergrid/ordergrid/grid-node/fabric"
)

const (
	namespace = "ordergrid-fabric"
	network   = namespace + "/fabric"
	device    = "fabric0"
)

var cluster = kube.Cluster{}

// TestFabric runs its parts in order; each needs the one before.
func TestFabric(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Minute)
	defer cancel()
	chart := kube.Chart{Path: "../../charts/ordergrid", Release: "ordergrid", Namespace: "ordergrid-system"}
	must(t, func() (string, error) { return cluster.Install(ctx, chart) })
	t.Cleanup(func() { deleteNamespace(t) })
	apply(ctx, t, "namespace.yaml")
	apply(ctx, t, "networks.yaml")
	for _, p := range []struct {
		name string
		run  func(context.Context, *testing.T)
	}{
		{"a pair on the pool and on the fabric", pairBecomesReady},
		{"pods run on the pool only, copies on different nodes", podsAreOnThePool},
		{"the fabric's addresses are published", addressesAreTheFabrics},
		{"orders and their copies take the fabric only", bytesTakeTheFabric},
		{"the copies are equal, read through tunnels to the fabric's addresses", copiesAreEqual},
		{"a pool that is too small is named", poolTooSmall},
		{"a network that does not exist is named", noNetwork},
		{"without an address a pod does not start", refuses},
		{"a fallback is said", fallsBack},
	} {
		if !t.Run(p.name, func(t *testing.T) { p.run(ctx, t) }) {
			show(ctx, t)
			t.FailNow()
		}
	}
}

func pairBecomesReady(ctx context.Context, t *testing.T) {
	apply(ctx, t, "pair.yaml")
	for _, condition := range []string{api.ConditionSchedulable, api.ConditionAvailable, api.ConditionRedundant, api.ConditionFabricReady} {
		waitFor(ctx, t, "ordergrid", "pair", condition, "True")
	}
	show(ctx, t)
}

func podsAreOnThePool(ctx context.Context, t *testing.T) {
	nodes := map[string]bool{}
	for _, pod := range podsOf(ctx, t, "pair") {
		var node corev1.Node
		if err := cluster.Get(ctx, &node, "node", pod.Spec.NodeName); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s runs on %s, %s=%s", pod.Name, node.Name, api.LabelInfiniBandPCI, node.Labels[api.LabelInfiniBandPCI])
		for label, want := range map[string]string{api.LabelCPUVendor: "Intel", api.LabelCPUAVX512: "true", api.LabelRDMA: "true", api.LabelInfiniBandPCI: "true"} {
			if node.Labels[label] != want {
				t.Errorf("%s has no label %s=%s", node.Name, label, want)
			}
		}
		nodes[node.Name] = true
	}
	if len(nodes) != 2 {
		t.Errorf("two copies on %d nodes", len(nodes))
	}
	var all corev1.NodeList
	if err := cluster.Get(ctx, &all, "nodes"); err != nil {
		t.Fatal(err)
	}
	if len(all.Items) <= len(nodes) {
		t.Error("the cluster has no node outside the pool: where the pods run shows nothing")
	}
}

func addressesAreTheFabrics(ctx context.Context, t *testing.T) {
	published := map[string][]string{} // by pod
	var records api.GridPartitionList
	if err := cluster.Get(ctx, &records, "gridpartitions", "-n", namespace); err != nil {
		t.Fatal(err)
	}
	for _, r := range records.Items {
		if r.Spec.GridRef.Name != "pair" {
			continue
		}
		for _, m := range r.Status.InSync {
			published[m.PodName] = append(published[m.PodName], m.Address)
		}
	}
	for _, pod := range podsOf(ctx, t, "pair") {
		attachments, err := fabric.ParseStatus([]byte(pod.Annotations[api.AnnotationNetworkStatus]))
		if err != nil {
			t.Fatal(err)
		}
		addr, err := fabric.Find(attachments, network, device)
		if err != nil {
			t.Fatal(err)
		}
		want := netip.AddrPortFrom(addr, api.DataPort).String()
		t.Logf("%s: pod network %s, fabric %s, published %v", pod.Name, pod.Status.PodIP, addr, published[pod.Name])
		if addr.String() == pod.Status.PodIP || len(published[pod.Name]) != 2 || slices.ContainsFunc(published[pod.Name], func(a string) bool { return a != want }) {
			t.Errorf("%s publishes %v, want %s in both partitions", pod.Name, published[pod.Name], want)
		}
		info := metric(ctx, t, pod.Name, "ordergrid_node_fabric_info")
		t.Log(strings.Join(info, "\n"))
		if len(info) != 1 || !strings.Contains(info[0], fmt.Sprintf(`address="%s",interface="%s",link="ethernet",network="%s"`, addr, device, network)) {
			t.Errorf("fabric_info is %v", info)
		}
	}
}

func copiesAreEqual(ctx context.Context, t *testing.T) {
	cmd := exec.CommandContext(ctx, "go", "run", "../../cmd/kubectl-ordergrid", "verify", "pair", "-n", namespace)
	out, err := cmd.CombinedOutput()
	t.Logf("$ kubectl ordergrid verify pair\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

func poolTooSmall(ctx context.Context, t *testing.T) {
	apply(ctx, t, "three-copies.yaml")
	text := waitFor(ctx, t, "ordergrid", "three-copies", api.ConditionSchedulable, "False")
	for _, want := range []string{"NodesMissing", "the pods need 3 Kubernetes nodes with ", "the cluster has 2 (", "no label " + api.LabelInfiniBandPCI + "=true"} {
		if !strings.Contains(text, want) {
			t.Errorf("the condition does not say %q", want)
		}
	}
	remove(ctx, t, "three-copies")
}

func noNetwork(ctx context.Context, t *testing.T) {
	apply(ctx, t, "no-network.yaml")
	text := waitFor(ctx, t, "ordergrid", "no-network", api.ConditionFabricReady, "False")
	if !strings.Contains(text, "NetworkMissing NetworkAttachmentDefinition forgotten in namespace "+namespace+" does not exist") {
		t.Error("the condition does not name the network")
	}
	remove(ctx, t, "no-network")
}

func refuses(ctx context.Context, t *testing.T) {
	apply(ctx, t, "refuses.yaml")
	text := waitFor(ctx, t, "ordergrid", "refuses", api.ConditionFabricReady, "False")
	if !strings.Contains(text, "NotAttached") || !strings.Contains(text, "gave interface fabric0 no address that others can reach") {
		t.Error("the condition does not say that there is no address")
	}
	remove(ctx, t, "refuses")
}

func fallsBack(ctx context.Context, t *testing.T) {
	apply(ctx, t, "falls-back.yaml")
	waitFor(ctx, t, "ordergrid", "falls-back", api.ConditionRedundant, "True")
	text := waitFor(ctx, t, "ordergrid", "falls-back", api.ConditionFabricReady, "False")
	if !strings.Contains(text, "PodNetworkInUse 2 of 2 pods") {
		t.Error("the condition does not say that the pod network is used")
	}
	remove(ctx, t, "falls-back")
}

// waitFor waits for a condition's status and returns reason and message.
func waitFor(ctx context.Context, t *testing.T, kind, name, condition, status string) (text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	err := kube.WaitFor(ctx, fmt.Sprintf("%s of %s/%s to be %s", condition, kind, name, status), func(string) {}, func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Run(ctx, "get", kind, name, "-n", namespace, "-o",
			fmt.Sprintf(`jsonpath={range .status.conditions[?(@.type=="%s")]}{.status} {.reason} {.message}{end}`, condition))
		text = out
		return strings.HasPrefix(out, status+" "), condition + ": " + out, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s/%s %s: %s", kind, name, condition, text)
	return text
}

func podsOf(ctx context.Context, t *testing.T, grid string) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := cluster.Get(ctx, &pods, "pods", "-n", namespace, "-l", api.LabelGrid+"="+grid+",app.kubernetes.io/component=grid-node"); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 2 {
		t.Fatalf("%d pods, want 2", len(pods.Items))
	}
	return pods.Items
}

func apply(ctx context.Context, t *testing.T, file string) {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(must(t, func() (string, error) { return cluster.Apply(ctx, manifest) }))
}

func remove(ctx context.Context, t *testing.T, grid string) {
	t.Helper()
	must(t, func() (string, error) {
		return cluster.Run(ctx, "delete", "ordergrid", grid, "-n", namespace, "--wait")
	})
}

func show(ctx context.Context, t *testing.T) {
	out, err := cluster.Run(ctx, "get", "og,gp,op,pods", "-n", namespace, "-o", "wide")
	t.Logf("$ kubectl get og,gp,op,pods -o wide (%v)\n%s", err, out)
}

func deleteNamespace(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if _, err := cluster.Run(ctx, "delete", "namespace", namespace, "--ignore-not-found", "--wait"); err != nil {
		t.Error(err)
	}
}

func must(t *testing.T, f func() (string, error)) string {
	t.Helper()
	out, err := f()
	if err != nil {
		t.Fatal(err)
	}
	return out
}
