package crds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	if v, err := Version("../../.."); err != nil || !strings.HasPrefix(v, "v0.9.1-0.") {
		t.Errorf("the checkout pins %q, %v", v, err)
	}
	root := t.TempDir()
	if _, err := Version(root); err == nil {
		t.Error("a checkout without the module has a version")
	}
	mod := filepath.Join(root, binaries, "go.mod")
	if err := os.MkdirAll(filepath.Dir(mod), 0o755); err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]string{
		"require " + Module + "/api v1.2.3\n":                 "",
		"require (\n\t" + Module + " v1.2.3\n)\n":             "v1.2.3",
		"replace (\n\t" + Module + " => ./x\n)\n":             "",
		"require (\n\t" + Module + " v1.2.3 // indirect\n)\n": "",
		"require (\n\tx v1.0.0\n\t" + Module + " v1.2.4\n)\n": "v1.2.4",
		"// nothing\n": "",
	} {
		if err := os.WriteFile(mod, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := Version(root)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", content, got, err, want)
		}
	}
}
