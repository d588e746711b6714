package main

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

type props = apiextensionsv1.JSONSchemaProps

// schema compares one field, and everything below it.
func (c *comparison) schema(before, now *props) {
	if before == nil || now == nil {
		return
	}
	c.kind(before, now)
	c.bounds(before, now)
	c.values(before, now)
	c.rules(before, now)
	c.merging(before, now)
	c.fields(before, now)
	if before.Items != nil && now.Items != nil {
		below := c.at("[]")
		below.schema(before.Items.Schema, now.Items.Schema)
		c.take(below)
	}
	if before.AdditionalProperties != nil {
		if now.AdditionalProperties == nil {
			c.breaks("took any key and takes none but those it lists")
			return
		}
		below := c.at("{}")
		below.schema(before.AdditionalProperties.Schema, now.AdditionalProperties.Schema)
		c.take(below)
	}
}

func (c *comparison) kind(before, now *props) {
	switch {
	case before.XIntOrString && !now.XIntOrString:
		c.breaks("took numbers and texts and takes %s only", or(now.Type, "others"))
	case before.Type != now.Type:
		c.breaks("type was %s and is %s", or(before.Type, "any"), or(now.Type, "any"))
	}
	if before.Nullable && !now.Nullable {
		c.breaks("took null and does not")
	}
	if before.Format != now.Format && now.Format != "" {
		c.breaks("format was %s and is %s", or(before.Format, "any"), now.Format)
	}
	if ptr.Deref(before.XPreserveUnknownFields, false) && !ptr.Deref(now.XPreserveUnknownFields, false) {
		c.breaks("kept fields it does not know and drops them")
	}
}

// bounds finds limits that are new or tighter.
func (c *comparison) bounds(before, now *props) {
	lower(c, "minimum", before.Minimum, now.Minimum)
	upper(c, "maximum", before.Maximum, now.Maximum)
	lower(c, "minLength", before.MinLength, now.MinLength)
	upper(c, "maxLength", before.MaxLength, now.MaxLength)
	lower(c, "minItems", before.MinItems, now.MinItems)
	upper(c, "maxItems", before.MaxItems, now.MaxItems)
	lower(c, "minProperties", before.MinProperties, now.MinProperties)
	upper(c, "maxProperties", before.MaxProperties, now.MaxProperties)
	if !before.ExclusiveMinimum && now.ExclusiveMinimum {
		c.breaks("minimum was allowed itself and is not")
	}
	if !before.ExclusiveMaximum && now.ExclusiveMaximum {
		c.breaks("maximum was allowed itself and is not")
	}
	if now.MultipleOf != nil && (before.MultipleOf == nil || *before.MultipleOf != *now.MultipleOf) {
		c.breaks("has to be a multiple of %v now", *now.MultipleOf)
	}
	if !before.UniqueItems && now.UniqueItems {
		c.breaks("items may not be equal any more")
	}
	if now.Pattern != "" && before.Pattern != now.Pattern {
		c.breaks("pattern was %s and is %s", or(before.Pattern, "none"), now.Pattern)
	}
}

func lower[N cmp.Ordered](c *comparison, what string, before, now *N) {
	switch {
	case now == nil || before != nil && *now <= *before:
	case before == nil:
		c.breaks("has %s %v, where there was none", what, *now)
	default:
		c.breaks("%s was %v and is %v", what, *before, *now)
	}
}

func upper[N cmp.Ordered](c *comparison, what string, before, now *N) {
	switch {
	case now == nil || before != nil && *now >= *before:
	case before == nil:
		c.breaks("has %s %v, where there was none", what, *now)
	default:
		c.breaks("%s was %v and is %v", what, *before, *now)
	}
}

// values compares what is allowed one by one, and what a field that is left out means.
func (c *comparison) values(before, now *props) {
	if len(before.Enum) == 0 && len(now.Enum) > 0 {
		c.breaks("takes %s only, where it took anything", texts(now.Enum))
	} else if len(now.Enum) > 0 {
		for _, v := range before.Enum {
			if !slices.ContainsFunc(now.Enum, func(n apiextensionsv1.JSON) bool { return bytes.Equal(n.Raw, v.Raw) }) {
				c.breaks("value %s is gone; allowed are %s", v.Raw, texts(now.Enum))
			}
		}
	}
	text := func(v *apiextensionsv1.JSON) string {
		if v == nil {
			return "nothing"
		}
		return string(v.Raw)
	}
	if b, n := text(before.Default), text(now.Default); b != n {
		c.breaks("left out it meant %s and means %s", b, n)
	}
}

func texts(values []apiextensionsv1.JSON) string {
	var list []string
	for _, v := range values {
		list = append(list, string(v.Raw))
	}
	return strings.Join(list, ", ")
}

// rules: whether a CEL rule that was not there refuses what was allowed, no program can tell; so a user has to.
func (c *comparison) rules(before, now *props) {
	for _, rule := range now.XValidations {
		if !slices.ContainsFunc(before.XValidations, func(b apiextensionsv1.ValidationRule) bool { return b.Rule == rule.Rule }) {
			c.breaks("has the rule %q, which it had not", rule.Rule)
		}
	}
}

// merging: how server-side apply takes lists and maps together.
func (c *comparison) merging(before, now *props) {
	text := func(p *string, none string) string { return or(ptr.Deref(p, ""), none) }
	if b, n := text(before.XListType, "atomic"), text(now.XListType, "atomic"); b != n {
		c.breaks("list type was %s and is %s", b, n)
	}
	if b, n := text(before.XMapType, "granular"), text(now.XMapType, "granular"); b != n {
		c.breaks("map type was %s and is %s", b, n)
	}
	if !slices.Equal(before.XListMapKeys, now.XListMapKeys) {
		c.breaks("items were told apart by %s and are by %s", or(strings.Join(before.XListMapKeys, ", "), "nothing"), or(strings.Join(now.XListMapKeys, ", "), "nothing"))
	}
}

func (c *comparison) fields(before, now *props) {
	open := ptr.Deref(now.XPreserveUnknownFields, false)
	for _, name := range slices.Sorted(maps.Keys(before.Properties)) {
		b := before.Properties[name]
		n, there := now.Properties[name]
		below := c.at("." + name)
		switch {
		case there:
			below.schema(&b, &n)
		case !open:
			below.breaks("the field is gone: the API server drops it without a word, or refuses it where the client asks for strictness")
		}
		c.take(below)
	}
	for _, name := range now.Required {
		if slices.Contains(before.Required, name) {
			continue
		}
		field := now.Properties[name]
		if field.Default == nil { // one with a default is there before anything is checked
			below := c.at("." + name)
			below.breaks("the field is required and was not")
			c.take(below)
		}
	}
}

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}
