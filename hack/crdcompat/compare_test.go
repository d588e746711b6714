package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// TestReleased holds the CRDs of this tree against those of the last release.
func TestReleased(t *testing.T) {
	problems, err := Problems("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) > 0 {
		t.Errorf("%d changes of the API break what was right for the last release:\n%s\nTake them back, add a version instead, or, if people have agreed, put them into %s with the reason (docs/versions.md)",
			len(problems), strings.Join(problems, "\n"), filepath.Join(released, allowed))
	}
}

// grids is the CRD of OrderGrid as it is in the tree, a new copy for each test.
func grids(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all, err := read("../../" + crds)
	if err != nil {
		t.Fatal(err)
	}
	return all["ordergrids.ordergrid.dev"]
}

// field of the spec of the first version, by its path.
func field(crd *apiextensionsv1.CustomResourceDefinition, path string, change func(*props)) {
	var walk func(s *props, path string)
	walk = func(s *props, path string) {
		if path == "" {
			change(s)
			return
		}
		name, rest, _ := strings.Cut(path, ".")
		below, there := s.Properties[name]
		if !there {
			panic("no field " + name)
		}
		walk(&below, rest)
		s.Properties[name] = below
	}
	walk(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, path)
}

// TestBreaks changes the real CRD, one thing at a time.
func TestBreaks(t *testing.T) {
	json := func(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }
	for _, test := range []struct {
		name, path string
		change     func(*props)
		want       string // empty: breaks nothing
	}{
		{"nothing", "", func(*props) {}, ""},
		{"a field goes", "spec", func(s *props) { delete(s.Properties, "memory") }, "OrderGrid v1alpha1 spec.memory: the field is gone: the API server drops it without a word, or refuses it where the client asks for strictness"},
		{"a field comes", "spec", func(s *props) { s.Properties["new"] = props{Type: "string"} }, ""},
		{"a required field comes", "spec", func(s *props) { s.Properties["new"] = props{Type: "string"}; s.Required = append(s.Required, "new") }, "OrderGrid v1alpha1 spec.new: the field is required and was not"},
		{"a required field with a default comes", "spec", func(s *props) {
			s.Properties["new"] = props{Type: "string", Default: json(`"x"`)}
			s.Required = append(s.Required, "new")
		}, ""},
		{"a type changes", "spec.shards", func(s *props) { s.Type = "string" }, "OrderGrid v1alpha1 spec.shards: type was integer and is string"},
		{"a maximum comes", "spec.replicas", func(s *props) { s.Maximum = ptr.To(2.0) }, "OrderGrid v1alpha1 spec.replicas: has maximum 2, where there was none"},
		{"a minimum comes", "spec.memory", func(s *props) { s.MinLength = ptr.To[int64](2) }, "OrderGrid v1alpha1 spec.memory: has minLength 2, where there was none"},
		{"a value goes", "spec.updateStrategy.type", func(s *props) { s.Enum = s.Enum[1:] }, "OrderGrid v1alpha1 spec.updateStrategy.type: value "},
		{"a value comes", "spec.updateStrategy.type", func(s *props) { s.Enum = append(s.Enum, *json(`"Later"`)) }, ""},
		{"values come where all were allowed", "spec.image", func(s *props) { s.Enum = []apiextensionsv1.JSON{*json(`"a"`)} }, `OrderGrid v1alpha1 spec.image: takes "a" only, where it took anything`},
		{"a default changes", "spec.shards", func(s *props) { s.Default = json("2") }, "OrderGrid v1alpha1 spec.shards: left out it meant 1 and means 2"},
		{"a pattern comes", "spec.image", func(s *props) { s.Pattern = "^a" }, "OrderGrid v1alpha1 spec.image: pattern was "},
		{"a rule comes", "spec", func(s *props) {
			s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{Rule: "self.shards > 1", Message: "m"})
		}, `OrderGrid v1alpha1 spec: has the rule "self.shards > 1", which it had not`},
		{"a rule's message changes", "spec", func(s *props) {
			for i := range s.XValidations {
				s.XValidations[i].Message = "other"
			}
		}, ""},
		{"a rule goes", "spec", func(s *props) { s.XValidations = nil }, ""},
		{"a list is merged otherwise", "status.conditions", func(s *props) { s.XListType = ptr.To("atomic") }, "OrderGrid v1alpha1 status.conditions: list type was map and is atomic"},
		{"a field of items goes", "status.conditions", func(s *props) { delete(s.Items.Schema.Properties, "reason"); s.Items.Schema.Required = nil }, "OrderGrid v1alpha1 status.conditions[].reason: the field is gone"},
		{"null is refused", "spec.podTemplate", func(s *props) { s.XPreserveUnknownFields = nil }, "OrderGrid v1alpha1 spec.podTemplate: kept fields it does not know and drops them"},
		{"a description changes", "spec.shards", func(s *props) { s.Description = "other" }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := grids(t)
			field(now, test.path, test.change)
			wantBreak(t, Compare(grids(t), now), test.want)
		})
	}
}

// TestBounds: a limit that is tighter breaks, one that is wider does not.
func TestBounds(t *testing.T) {
	for _, test := range []struct {
		before, now props
		want        string
	}{
		{props{Maximum: ptr.To(3.0)}, props{Maximum: ptr.To(2.0)}, "x: maximum was 3 and is 2"},
		{props{Maximum: ptr.To(3.0)}, props{Maximum: ptr.To(5.0)}, ""},
		{props{Maximum: ptr.To(3.0)}, props{}, ""},
		{props{Minimum: ptr.To(1.0)}, props{Minimum: ptr.To(2.0)}, "x: minimum was 1 and is 2"},
		{props{Minimum: ptr.To(1.0)}, props{Minimum: ptr.To(0.0)}, ""},
		{props{Minimum: ptr.To(1.0)}, props{Minimum: ptr.To(1.0), ExclusiveMinimum: true}, "x: minimum was allowed itself and is not"},
		{props{MaxItems: ptr.To[int64](4)}, props{MaxItems: ptr.To[int64](3)}, "x: maxItems was 4 and is 3"},
		{props{}, props{MaxLength: ptr.To[int64](3)}, "x: has maxLength 3, where there was none"},
		{props{Pattern: "^a"}, props{Pattern: "^b"}, "x: pattern was ^a and is ^b"},
		{props{Pattern: "^a"}, props{}, ""},
		{props{}, props{MultipleOf: ptr.To(2.0)}, "x: has to be a multiple of 2 now"},
		{props{}, props{UniqueItems: true}, "x: items may not be equal any more"},
		{props{Nullable: true}, props{}, "x: took null and does not"},
		{props{XIntOrString: true}, props{Type: "string"}, "x: took numbers and texts and takes string only"},
		{props{}, props{Format: "date-time"}, "x: format was any and is date-time"},
		{props{AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}}, props{}, "x: took any key and takes none but those it lists"},
	} {
		c := &comparison{path: "x"}
		c.schema(&test.before, &test.now)
		wantBreak(t, c.found, test.want)
	}
}

// TestBreaksOfVersions changes what is not a field.
func TestBreaksOfVersions(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*apiextensionsv1.CustomResourceDefinitionSpec)
		want   string
	}{
		{"a version goes", func(s *apiextensionsv1.CustomResourceDefinitionSpec) { s.Versions[0].Name = "v1beta1" }, "OrderGrid v1alpha1: the version is gone"},
		{"a version comes and stores", func(s *apiextensionsv1.CustomResourceDefinitionSpec) {
			next := *s.Versions[0].DeepCopy()
			next.Name = "v1beta1"
			s.Versions[0].Storage = false
			s.Versions = append(s.Versions, next)
		}, ""},
		{"a version is no longer served", func(s *apiextensionsv1.CustomResourceDefinitionSpec) { s.Versions[0].Served = false }, "OrderGrid v1alpha1: the version is not served any more"},
		{"status is written with the rest", func(s *apiextensionsv1.CustomResourceDefinitionSpec) { s.Versions[0].Subresources.Status = nil }, "OrderGrid v1alpha1: subresource status was true and is false"},
		{"the plural changes", func(s *apiextensionsv1.CustomResourceDefinitionSpec) { s.Names.Plural = "grids" }, "OrderGrid: plural name was ordergrids and is grids"},
		{"a short name goes", func(s *apiextensionsv1.CustomResourceDefinitionSpec) { s.Names.ShortNames = nil }, "OrderGrid: short name og is gone"},
		{"the scope changes", func(s *apiextensionsv1.CustomResourceDefinitionSpec) { s.Scope = apiextensionsv1.ClusterScoped }, "OrderGrid: scope was Namespaced and is Cluster"},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := grids(t)
			test.change(&now.Spec)
			wantBreak(t, Compare(grids(t), now), test.want)
		})
	}
}

func wantBreak(t *testing.T, got []Break, want string) {
	t.Helper()
	switch {
	case want == "" && len(got) != 0:
		t.Errorf("%v, want no break", got)
	case want != "" && (len(got) != 1 || !strings.HasPrefix(got[0].String(), want)):
		t.Errorf("%v, want one that begins %s", got, want)
	}
}

// TestAllowances: what people have agreed on passes, with a reason; what did not happen does not stay on the list.
func TestAllowances(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("../../" + crds + "/ordergrid.dev_ordergrids.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write(crds+"/ordergrid.dev_ordergrids.yaml", strings.Replace(string(text), "- og\n", "- grid\n", 1))
	write(released+"/ordergrid.dev_ordergrids.yaml", string(text))
	want := func(list string, want ...string) {
		t.Helper()
		write(released+"/"+allowed, list)
		if got, err := Problems(root); err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
	want("[]", "OrderGrid: short name og is gone")
	want(`[{path: OrderGrid, what: "short name og is gone", why: unused}]`)
	want(`[{path: OrderGrid, what: "short name og is gone"}]`, "allowed.yaml allows OrderGrid without a why")
	want(`[{path: OrderGrid, what: "short name og is gone", why: w}, {path: OrderGrid, what: other, why: w}]`, "allowed.yaml allows OrderGrid: other, which has not happened; remove it")

	if err := store(root); err != nil {
		t.Fatal(err)
	}
	if got, err := Problems(root); err != nil || len(got) != 0 {
		t.Errorf("after a release: %v, %v", got, err)
	}
}
