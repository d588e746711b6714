package charts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const document = `{"definitions": {
	"t.Pod": {"type": "object", "required": ["spec"], "properties": {"kind": {"type": "string"}, "spec": {"$ref": "#/definitions/t.Spec"}, "labels": {"type": "object", "additionalProperties": {"type": "string"}}},
		"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}]},
	"t.Spec": {"type": "object", "properties": {"port": {"$ref": "#/definitions/t.Port"}, "memory": {"$ref": "#/definitions/t.api.resource.Quantity"}, "at": {"$ref": "#/definitions/t.meta.v1.Time"}, "next": {"$ref": "#/definitions/t.Spec"}}},
	"t.Port": {"type": "string", "format": "int-or-string"},
	"t.api.resource.Quantity": {"type": "string"},
	"t.meta.v1.Time": {"type": "string", "format": "date-time"},
	"t.Unused": {"type": "string"}}}`

func check(t *testing.T, file string, accepted, refused []string) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft4)
	s, err := c.Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range slices.Concat(accepted, refused) {
		object, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		err = s.Validate(object)
		if isWrong := slices.Contains(refused, text); isWrong != (err != nil) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestCore(t *testing.T) {
	core, err := readCoreSchemas([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	dir, kind := t.TempDir(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	if err := core.Write(dir, kind); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "v1_v1_pod.json")
	check(t, file, []string{
		`{"spec": {}}`, `{"kind": "Pod", "spec": {"port": 1, "memory": 1.5, "at": null, "next": {"port": "http", "memory": "1Gi"}}, "labels": {"a": "b"}}`,
	}, []string{
		`{}`, `{"spec": {}, "spce": 1}`, `{"spec": {"next": {"prot": 1}}}`, `{"spec": {"port": true}}`, `{"spec": {}, "labels": {"a": 1}}`, `{"spec": {"memory": true}}`,
	})
	if data, err := os.ReadFile(file); err != nil || strings.Contains(string(data), "t.Unused") {
		t.Errorf("%v; what the kind does not refer to is in its schema", err)
	}
	if !core.Has(kind) || core.Has(schema.GroupVersionKind{Version: "v1", Kind: "Missing"}) {
		t.Error("Has")
	}
	if err := core.Write(dir, schema.GroupVersionKind{Version: "v1", Kind: "Missing"}); err == nil {
		t.Error("a kind that is not there")
	}
	for _, wrong := range []string{"", "[]", "{}", `{"definitions": 1}`} {
		if _, err := readCoreSchemas([]byte(wrong)); err == nil {
			t.Errorf("%q is taken for an OpenAPI document", wrong)
		}
	}
}

func TestCRD(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal([]byte(`{"metadata": {"name": "grids.g.dev"}, "spec": {"group": "g.dev", "names": {"kind": "Grid"}, "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
		"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
		"pod": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "string"}}}, "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "nullable": true}}}}}}}}}}]}}`), crd); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kinds, err := writeCRDSchemas(dir, crd)
	if err != nil || len(kinds) != 1 {
		t.Fatalf("%v, %v", kinds, err)
	}
	check(t, filepath.Join(dir, "g.dev_v1_grid.json"), []string{
		`{"apiVersion": "g.dev/v1", "kind": "Grid", "metadata": {"name": "a"}, "spec": {"size": 1, "pod": {"b": 1}, "list": [{"n": null}, {"n": 2}]}}`, `{"spec": {"size": "1Gi"}}`,
	}, []string{
		`{"spec": {}}`, `{"spec": {"size": 1, "sizes": 2}}`, `{"spec": {"size": 1, "list": [{"m": 1}]}}`, `{"spec": {"size": 1, "list": [{"n": "x"}]}}`, `{"speck": {}}`,
	})
	crd.Spec.Versions[0].Schema = nil
	if _, err := writeCRDSchemas(dir, crd); err == nil {
		t.Error("a version without a schema")
	}
}
