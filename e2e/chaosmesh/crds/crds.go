// Package crds hands out Chaos Mesh's own CRDs, so that a controller that makes
// Chaos Mesh's objects is tried against the real schemas. Nothing is built:
//
//	chaos, err := crds.Objects(ctx, envtest.Root(), "PodChaos", "NetworkChaos")
//	…
//	os.Exit(envtest.Run(m, envtest.WithMoreCRDs(chaos...)))
package crds

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// InModule is where the CRDs are below the directory of Chaos Mesh's module.
const InModule = "helm/chaos-mesh/crds"

// Objects are the CRDs of the given kinds, all of them if none is given, of the
// Chaos Mesh the checkout at root pins. The first call on a machine downloads a
// Go module of a few megabytes.
func Objects(ctx context.Context, root string, kinds ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	module, err := Dir(ctx, root)
	if err != nil {
		return nil, err
	}
	return read(filepath.Join(module, InModule), kinds)
}

func read(dir string, kinds []string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []*apiextensionsv1.CustomResourceDefinition
	var known []string
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, crd); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		if crd.Kind != "CustomResourceDefinition" {
			return nil, fmt.Errorf("%s is a %q, not a CustomResourceDefinition", entry.Name(), crd.Kind)
		}
		known = append(known, crd.Spec.Names.Kind)
		if len(kinds) > 0 && !slices.Contains(kinds, crd.Spec.Names.Kind) {
			continue
		}
		addPartitionBehavior(crd)
		found = append(found, crd)
	}
	for _, kind := range kinds {
		if !slices.Contains(known, kind) {
			return nil, fmt.Errorf("no kind %q in Chaos Mesh; it has %s", kind, strings.Join(known, ", "))
		}
	}
	return found, nil
}

// addPartitionBehavior adds a field to every place that describes a network
// fault. The published module of Chaos Mesh's types is newer than its chart: its
// webhook fills the field in, the API server drops what a schema does not know,
// and every later update is then refused as a change of the fault. "reject" is
// left out because the controllers of this version would drop packets instead.
func addPartitionBehavior(crd *apiextensionsv1.CustomResourceDefinition) {
	for i := range crd.Spec.Versions {
		if s := crd.Spec.Versions[i].Schema; s != nil {
			visit(s.OpenAPIV3Schema, func(p *apiextensionsv1.JSONSchemaProps) {
				_, from := p.Properties["externalTargets"]
				_, to := p.Properties["direction"]
				if from && to {
					p.Properties["partitionBehavior"] = apiextensionsv1.JSONSchemaProps{
						Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"drop"`)}},
						Description: "How the packets of a partition are handled.",
					}
				}
			})
		}
	}
}

// visit calls f for a schema and all schemas in it.
func visit(p *apiextensionsv1.JSONSchemaProps, f func(*apiextensionsv1.JSONSchemaProps)) {
	if p == nil {
		return
	}
	for name, property := range p.Properties {
		visit(&property, f)
		p.Properties[name] = property
	}
	if p.Items != nil {
		visit(p.Items.Schema, f)
	}
	if p.AdditionalProperties != nil {
		visit(p.AdditionalProperties.Schema, f)
	}
	f(p)
}
