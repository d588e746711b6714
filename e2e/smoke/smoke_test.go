//go:build e2e

// Package smoke is the main job on a real cluster: install, grid, probe, verify, delete. `make e2e SUITE=smoke` runs it; it needs
// KUBECONFIG, kubectl and helm in $PATH, and the images on the nodes.
package smoke

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/audit"
	"github.com/ordergrid/ordergrid/e2e/kube"
)

const namespace = "ordergrid-smoke"

var (
	cluster     = kube.Cluster{}
	gridApplied time.Time
)

// gridNodes is how the API server knows the grid's pods.
const gridNodes = "system:serviceaccount:" + namespace + ":three-s"

// TestSmoke runs its parts in order; each needs the one before.
func TestSmoke(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	chart := kube.Chart{Path: "../../charts/ordergrid", Release: "ordergrid", Namespace: "ordergrid-system"}
	must(t, func() (string, error) { return cluster.Install(ctx, chart) })
	t.Cleanup(func() { deleteNamespace(t) })
	apply(ctx, t, "namespace.yaml")

	parts := []struct {
		name string
		run  func(context.Context, *testing.T)
	}{
		{"three shards of two become available and redundant", gridBecomesReady},
		{"one primary per pod", onePrimaryPerPod},
		{"the operator writes nothing when nothing changes", operatorIsQuiet},
		{"a probe runs and no order is lost", probeRuns},
		{"the replicas' logs are equal byte for byte", logsAreEqual},
		{"deleting the grid leaves nothing behind", deletionLeavesNothing},
	}
	for _, p := range parts {
		if !t.Run(p.name, func(t *testing.T) { p.run(ctx, t) }) {
			show(ctx, t)
			t.FailNow()
		}
	}
}

func gridBecomesReady(ctx context.Context, t *testing.T) {
	gridApplied = time.Now()
	apply(ctx, t, "three-shards.yaml")
	waitForCondition(ctx, t, "ordergrid", "three", "Available", 3*time.Minute)
	waitForCondition(ctx, t, "ordergrid", "three", "Redundant", time.Minute)
	show(ctx, t)
}

func onePrimaryPerPod(ctx context.Context, t *testing.T) {
	out := must(t, func() (string, error) {
		return cluster.Run(ctx, "get", "gridpartitions", "-n", namespace, "-o", "jsonpath={.items[*].status.primary.podName}")
	})
	primaries := strings.Fields(out)
	slices.Sort(primaries)
	want := []string{"three-s0-0", "three-s0-1", "three-s1-0", "three-s1-1", "three-s2-0", "three-s2-1"}
	if !slices.Equal(primaries, want) {
		t.Fatalf("primaries are %v, want each pod once: %v", primaries, want)
	}
}

// operatorIsQuiet looks at what the API server recorded of the operator over a span in which nobody changed anything.
func operatorIsQuiet(ctx context.Context, t *testing.T) {
	log := auditLog(t)
	begin := time.Now()
	sleep(ctx, t, 20*time.Second)
	requests, err := audit.Between(log, "system:serviceaccount:ordergrid-system:", begin, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	requests = slices.DeleteFunc(requests, func(q audit.Request) bool {
		// The leader's lease is renewed for as long as the operator lives.
		return q.Verb == "get" || q.Verb == "list" || q.Verb == "watch" || strings.Contains(q.RequestURI, "/leases/")
	})
	t.Logf("writes by the operator in 20 s besides its leader lease: %d\n%s", len(requests), audit.Summary(requests))
	if len(requests) > 0 {
		t.Fatal("the operator writes although nothing changed")
	}
}

func probeRuns(ctx context.Context, t *testing.T) {
	apply(ctx, t, "probe.yaml")
	begin := time.Now()
	waitForCondition(ctx, t, "orderprobe", "smoke", "Complete", 4*time.Minute)
	end := time.Now()
	t.Log("\n" + must(t, func() (string, error) {
		return cluster.Run(ctx, "get", "configmap", "smoke-report", "-n", namespace, "-o", `jsonpath={.data.table\.txt}`)
	}))
	verdict := must(t, func() (string, error) {
		return cluster.Run(ctx, "get", "orderprobe", "smoke", "-n", namespace, "-o", "jsonpath={.status.verdict}: {.status.verdictReason}")
	})
	t.Logf("verdict %s", verdict)
	if !strings.HasPrefix(verdict, "Valid") && !strings.HasPrefix(verdict, "Invalid") {
		t.Fatal("an order was lost, duplicated, or there was a gap")
	}
	log := auditLog(t)
	if seen, err := audit.Between(log, gridNodes, gridApplied, begin); err != nil || len(seen) == 0 {
		t.Fatalf("the audit log shows no request of a grid node even from when they claimed their partitions (%v): it cannot show that there are none now", err)
	}
	requests, err := audit.Between(log, gridNodes, begin, end)
	if err != nil {
		t.Fatal(err)
	}
	requests = slices.DeleteFunc(requests, func(q audit.Request) bool { return q.Verb == "watch" }) // reopened every few minutes, no orders involved
	t.Logf("API requests by the grid nodes during the %s of the probe: %d\n%s", end.Sub(begin).Round(time.Second), len(requests), audit.Summary(requests))
	if len(requests) > 0 {
		t.Fatal("grid nodes called the API server while nothing but orders happened")
	}
}

func logsAreEqual(ctx context.Context, t *testing.T) {
	cmd := exec.CommandContext(ctx, "go", "run", "../../cmd/kubectl-ordergrid", "verify", "three", "-n", namespace)
	out, err := cmd.CombinedOutput()
	t.Logf("$ kubectl ordergrid verify three\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

func deletionLeavesNothing(ctx context.Context, t *testing.T) {
	must(t, func() (string, error) {
		return cluster.Run(ctx, "delete", "ordergrid/three", "orderprobe/smoke", "-n", namespace, "--wait")
	})
	const kinds = "statefulsets,pods,services,endpointslices,poddisruptionbudgets,serviceaccounts,roles,rolebindings,configmaps,jobs,gridpartitions,persistentvolumeclaims,controllerrevisions"
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	err := kube.WaitFor(ctx, "an empty namespace", func(s string) { t.Log(s) }, func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Run(ctx, "get", kinds, "-n", namespace, "-o", "name")
		left := slices.DeleteFunc(strings.Fields(out), func(name string) bool {
			return name == "serviceaccount/default" || name == "configmap/kube-root-ca.crt" // every namespace has them
		})
		return len(left) == 0, "left: " + strings.Join(left, " "), err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func waitForCondition(ctx context.Context, t *testing.T, kind, name, condition string, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	what := fmt.Sprintf("%s/%s being %s", kind, name, condition)
	err := kube.WaitFor(ctx, what, func(s string) { t.Log(s) }, func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Run(ctx, "get", kind, name, "-n", namespace, "-o",
			fmt.Sprintf(`jsonpath={range .status.conditions[?(@.type=="%s")]}{.status} {.reason} {.message}{end}`, condition))
		return strings.HasPrefix(out, "True"), condition + ": " + out, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// auditLog is where the API server writes what was asked of it; only the local cluster has it within reach.
func auditLog(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ORDERGRID_AUDIT_LOG")
	if path == "" {
		t.Skip("ORDERGRID_AUDIT_LOG is not set: this cluster's audit log is not within reach, so requests cannot be counted")
	}
	return path
}

func apply(ctx context.Context, t *testing.T, file string) {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(must(t, func() (string, error) { return cluster.Apply(ctx, manifest) }))
}

func show(ctx context.Context, t *testing.T) {
	out, err := cluster.Run(ctx, "get", "og,gp,op,sts,pods", "-n", namespace, "-o", "wide")
	t.Logf("$ kubectl get og,gp,op,sts,pods -o wide (%v)\n%s", err, out)
}

func deleteNamespace(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if _, err := cluster.Run(ctx, "delete", "namespace", namespace, "--ignore-not-found", "--wait"); err != nil {
		t.Error(err)
	}
}

func sleep(ctx context.Context, t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	case <-time.After(d):
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
