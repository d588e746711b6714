package charts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// schemaLocation is the template by which kubeconform finds the schema of a kind below a directory; File is the same in Go.
const schemaLocation = "{{.Group}}_{{.ResourceAPIVersion}}_{{.ResourceKind}}.json"

// schemaFile is the name of the schema of a kind.
func schemaFile(kind schema.GroupVersionKind) string {
	group := kind.Group
	if group == "" {
		group = kind.Version // as kubeconform has it for the core group
	}
	return group + "_" + kind.Version + "_" + strings.ToLower(kind.Kind) + ".json"
}

const definitions = "#/definitions/"

// coreSchemas is Kubernetes' OpenAPI document (version 2), its types made strict.
type coreSchemas struct {
	definitions map[string]map[string]any
	kinds       map[schema.GroupVersionKind]string
}

// readCoreSchemas reads such a document, api/openapi-spec/swagger.json of Kubernetes.
func readCoreSchemas(document []byte) (*coreSchemas, error) {
	var read struct{ Definitions map[string]map[string]any }
	if err := json.Unmarshal(document, &read); err != nil {
		return nil, err
	}
	if len(read.Definitions) == 0 {
		return nil, fmt.Errorf("no definitions in %d bytes: not an OpenAPI document of version 2", len(document))
	}
	c := &coreSchemas{definitions: read.Definitions, kinds: map[schema.GroupVersionKind]string{}}
	for name, d := range c.definitions {
		kinds, _ := d["x-kubernetes-group-version-kind"].([]any)
		for _, k := range kinds {
			of, _ := k.(map[string]any)
			group, _ := of["group"].(string)
			version, _ := of["version"].(string)
			kind, _ := of["kind"].(string)
			c.kinds[schema.GroupVersionKind{Group: group, Version: version, Kind: kind}] = name
		}
		switch {
		case strings.HasSuffix(name, ".api.resource.Quantity"):
			c.definitions[name] = map[string]any{"type": []any{"string", "number"}}
		case strings.HasSuffix(name, ".meta.v1.Time"), strings.HasSuffix(name, ".meta.v1.MicroTime"):
			// Objects that Go programs print have creationTimestamp: null.
			c.definitions[name] = map[string]any{"type": []any{"string", "null"}, "format": "date-time"}
		default:
			strict(d)
		}
	}
	return c, nil
}

// Has reports whether a kind is Kubernetes' own.
func (c *coreSchemas) Has(kind schema.GroupVersionKind) bool { return c.kinds[kind] != "" }

// Write writes the schema of a kind, with all it refers to, into a directory.
func (c *coreSchemas) Write(dir string, kind schema.GroupVersionKind) error {
	name := c.kinds[kind]
	if name == "" {
		return fmt.Errorf("no kind %s in Kubernetes' document", kind)
	}
	needed := map[string]any{}
	c.collect(name, needed)
	return write(dir, kind, map[string]any{"$ref": definitions + name, "definitions": needed})
}

// collect finds all that a definition refers to, at any depth.
func (c *coreSchemas) collect(name string, found map[string]any) {
	if found[name] != nil {
		return
	}
	found[name] = c.definitions[name]
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				c.collect(strings.TrimPrefix(ref, definitions), found)
			}
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		}
	}
	walk(c.definitions[name])
}

// writeCRDSchemas writes the schema of every version of a CRD into a directory, and returns their kinds.
func writeCRDSchemas(dir string, crd *apiextensionsv1.CustomResourceDefinition) (kinds []schema.GroupVersionKind, err error) {
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			return nil, fmt.Errorf("CRD %s has no schema for %s", crd.Name, v.Name)
		}
		data, err := json.Marshal(v.Schema.OpenAPIV3Schema)
		if err != nil {
			return nil, err
		}
		root := map[string]any{}
		if err := json.Unmarshal(data, &root); err != nil {
			return nil, err
		}
		properties, _ := root["properties"].(map[string]any)
		if properties == nil {
			properties = map[string]any{}
			root["properties"] = properties
		}
		// Every object has these, whether the CRD lists these or not.
		for name, kind := range map[string]string{"apiVersion": "string", "kind": "string", "metadata": "object"} {
			if properties[name] == nil {
				properties[name] = map[string]any{"type": kind}
			}
		}
		strict(root)
		if err := write(dir, kind, root); err != nil {
			return nil, err
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// strict changes a schema of OpenAPI into one of JSON Schema in which an object has the fields it names and no others.
func strict(value any) {
	s, ok := value.(map[string]any)
	if !ok {
		return
	}
	properties, named := s["properties"].(map[string]any)
	for _, child := range properties {
		strict(child)
	}
	for _, key := range []string{"items", "additionalProperties", "not"} {
		strict(s[key])
	}
	if open, _ := s["x-kubernetes-preserve-unknown-fields"].(bool); named && s["additionalProperties"] == nil && !open {
		s["additionalProperties"] = false
	}
	if s["format"] == "int-or-string" || s["x-kubernetes-int-or-string"] == true {
		delete(s, "format")
		delete(s, "anyOf")
		s["type"] = []any{"string", "number"}
	}
	if kind, ok := s["type"].(string); ok && s["nullable"] == true {
		s["type"] = []any{kind, "null"}
	}
}

func write(dir string, kind schema.GroupVersionKind, of any) error {
	data, err := json.Marshal(of)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, schemaFile(kind)), data, 0o644) //nolint:gosec // world-readable
}
