//go:build e2e

package operations

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/kube"
	"github.com/ordergrid/ordergrid/internal/checkout"
)

const (
	namespace = "ordergrid-operations"
	grid      = "trades"
	// patience with anything that the cluster is to do.
	patience = 4 * time.Minute
	// The most that a grid here grows to.
	mostShards, mostCopies = 3, 3
)

// field is the cluster with the chart on it.
type field struct {
	*testing.T
	kube  kube.Cluster
	root  string
	chart kube.Chart
}

// prepare installs the chart, and makes the namespace, which goes when the test ends.
func prepare(ctx context.Context, t *testing.T) *field {
	t.Helper()
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	f := &field{T: t, root: root}
	// Two operators: one of them may be on a machine that is drained.
	f.chart = kube.OwnChart(root)
	f.chart.Set = append(f.chart.Set, "replicas=2", "certificates.namespaces={*}", "metrics.insecure=Accept")
	if _, err := f.kube.Install(ctx, f.chart); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := f.kube.Run(ctx, "delete", "namespace", namespace, "--ignore-not-found", "--wait", "--timeout=3m"); err != nil {
			t.Error(err)
		}
		if err := f.kube.RemoveVolumes(ctx, sinks()); err != nil {
			t.Error(err)
		}
	})
	f.must(f.kube.Apply(ctx, []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+namespace+`"}}`)))
	return f
}

// sinks outlive pods and machines, so that what went downstream can be counted whatever was replaced.
func sinks() kube.SharedVolumes {
	v := kube.SharedVolumes{Namespace: namespace, Class: namespace, Folder: kube.BesideState("operations-sinks")}
	for shard := range int32(mostShards) {
		for ordinal := range int32(mostCopies) {
			v.Pods = append(v.Pods, api.PodName(grid, shard, ordinal))
		}
	}
	return v
}

// must fails the test on an error.
func (f *field) must(text string, err error) string {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
	return text
}

// grow recreates the grid and waits until it is redundant; change alters the manifest, in pairs of old and new.
func (f *field) grow(ctx context.Context, change ...string) {
	f.Helper()
	f.plant(ctx, change...)
	f.conditions(ctx, patience, api.ConditionAvailable+"=True", api.ConditionRedundant+"=True", api.ConditionProgressing+"=False")
}

// plant recreates the grid.
func (f *field) plant(ctx context.Context, change ...string) {
	f.Helper()
	manifest, err := os.ReadFile("testdata/grid.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.must(f.kube.Run(ctx, "delete", "ordergrid", grid, "-n", namespace, "--ignore-not-found", "--wait"))
	if err := f.kube.LayVolumes(ctx, sinks()); err != nil {
		f.Fatal(err)
	}
	f.must(f.kube.Apply(ctx, []byte(strings.NewReplacer(change...).Replace(string(manifest)))))
}

// patch changes the grid's spec by a JSON merge patch, and returns the generation that it leads to.
func (f *field) patch(ctx context.Context, spec string) {
	f.Helper()
	f.Logf("$ kubectl patch ordergrid %s --type merge -p '{\"spec\":%s}'", grid, spec)
	f.must(f.kube.Run(ctx, "patch", "ordergrid", grid, "-n", namespace, "--type=merge", "-p", `{"spec":`+spec+`}`))
}

// state of the grid.
func (f *field) state(ctx context.Context) (*api.OrderGrid, error) {
	g := &api.OrderGrid{}
	return g, f.kube.Get(ctx, g, "ordergrid", grid, "-n", namespace)
}

// conditions waits until the operator has observed the present spec and reports all of TYPE=STATUS or TYPE=STATUS/REASON.
func (f *field) conditions(ctx context.Context, limit time.Duration, wanted ...string) *api.OrderGrid {
	f.Helper()
	var last *api.OrderGrid
	f.eventually(ctx, strings.Join(wanted, " "), limit, func(ctx context.Context) error {
		g, err := f.state(ctx)
		if err != nil {
			return err
		}
		last = g
		for _, w := range wanted {
			kind, rest, _ := strings.Cut(w, "=")
			status, reason, named := strings.Cut(rest, "/")
			c := meta.FindStatusCondition(g.Status.Conditions, kind)
			if c == nil || c.ObservedGeneration != g.Generation || string(c.Status) != status || named && c.Reason != reason {
				return fmt.Errorf("%s: %s", kind, told(c))
			}
		}
		return nil
	})
	return last
}

func told(c *metav1.Condition) string {
	if c == nil {
		return "not there yet"
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// updated waits until every pod runs the present template and every copy is there.
func (f *field) updated(ctx context.Context, limit time.Duration) {
	f.Helper()
	g := f.conditions(ctx, limit, api.ConditionProgressing+"=False", api.ConditionRedundant+"=True", api.ConditionStalled+"=False")
	if g.Status.UpdatedPods != g.Status.Pods {
		f.Errorf("%d of %d pods run the present template, and the grid reports that it is steady", g.Status.UpdatedPods, g.Status.Pods)
	}
}

// eventually polls until check returns nil.
func (f *field) eventually(ctx context.Context, what string, limit time.Duration, check func(context.Context) error) {
	f.Helper()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := kube.WaitFor(ctx, what, func(s string) { f.Log(s) }, func(ctx context.Context) (bool, string, error) {
		err := check(ctx)
		return err == nil, fmt.Sprint(err), nil
	})
	if err != nil {
		f.show(context.WithoutCancel(ctx))
		f.Fatal(err)
	}
}

// show prints what a user would look at.
func (f *field) show(ctx context.Context) {
	f.Helper()
	out, err := f.kube.Run(ctx, "get", "og,gp,sts,pods,pvc", "-n", namespace, "-o", "wide")
	f.Logf("$ kubectl get og,gp,sts,pods,pvc -o wide (%v)\n%s", err, out)
	out, err = f.kube.Run(ctx, "get", "events", "-n", namespace, "--sort-by=.lastTimestamp")
	f.Logf("$ kubectl get events (%v)\n%s", err, tail(out, 40))
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// pods of the grid, by name.
func (f *field) pods(ctx context.Context) map[string]*corev1.Pod {
	f.Helper()
	var list corev1.PodList
	if err := f.kube.Get(ctx, &list, "pods", "-n", namespace, "-l", api.LabelGrid+"="+grid); err != nil {
		f.Fatal(err)
	}
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// replaced returns which of the former pods were replaced: a pod of the same name is another one by its UID.
func (f *field) replaced(ctx context.Context, before map[string]*corev1.Pod) (names []string) {
	f.Helper()
	now := f.pods(ctx)
	for name, pod := range before {
		if n := now[name]; n == nil || n.UID != pod.UID {
			names = append(names, name)
		}
	}
	return names
}
