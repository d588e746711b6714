package main

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Break is a change after which something that was right is refused, or means something else.
type Break struct {
	// Path of what has changed: kind, version and field, such as "OrderGrid v1alpha1 spec.shards", items as [].
	Path string
	// What has changed, from what to what.
	What string
}

func (b Break) String() string { return b.Path + ": " + b.What }

// Compare returns what in now breaks manifests, stored objects and clients that were right for before. What only adds, widens
// or describes breaks nothing.
func Compare(before, now *apiextensionsv1.CustomResourceDefinition) []Break {
	c := &comparison{path: before.Spec.Names.Kind}
	same := func(what, a, b string) {
		if a != b {
			c.breaks("%s was %s and is %s", what, a, b)
		}
	}
	same("group", before.Spec.Group, now.Spec.Group)
	same("kind", before.Spec.Names.Kind, now.Spec.Names.Kind)
	same("plural name", before.Spec.Names.Plural, now.Spec.Names.Plural)
	same("scope", string(before.Spec.Scope), string(now.Spec.Scope))
	for _, name := range before.Spec.Names.ShortNames {
		if !slices.Contains(now.Spec.Names.ShortNames, name) {
			c.breaks("short name %s is gone", name)
		}
	}
	for i := range before.Spec.Versions {
		c.version(&before.Spec.Versions[i], now.Spec.Versions)
	}
	return c.found
}

// comparison walks two schemas at the same time.
type comparison struct {
	path  string
	found []Break
}

func (c *comparison) breaks(format string, args ...any) {
	c.found = append(c.found, Break{c.path, fmt.Sprintf(format, args...)})
}

// at continues below the present path.
func (c *comparison) at(step string) *comparison {
	return &comparison{path: c.path + step}
}

func (c *comparison) take(below *comparison) { c.found = append(c.found, below.found...) }

func (c *comparison) version(before *apiextensionsv1.CustomResourceDefinitionVersion, now []apiextensionsv1.CustomResourceDefinitionVersion) {
	below := c.at(" " + before.Name)
	defer func() { c.take(below) }()
	i := slices.IndexFunc(now, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == before.Name })
	switch {
	case i < 0:
		below.breaks("the version is gone: objects that etcd has in it cannot be read any more")
		return
	case before.Served && !now[i].Served:
		below.breaks("the version is not served any more")
		return
	}
	subresources := func(v *apiextensionsv1.CustomResourceDefinitionVersion) (status, scale bool) {
		return v.Subresources != nil && v.Subresources.Status != nil, v.Subresources != nil && v.Subresources.Scale != nil
	}
	status, scale := subresources(before)
	if s, _ := subresources(&now[i]); status != s {
		below.breaks("subresource status was %v and is %v", status, s)
	}
	if _, s := subresources(&now[i]); scale && !s {
		below.breaks("subresource scale is gone")
	}
	for _, f := range before.SelectableFields {
		if !slices.Contains(now[i].SelectableFields, f) {
			below.breaks("selectable field %s is gone", f.JSONPath)
		}
	}
	if before.Schema == nil || now[i].Schema == nil {
		return
	}
	root := &comparison{path: below.path + " "}
	root.schema(before.Schema.OpenAPIV3Schema, now[i].Schema.OpenAPIV3Schema)
	for _, b := range root.found {
		b.Path = strings.Replace(b.Path, below.path+" .", below.path+" ", 1)
		b.Path = strings.TrimSuffix(b.Path, " ")
		below.found = append(below.found, b)
	}
}
