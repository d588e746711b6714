package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"regexp"
	"strings"
)

// field is one struct field with what the rules ask of it.
type field struct {
	owner string
	node  *ast.Field
}

func (f field) goType() string { return types.ExprString(f.node.Type) }

func (f field) jsonTag() (name string, omitempty, inline bool) {
	if f.node.Tag == nil {
		return "", false, false
	}
	tag := reflect.StructTag(strings.Trim(f.node.Tag.Value, "`")).Get("json")
	parts := strings.Split(tag, ",")
	for _, o := range parts[1:] {
		omitempty = omitempty || o == "omitempty" || o == "omitzero"
		inline = inline || o == "inline"
	}
	return parts[0], omitempty, inline
}

// markers are the comment lines of the field that begin with "+".
func (f field) markers() (list []string) {
	if f.node.Doc == nil {
		return nil
	}
	for _, c := range f.node.Doc.List {
		if text := strings.TrimSpace(strings.TrimPrefix(c.Text, "//")); strings.HasPrefix(text, "+") {
			list = append(list, text)
		}
	}
	return list
}

func (f field) has(prefix string) bool {
	for _, m := range f.markers() {
		if strings.HasPrefix(m, prefix) {
			return true
		}
	}
	return false
}

var camel = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)

// checkField applies every rule to one field and returns a sentence for each that it breaks.
func checkField(f field) []string {
	name, omitempty, inline := f.jsonTag()
	if inline || (len(f.node.Names) == 0 && name == "") || name == "metadata" {
		return nil
	}
	if !camel.MatchString(name) {
		return []string{fmt.Sprintf("field %s has the JSON name %q: give it one in camelCase", fieldName(f), name)}
	}
	var problems []string
	for _, rule := range []func(field, string, bool) string{
		commentStart, optionalOrRequired, noBools, noFloats, sizedIntegers, durations, listTypes, boundedStrings, noPhase, conditions,
	} {
		if p := rule(f, name, omitempty); p != "" {
			problems = append(problems, p)
		}
	}
	return problems
}

func fieldName(f field) string {
	if len(f.node.Names) > 0 {
		return f.node.Names[0].Name
	}
	return f.goType()
}

func commentStart(f field, name string, _ bool) string {
	text := ""
	if f.node.Doc != nil {
		text = strings.TrimSpace(f.node.Doc.Text())
	}
	if !strings.HasPrefix(text, name+" ") && !strings.HasPrefix(text, name+":") {
		return fmt.Sprintf("%s: its comment must begin with %q, as kubectl explain prints it", name, name)
	}
	return ""
}

func optionalOrRequired(f field, name string, omitempty bool) string {
	optional, required := f.has("+optional"), f.has("+required")
	switch {
	case optional == required:
		return fmt.Sprintf("%s: mark it with exactly one of +optional and +required", name)
	case optional && !omitempty:
		return fmt.Sprintf("%s: optional fields take omitempty or omitzero", name)
	}
	return ""
}

func noBools(f field, name string, _ bool) string {
	if t := strings.TrimPrefix(f.goType(), "*"); t == "bool" {
		return fmt.Sprintf("%s: a bool cannot grow a third value; use a string enum", name)
	}
	return ""
}

func noFloats(f field, name string, _ bool) string {
	if strings.Contains(f.goType(), "float") {
		return fmt.Sprintf("%s: floats do not survive a round trip; use an integer with a unit, a string or resource.Quantity", name)
	}
	return ""
}

func sizedIntegers(f field, name string, _ bool) string {
	switch t := strings.TrimLeft(f.goType(), "*[]"); t {
	case "int", "uint", "uint8", "uint16", "uint32", "uint64", "int8", "int16":
		return fmt.Sprintf("%s: %s; API integers are int32 or int64", name, t)
	}
	return ""
}

func durations(f field, name string, _ bool) string {
	if strings.Contains(f.goType(), "time.Duration") {
		return fmt.Sprintf("%s: time.Duration is nanoseconds in JSON; use metav1.Duration", name)
	}
	for _, suffix := range []string{"Seconds", "Millis", "Minutes"} {
		if strings.HasSuffix(name, suffix) {
			return fmt.Sprintf("%s: durations are metav1.Duration, not a number of %s", name, strings.ToLower(suffix))
		}
	}
	return ""
}

func listTypes(f field, name string, _ bool) string {
	if strings.HasPrefix(f.goType(), "[]") && f.goType() != "[]byte" && !f.has("+listType=") {
		return fmt.Sprintf("%s: a list needs +listType=atomic, set or map (with +listMapKey) to be applied server-side", name)
	}
	return ""
}

// boundedStrings holds the cost of CEL rules down and a hostile object small.
func boundedStrings(f field, name string, _ bool) string {
	t := strings.TrimPrefix(f.goType(), "*")
	switch {
	case t == "string" && !f.has("+kubebuilder:validation:MaxLength") && !f.has("+kubebuilder:validation:Enum"):
		return fmt.Sprintf("%s: a string needs +kubebuilder:validation:MaxLength", name)
	case strings.HasPrefix(t, "[]") && !strings.Contains(t, "metav1.Condition") && !f.has("+kubebuilder:validation:MaxItems"):
		return fmt.Sprintf("%s: a list needs +kubebuilder:validation:MaxItems", name)
	}
	return ""
}

func noPhase(_ field, name string, _ bool) string {
	if name == "phase" {
		return "phase: a phase hides what conditions say; use conditions"
	}
	return ""
}

func conditions(f field, name string, _ bool) string {
	if name != "conditions" {
		return ""
	}
	if f.goType() != "[]metav1.Condition" || !f.has("+listType=map") || !f.has("+listMapKey=type") {
		return "conditions: must be []metav1.Condition with +listType=map and +listMapKey=type"
	}
	return ""
}
