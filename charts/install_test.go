package charts

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill"
	"github.com/ordergrid/ordergrid/controllers/gridlink"
	"github.com/ordergrid/ordergrid/controllers/manager"
	"github.com/ordergrid/ordergrid/controllers/ordergrid"
	"github.com/ordergrid/ordergrid/controllers/orderprobe"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// TestRelease takes the chart through its life on a real API server: installed, its notes followed, its permissions
// sufficient for the operator, upgraded with a grid in place, uninstalled without deleting the grid.
func TestRelease(t *testing.T) {
	kubeconfig := envtest.Kubeconfig(t)
	wantCheckFails(t, "the API server does not serve ordergrid.dev/v1alpha1")
	out, err := helmAt(t, kubeconfig, "install", "og", "ordergrid", "--namespace", "og-system", "--create-namespace", "--set", everywhere, "--set", "drills.namespaces={default}")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"kubectl apply -n default", "kind: OrderGrid", "kind: OrderProbe", "kubectl wait -n default og/rtd --for=condition=Redundant"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the notes:\n%s", want, out)
		}
	}
	cl := envtest.Client(t, envtest.Config(t), apiextensionsv1.AddToScheme)
	waitForCRDs(t, cl)
	wantDeprecations(t)

	wantCheckFails(t, "lease og-system/operator.ordergrid.dev: ")
	stop := operate(t)
	helmTest(t, kubeconfig, cl)
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "rtd", Namespace: "default"}}
	followNotes(t, kubeconfig, out, "2. ", "kubectl wait")
	if err := cl.Get(t.Context(), client.ObjectKeyFromObject(grid), grid); err != nil {
		t.Fatal(err)
	}
	envtest.Eventually(t, "the operator, with the chart's rights, has made the grid's StatefulSet", func(ctx context.Context) error {
		return cl.Get(ctx, client.ObjectKey{Namespace: "default", Name: "rtd-s0"}, &appsv1.StatefulSet{})
	})
	serve(t, cl, grid)
	record := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: api.PartitionName(grid.Name, 0)}}
	if err := cl.Patch(t.Context(), record, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"ordergrid.dev/preferred-pod":"absent"}}}`))); err != nil {
		t.Fatal(err)
	}
	envtest.Eventually(t, "the operator, with the chart's rights, has answered an annotation", func(ctx context.Context) error {
		if err := cl.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return err
		}
		if record.Annotations[api.AnnotationPreferredPod] != "" {
			return errors.New("the annotation is still there")
		}
		return nil
	})
	followNotes(t, kubeconfig, out, "3. ", "kubectl wait")
	envtest.Eventually(t, "the operator, with the chart's rights, has made the probe's Job", func(ctx context.Context) error {
		return cl.Get(ctx, client.ObjectKey{Namespace: "default", Name: "pair"}, &batchv1.Job{})
	})
	envtest.Eventually(t, "the operator, with the chart's rights, has emitted its event", func(ctx context.Context) error {
		var events corev1.EventList
		if err := cl.List(ctx, &events, client.InNamespace("default"), client.MatchingFields{"reason": "Serving"}); err != nil {
			return err
		}
		if len(events.Items) == 0 {
			return apierrors.NewNotFound(corev1.Resource("events"), "Serving")
		}
		return nil
	})
	drill(t, cl)
	wantMadeRolesOnPage(t, cl)
	callFunction(t, cl)
	stop()
	wantCheckFails(t, "is held by no operator and not renewed: no operator is running")

	if out, err := helmAt(t, kubeconfig, "upgrade", "og", "ordergrid", "--namespace", "og-system", "--reuse-values", "--set", "replicas=2"); err != nil {
		t.Fatalf("upgrade: %v\n%s", err, out)
	}
	if out, err := helmAt(t, kubeconfig, "uninstall", "og", "--namespace", "og-system"); err != nil {
		t.Fatalf("uninstall: %v\n%s", err, out)
	}
	if err := cl.Get(t.Context(), client.ObjectKeyFromObject(grid), grid); err != nil || grid.DeletionTimestamp != nil {
		t.Errorf("the OrderGrid was deleted with the release: %v", err)
	}
	if err := cl.Get(t.Context(), client.ObjectKey{Namespace: "og-system", Name: "og-ordergrid"}, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("the operator is still there: %v", err)
	}
	// Installed again, the release adopts the CRDs that were kept.
	if out, err := helmAt(t, kubeconfig, "install", "og", "ordergrid", "--namespace", "og-system", "--set", everywhere); err != nil {
		t.Fatalf("install again: %v\n%s", err, out)
	}
}

// followNotes runs the commands in the notes like a user who copies the lines from one point up to a command into a
// shell: exactly as printed by helm, including leading blanks.
func followNotes(t *testing.T, kubeconfig, notes, point, until string) {
	t.Helper()
	_, rest, found := strings.Cut(notes, "\n"+point)
	_, lines, _ := strings.Cut(rest, "\n")
	lines, _, ends := strings.Cut(lines, until)
	if !found || !ends || strings.TrimSpace(lines) == "" {
		t.Fatalf("the notes have no commands from %q to %q:\n%s", point, until, notes)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-eu")
	shell.Stdin = strings.NewReader(lines)
	shell.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+envtest.Assets(t)+":"+os.Getenv("PATH"))
	text, err := shell.CombinedOutput()
	if err != nil || strings.Contains(string(text), "here-document") {
		t.Fatalf("%v\n%s\n%s", err, lines, text)
	}
}

// operate runs the operator in this process with the permissions of the chart's service account.
func operate(t *testing.T) (stop func()) {
	t.Helper()
	cfg := envtest.Config(t)
	cfg.Impersonate.UserName = "system:serviceaccount:og-system:og-ordergrid"
	mgr, err := manager.New(cfg, manager.Options{
		MetricsAddress: "0", HealthAddress: "0", Workers: 1, LeaderElection: true, LeaderElectionNamespace: "og-system",
		Grid: ordergrid.Defaults{Image: "grid-node:test"}, Probe: orderprobe.Defaults{Image: "order-probe:test"}, Link: gridlink.Defaults{Image: "grid-link:test"}, Drill: failoverdrill.Defaults{Namespaces: []string{"default"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return envtest.Operate(t, mgr)
}

// serve plays the grid's pods, and waits until the operator has seen them.
func serve(t *testing.T, cl client.Client, grid *api.OrderGrid) {
	t.Helper()
	envtest.Serve(t, cl, grid)
	envtest.Eventually(t, "the operator, with the chart's rights, has written the grid's status", func(ctx context.Context) error {
		if err := cl.Get(ctx, client.ObjectKeyFromObject(grid), grid); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(grid.Status.Conditions, api.ConditionRedundant) {
			return apierrors.NewNotFound(api.GroupVersion.WithResource("ordergrids").GroupResource(), "Redundant")
		}
		return nil
	})
}

func waitForCRDs(t *testing.T, cl client.Client) {
	t.Helper()
	for _, name := range []string{"ordergrids", "gridpartitions", "orderprobes", "failoverdrills", "gridlinks", "ordergateways", "instrumentsets", "gridfunctions", "riskprofiles", "gridregions"} {
		waitForCRD(t, cl, name+".ordergrid.dev")
	}
}

func waitForCRD(t *testing.T, cl client.Client, name string) {
	t.Helper()
	envtest.Eventually(t, "CRD "+name, func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := cl.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return err
		}
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return apierrors.NewNotFound(apiextensionsv1.Resource("customresourcedefinitions"), name)
	})
}
