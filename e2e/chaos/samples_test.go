// Package chaos holds the faults a user applies by hand against Chaos Mesh's own schemas.
package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/chaosmesh/crds"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

func TestMain(m *testing.M) {
	chaos, err := crds.Objects(context.Background(), envtest.Root(), "PodChaos", "NetworkChaos", "StressChaos", "TimeChaos")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(envtest.Run(m, envtest.WithMoreCRDs(chaos...)))
}

// Every manifest is accepted, a misspelled field being an error, is in the table
// of the README, and selects pods by labels a grid's pods have.
func TestSamples(t *testing.T) {
	cl, err := client.New(envtest.Config(t), client.Options{FieldValidation: "Strict"})
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 11 {
		t.Fatalf("%q, %v", files, err)
	}
	known := map[string]string{api.LabelGrid: "rtd", api.LabelShard: "0", "statefulset.kubernetes.io/pod-name": api.PodName("rtd", 0, 0)}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			o := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict(content, &o.Object); err != nil {
				t.Fatal(err)
			}
			if o.GetName()+".yaml" != file || !strings.Contains(string(index), "]("+file+")") {
				t.Errorf("it is called %q; in README.md: %v", o.GetName(), strings.Contains(string(index), file))
			}
			labels, _, err := unstructured.NestedStringMap(o.Object, "spec", "selector", "labelSelectors")
			if err != nil || len(labels) == 0 {
				t.Errorf("it selects by %v, %v", labels, err)
			}
			for key, value := range labels {
				if known[key] != value {
					t.Errorf("no pod of grid rtd has the label %s=%s", key, value)
				}
			}
			o.SetNamespace("default")
			if err := cl.Create(context.Background(), o); err != nil {
				t.Error(err)
			}
		})
	}
}
