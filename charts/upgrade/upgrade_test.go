// Package upgrade upgrades an installation of the previous release to the chart of this checkout.
package upgrade

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/gridlink"
	"github.com/ordergrid/ordergrid/controllers/manager"
	"github.com/ordergrid/ordergrid/controllers/ordergrid"
	"github.com/ordergrid/ordergrid/controllers/orderprobe"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

const (
	previous  = "testdata/previous/ordergrid-0.1.0-previous.tgz"
	objects   = "testdata/previous/objects"
	present   = "../ordergrid"
	namespace = "trading" // of the golden files
	system    = "og-system"
)

func TestMain(m *testing.M) { os.Exit(envtest.Run(m, envtest.WithoutCRDs)) }

// TestUpgrade: CRDs are upgraded by `helm upgrade`; users' objects stay unchanged and valid; the operator of this
// checkout, with the permissions of its chart, does not change a grid of the previous layout, reports it, and its nodes
// go on.
func TestUpgrade(t *testing.T) {
	kubeconfig := envtest.Kubeconfig(t)
	cl := envtest.Client(t, envtest.Config(t), apiextensionsv1.AddToScheme)
	helm(t, kubeconfig, "install", "og", previous, "--namespace", system, "--create-namespace", "--set", "logLevel=debug")
	before := served(t, cl)
	if err := cl.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	written := writeExamples(t, cl)
	grid := writeGrid(t, cl)

	wantAsked(t, kubeconfig, before)
	helm(t, kubeconfig, "upgrade", "og", present, "--namespace", system, "--reset-then-reuse-values", "--set", "clusterWide=Accept")
	after := served(t, cl)
	for kind, crd := range before {
		if now := after[kind]; now == nil || now.Generation == crd.Generation && !equality.Semantic.DeepEqual(crd.Spec, now.Spec) {
			t.Errorf("CRD %s: gone, or not upgraded", kind)
		}
	}
	for _, file := range crdFiles(t) {
		want := &apiextensionsv1.CustomResourceDefinition{}
		readInto(t, file, want)
		now := after[want.Spec.Names.Kind]
		if now == nil || now.Spec.Versions[0].Schema.OpenAPIV3Schema.Description != want.Spec.Versions[0].Schema.OpenAPIV3Schema.Description ||
			!equality.Semantic.DeepEqual(names(now), names(want)) {
			t.Errorf("CRD %s is not the chart's after the upgrade: fields %v, want %v", want.Name, names(now), names(want))
		}
	}
	wantValid(t, cl, written)
	wantLeftAlone(t, cl, grid)
}

func helm(t *testing.T, kubeconfig string, args ...string) {
	t.Helper()
	if out, err := envtest.Helm(t, kubeconfig, args...); err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// wantAsked: a previous release, whose operator has cluster-wide permissions, is upgraded once the values allow that
// explicitly. Until then nothing changes, with the old values or with the new chart's.
func wantAsked(t *testing.T, kubeconfig string, before map[string]*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, values := range []string{"--reset-then-reuse-values", "--reuse-values", "--reset-values"} {
		out, err := envtest.Helm(t, kubeconfig, "upgrade", "og", present, "--namespace", system, values)
		if err == nil || !strings.Contains(out, "Neither watchNamespaces nor clusterWide is set") || !strings.Contains(out, "Nothing was changed.") {
			t.Errorf("helm upgrade %s: %v\n%s", values, err, out)
		}
	}
	out, err := envtest.Helm(t, kubeconfig, "upgrade", "og", present, "--namespace", system, "--reuse-values", "--set", "clusterWide=Accept")
	if err == nil || !strings.Contains(out, "use --reset-then-reuse-values") {
		t.Errorf("with the values of the older chart: %v\n%s", err, out)
	}
	for kind, now := range served(t, envtest.Client(t, envtest.Config(t), apiextensionsv1.AddToScheme)) {
		if was := before[kind]; was == nil || was.ResourceVersion != now.ResourceVersion {
			t.Errorf("an upgrade that was refused has changed CRD %s", kind)
		}
	}
	out, err = envtest.Helm(t, kubeconfig, "history", "og", "--namespace", system, "--output", "json")
	if err != nil || strings.Count(out, `"revision":`) != 1 {
		t.Errorf("revisions after refused upgrades: %v\n%s", err, out)
	}
}

func crdFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(envtest.CRDs(), "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d CRDs, %v", len(files), err)
	}
	return files
}

// names are the fields of spec of a CRD's first version.
func names(crd *apiextensionsv1.CustomResourceDefinition) (all []string) {
	if crd == nil {
		return nil
	}
	for name := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// served are OrderGrid's CRDs by kind, once all are established.
func served(t *testing.T, cl client.Client) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	envtest.Eventually(t, "the CRDs are established", func(ctx context.Context) error {
		var list apiextensionsv1.CustomResourceDefinitionList
		if err := cl.List(ctx, &list); err != nil {
			return err
		}
		for i := range list.Items {
			crd := &list.Items[i]
			established := slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			})
			if crd.Spec.Group == api.GroupVersion.Group && !established {
				return fmt.Errorf("%s is not established", crd.Name)
			}
			if crd.Spec.Group == api.GroupVersion.Group {
				found[crd.Spec.Names.Kind] = crd
			}
		}
		if len(found) < 3 {
			return fmt.Errorf("%d CRDs of ours", len(found))
		}
		return nil
	})
	return found
}

func readInto(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// writeExamples creates objects as users of the previous release would.
func writeExamples(t *testing.T, cl client.Client) (written []*unstructured.Unstructured) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(objects, "example-*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(data, []byte("\n---")) {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(document, &o.Object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if len(o.Object) == 0 || o.GetName() == "rtd" && o.GetKind() == "OrderGrid" && !strings.HasSuffix(file, "example-pair.yaml") {
				continue // one of several grids of this name
			}
			o.SetNamespace(namespace)
			if err := cl.Create(t.Context(), o); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			written = append(written, o)
		}
	}
	return written
}

// writeGrid creates the objects of the previous release's operator for the example's pair.
func writeGrid(t *testing.T, cl client.Client) *api.OrderGrid {
	t.Helper()
	grid := &api.OrderGrid{}
	if err := cl.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "rtd"}, grid); err != nil {
		t.Fatal(err)
	}
	for file, object := range map[string]client.Object{
		"statefulset": &appsv1.StatefulSet{}, "client_service": &corev1.Service{}, "headless_service": &corev1.Service{}, "gridpartition": gridPartition(),
		"poddisruptionbudget": &policyv1.PodDisruptionBudget{}, "role": &rbacv1.Role{}, "rolebinding": &rbacv1.RoleBinding{}, "serviceaccount": &corev1.ServiceAccount{},
	} {
		kinds, _, err := cl.Scheme().ObjectKinds(object)
		if err != nil {
			t.Fatal(err)
		}
		into := any(object)
		if u, ok := object.(*unstructured.Unstructured); ok {
			into = &u.Object
		}
		readInto(t, filepath.Join(objects, file+".yaml"), into)
		object.GetObjectKind().SetGroupVersionKind(kinds[0])
		if err := controllerutil.SetControllerReference(grid, object, cl.Scheme()); err != nil {
			t.Fatal(err)
		}
		data, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &u.Object); err != nil {
			t.Fatal(err)
		}
		delete(u.Object, "status")
		if err := cl.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(apply.FieldOwner)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return grid
}

// wantValid: earlier objects can be written again, and have kept every field.
func wantValid(t *testing.T, cl client.Client, written []*unstructured.Unstructured) {
	t.Helper()
	for _, was := range written {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(was.GroupVersionKind())
		if err := cl.Get(t.Context(), client.ObjectKeyFromObject(was), now); err != nil {
			t.Fatal(err)
		}
		if missing := lacks(was.Object["spec"], now.Object["spec"], "spec"); missing != "" {
			t.Errorf("%s %s: %s", was.GetKind(), was.GetName(), missing)
		}
		now.SetAnnotations(map[string]string{"touched": "by its owner"}) // the smallest change validates all of it
		if err := cl.Update(t.Context(), now); err != nil {
			t.Errorf("%s %s is not valid any more: %v", was.GetKind(), was.GetName(), err)
		}
	}
}

// lacks lists what of an older value is missing in a newer one.
func lacks(older, newer any, path string) string {
	o, isObject := older.(map[string]any)
	if !isObject {
		if !equality.Semantic.DeepEqual(older, newer) {
			return fmt.Sprintf("%s was %v, is %v", path, older, newer)
		}
		return ""
	}
	n, _ := newer.(map[string]any)
	for name, value := range o {
		if missing := lacks(value, n[name], path+"."+name); missing != "" {
			return missing
		}
	}
	return ""
}

// gridPartition is a record from the API server, with fields that this release does not know.
func gridPartition() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(api.GroupVersion.WithKind("GridPartition"))
	return u
}

// wantLeftAlone: the operator of this checkout reports that the grid has the previous layout, and writes nothing else.
// A grid node of that release can still change its partition's configuration.
func wantLeftAlone(t *testing.T, cl client.Client, grid *api.OrderGrid) {
	t.Helper()
	set, record := &appsv1.StatefulSet{}, gridPartition()
	key := client.ObjectKey{Namespace: namespace, Name: api.ShardName(grid.Name, 0)}
	recordKey := client.ObjectKey{Namespace: namespace, Name: api.ShardName(grid.Name, 0) + "-p1"}
	if err := errors.Join(cl.Get(t.Context(), key, set), cl.Get(t.Context(), recordKey, record)); err != nil {
		t.Fatal(err)
	}
	before := set.DeepCopy()
	defer operate(t)()
	envtest.Eventually(t, "the operator of this checkout has seen the grid", func(ctx context.Context) error {
		if err := cl.Get(ctx, client.ObjectKeyFromObject(grid), grid); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionStalled); c == nil || c.Status != metav1.ConditionTrue || c.Reason != "LayoutBefore" {
			return fmt.Errorf("condition Stalled is %+v", c)
		}
		return nil
	})
	member := map[string]any{"id": "rtd-s0-1/0123456789abcdef", "podName": "rtd-s0-1", "bootID": "0123456789abcdef", "address": "10.0.0.1:7400"}
	record.Object["status"] = map[string]any{"epoch": int64(1), "lineage": int64(1), "changeID": "change-1", "primary": member, "inSync": []any{member}}
	if err := cl.Status().Update(t.Context(), record); err != nil {
		t.Errorf("a grid node of the release before cannot claim its partition: %v", err)
	}
	if err := cl.Get(t.Context(), key, set); err != nil || set.ResourceVersion != before.ResourceVersion {
		t.Errorf("the StatefulSet was written (%v): version %s, before %s", err, set.ResourceVersion, before.ResourceVersion)
	}
}

// operate runs the operator with the permissions of the upgraded chart's service account.
func operate(t *testing.T) (stop func()) {
	t.Helper()
	cfg := envtest.Config(t)
	cfg.Impersonate.UserName = "system:serviceaccount:" + system + ":og-ordergrid"
	mgr, err := manager.New(cfg, manager.Options{
		MetricsAddress: "0", HealthAddress: "0", Workers: 1, LeaderElection: true, LeaderElectionNamespace: system,
		Grid:  ordergrid.Defaults{Image: "ordergrid.dev/grid-node:dev", ImagePullPolicy: corev1.PullIfNotPresent},
		Probe: orderprobe.Defaults{Image: "ordergrid.dev/order-probe:dev"},
		Link:  gridlink.Defaults{Image: "ordergrid.dev/grid-link:dev"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return envtest.Operate(t, mgr)
}
