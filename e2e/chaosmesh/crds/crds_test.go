package crds

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/internal/envtest"
)

var drillKinds = []string{"PodChaos", "NetworkChaos", "StressChaos", "TimeChaos", "IOChaos"}

func TestMain(m *testing.M) {
	chaos, err := Objects(context.Background(), envtest.Root(), drillKinds...)
	if err != nil {
		panic(err)
	}
	os.Exit(envtest.Run(m, envtest.WithMoreCRDs(chaos...)))
}

func TestUnknownKind(t *testing.T) {
	_, err := Objects(context.Background(), envtest.Root(), "PodChaos", "PodsChaos")
	if err == nil || !strings.Contains(err.Error(), `"PodsChaos"`) || !strings.Contains(err.Error(), "NetworkChaos") {
		t.Errorf("an unknown kind: %v", err)
	}
}

func TestNoCRD(t *testing.T) {
	for name, content := range map[string]string{"not a CRD": "kind: ConfigMap\n", "not YAML": "a: b: c", "nothing": ""} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := read(dir, nil); err == nil {
			t.Errorf("%s: %d CRDs", name, len(got))
		}
	}
}

// Everything that embeds a network fault knows partitionBehavior, also where it
// is nested: schedules and workflows.
func TestPartitionBehavior(t *testing.T) {
	all, err := Objects(context.Background(), envtest.Root())
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]int{}
	for _, crd := range all {
		visit(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, func(p *apiextensionsv1.JSONSchemaProps) {
			if _, ok := p.Properties["partitionBehavior"]; ok {
				has[crd.Spec.Names.Kind]++
			}
		})
	}
	for _, kind := range []string{"NetworkChaos", "Schedule", "Workflow", "WorkflowNode"} {
		if has[kind] == 0 {
			t.Errorf("%s lacks partitionBehavior", kind)
		}
	}
	if len(has) != 4 {
		t.Errorf("partitionBehavior is in %v", has)
	}
}

func partition(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "chaos-mesh.org/v1alpha1", "kind": "NetworkChaos",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"spec": map[string]any{
			"action": "partition", "mode": "all", "direction": "both", "partitionBehavior": "drop",
			"selector": map[string]any{"labelSelectors": map[string]any{"role": "primary"}},
			"target":   map[string]any{"mode": "all", "selector": map[string]any{"labelSelectors": map[string]any{"role": "backup"}}},
		},
	}}
}

// The API server takes what a drill makes and refuses what Chaos Mesh's schema does not know.
func TestRealServer(t *testing.T) {
	ctx := context.Background()
	c, err := client.New(envtest.Config(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	good := partition("good")
	if err := c.Create(ctx, good); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(good.Object, "spec", "partitionBehavior"); got != "drop" {
		t.Errorf("partitionBehavior came back as %q", got)
	}
	bad := partition("bad")
	if err := unstructured.SetNestedField(bad.Object, "halve", "spec", "action"); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, bad); !apierrors.IsInvalid(err) {
		t.Errorf("action halve: %v", err)
	}
	for _, kind := range drillKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind(kind + "List"))
		list.SetAPIVersion("chaos-mesh.org/v1alpha1")
		if err := c.List(ctx, list); err != nil {
			t.Errorf("list %s: %v", kind, err)
		}
	}
}
