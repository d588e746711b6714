package main

import (
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	for _, tc := range []struct{ name, field, want string }{
		{"good", "// size is how many.\n// +required\nSize int32 `json:\"size\"`", ""},
		{"comment", "// Size is how many.\n// +required\nSize int32 `json:\"size\"`", "must begin with"},
		{"neither", "// size is how many.\nSize int32 `json:\"size\"`", "exactly one of"},
		{"both", "// size is how many.\n// +optional\n// +required\nSize int32 `json:\"size,omitempty\"`", "exactly one of"},
		{"omitempty", "// size is how many.\n// +optional\nSize int32 `json:\"size\"`", "omitempty"},
		{"bool", "// on is it.\n// +optional\nOn *bool `json:\"on,omitempty\"`", "string enum"},
		{"float", "// p is it.\n// +required\nP float64 `json:\"p\"`", "floats"},
		{"int", "// n is it.\n// +required\nN int `json:\"n\"`", "int32 or int64"},
		{"duration", "// d is it.\n// +required\nD time.Duration `json:\"d\"`", "metav1.Duration"},
		{"seconds", "// timeoutSeconds is it.\n// +required\nT int32 `json:\"timeoutSeconds\"`", "metav1.Duration"},
		{"list", "// l is it.\n// +required\n// +kubebuilder:validation:MaxItems=3\nL []string `json:\"l\"`", "+listType"},
		{"unbounded list", "// l is it.\n// +required\n// +listType=atomic\nL []string `json:\"l\"`", "MaxItems"},
		{"unbounded string", "// s is it.\n// +required\nS string `json:\"s\"`", "MaxLength"},
		{"phase", "// phase is it.\n// +optional\nPhase Mode `json:\"phase,omitempty\"`", "conditions"},
		{"conditions", "// conditions are it.\n// +optional\n// +listType=atomic\n// +kubebuilder:validation:MaxItems=3\nC []string `json:\"conditions,omitempty\"`", "[]metav1.Condition"},
		{"no tag", "// x is it.\nX int32", "camelCase"},
		{"snake", "// x_y is it.\nX int32 `json:\"x_y\"`", "camelCase"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := lintSource("x.go", []byte("package x\ntype T struct {\n"+tc.field+"\n}\n"))
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(got, "\n")
			if (tc.want == "") != (all == "") || !strings.Contains(all, tc.want) {
				t.Fatalf("got %q, want it to contain %q", all, tc.want)
			}
		})
	}
}

func TestLintDirNamesWhatIsWrong(t *testing.T) {
	if _, err := lintDir(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no Go files") {
		t.Fatalf("got %v", err)
	}
}
