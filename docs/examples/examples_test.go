// Package examples holds the manifests of the documentation against a real API server.
package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ordergrid/ordergrid/internal/envtest"
)

func TestMain(m *testing.M) { os.Exit(envtest.Run(m)) }

func newClient(t *testing.T) client.Client {
	t.Helper()
	cl, err := client.New(envtest.Config(t), client.Options{Scheme: envtest.Scheme(), FieldValidation: "Strict"})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// TestExamplesAreAccepted applies every example; a misspelled field is an error too. What comes back must be what was
// written: a default that differs from what the example says would be a contradiction.
func TestExamplesAreAccepted(t *testing.T) {
	cl := newClient(t)
	files, err := filepath.Glob("*/*.yaml")
	files = slices.DeleteFunc(files, func(f string) bool { return filepath.Base(f) == "values.yaml" }) // of the chart, which its tests render
	if err != nil || len(files) < 7 {
		t.Fatalf("%d examples, error %v", len(files), err)
	}
	index, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			accept(t, cl, data)
			if !strings.Contains(string(index), "("+file+")") {
				t.Errorf("README.md does not list %s", file)
			}
		})
	}
}

// TestManifestsInTheDocs applies every YAML block of docs/spec that is a whole manifest.
func TestManifestsInTheDocs(t *testing.T) {
	cl := newClient(t)
	pages, err := filepath.Glob("../spec/*.md")
	if err != nil || len(pages) < 3 {
		t.Fatalf("%d pages, error %v", len(pages), err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, m := range block.FindAllSubmatch(data, -1) {
			if strings.Contains(string(m[1]), "kind: GridPartition") || !strings.HasPrefix(string(m[1]), "apiVersion:") {
				continue // read by people, never written by them; or a part of a manifest
			}
			found++
			accept(t, cl, m[1])
		}
		if found == 0 && !strings.HasSuffix(page, "gridpartition.md") {
			t.Errorf("%s shows no manifest", page)
		}
	}
}

// TestSpecPagesAreComplete: every field of a CRD and every reason of a condition or event is on its page.
func TestSpecPagesAreComplete(t *testing.T) {
	for kind, sources := range map[string]string{
		"ordergrid": "../../controllers/ordergrid/*.go", "gridpartition": "../../grid-node/replica/action.go", "orderprobe": "../../controllers/orderprobe/*.go",
		"failoverdrill": "../../controllers/failoverdrill/*.go", "ordergateway": "../../controllers/ordergateway/*.go", "gridfunction": "../../controllers/gridfunction/*.go",
	} {
		page, err := os.ReadFile("../spec/" + kind + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range append(fields(t, kind), reasons(t, sources)...) {
			if !regexp.MustCompile("[`./{ -]" + word + "\\b").Match(page) {
				t.Errorf("docs/spec/%s.md does not mention %s", kind, word)
			}
		}
	}
}

// fields are the names of all fields of a CRD, without those of Kubernetes' own types.
func fields(t *testing.T, kind string) (names []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(envtest.CRDs(), "ordergrid.dev_"+kind+"s.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	foreign := []string{"conditions", "tolerations", "topologySpreadConstraints", "resources", "podSelector", "namespaceSelector"}
	var walk func(apiextensionsv1.JSONSchemaProps)
	walk = func(s apiextensionsv1.JSONSchemaProps) {
		for name, property := range s.Properties {
			names = append(names, name)
			if slices.Contains(foreign, name) {
				continue
			}
			walk(property)
			if property.Items != nil && property.Items.Schema != nil {
				walk(*property.Items.Schema)
			}
		}
	}
	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	walk(root.Properties["spec"])
	walk(root.Properties["status"])
	return names
}

// reasons are the constants of a controller, or of the replica, that stand in conditions and events.
func reasons(t *testing.T, pattern string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	constant := regexp.MustCompile(`(?m)^\s+(?:reason[A-Z]\w*|event[A-Z]\w*|Alarm\w+\s+AlarmKind)\s*= "(\w+)"`)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range constant.FindAllSubmatch(data, -1) {
			names = append(names, string(m[1]))
		}
	}
	if len(names) < 5 {
		t.Fatalf("%d reasons in %s", len(names), pattern)
	}
	return names
}

// accept applies the documents of a manifest, in order.
func accept(t *testing.T, cl client.Client, manifest []byte) {
	t.Helper()
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		acceptOne(t, cl, []byte(document))
	}
}

func acceptOne(t *testing.T, cl client.Client, manifest []byte) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(manifest, object); err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	object.SetNamespace("default")
	written := object.DeepCopy()
	if err := cl.Create(t.Context(), object, client.DryRunAll); err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	if spec, ok := written.Object["spec"].(map[string]any); ok {
		same(t, "spec", spec, object.Object["spec"])
	}
}

// same reports what the API server did not keep as it was written.
func same(t *testing.T, path string, written, kept any) {
	t.Helper()
	if w, ok := written.(map[string]any); ok {
		k, ok := kept.(map[string]any)
		if !ok {
			t.Errorf("%s is gone", path)
			return
		}
		for field, value := range w {
			same(t, path+"."+field, value, k[field])
		}
		return
	}
	if w, ok := written.([]any); ok {
		k, ok := kept.([]any)
		if !ok || len(k) != len(w) {
			t.Errorf("%s: written %d items, kept %v", path, len(w), kept)
			return
		}
		for i := range w {
			same(t, path+"["+strconv.Itoa(i)+"]", w[i], k[i])
		}
		return
	}
	a, errA := yaml.Marshal(written)
	b, errB := yaml.Marshal(kept)
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Errorf("%s: written %s, kept %s", path, a, b)
	}
}
