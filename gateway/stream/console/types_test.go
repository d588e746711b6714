package console

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The types that comments of the scripts declare are right, and one that is not is found.
func TestTypes(t *testing.T) {
	tsc, err := exec.LookPath(cmp.Or(os.Getenv("TSC"), "tsc"))
	if err != nil {
		if os.Getenv("ORDERGRID_REQUIRE_TSC") != "" {
			t.Fatal(err)
		}
		t.Skipf("%v (npm: typescript@7.0.2)", err)
	}
	check := func(dir string) (string, error) {
		out, err := exec.CommandContext(t.Context(), tsc, "--pretty", "false", "--project", dir).CombinedOutput()
		return string(out), err
	}
	if out, err := check("."); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for name, mistake := range map[string][2]string{
		"a field that no message has": {"m.position.split", "m.place.split"},
		"a number for a text":         {`onState("open", "live")`, `onState("open", 1)`},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "files", "stream.js")
		text, err := os.ReadFile(file)
		if err != nil || strings.Count(string(text), mistake[0]) != 1 {
			t.Fatalf("%s: %v, or %q is not there once", name, err, mistake[0])
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), mistake[0], mistake[1], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := check(dir); err == nil || !strings.Contains(out, "stream.js(") {
			t.Errorf("%s is not found: %v\n%s", name, err, out)
		}
	}
}
