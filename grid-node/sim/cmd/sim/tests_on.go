//go:build mutants

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// testBinary is the tests of a package below grid-node, built with the mutants.
type testBinary struct{ dir, source string }

func buildTests(pkg string) (*testBinary, error) {
	testedPackage := "github.com/ordergrid/ordergrid/grid-node/" + pkg
	source, err := exec.Command("go", "list", "-f", "{{.Dir}}", testedPackage).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", testedPackage, err)
	}
	dir, err := os.MkdirTemp("", "sim-mutants-")
	if err != nil {
		return nil, err
	}
	t := &testBinary{dir: dir, source: strings.TrimSpace(string(source))}
	if out, err := exec.Command("go", "test", "-tags", "mutants", "-c", "-o", t.path(), testedPackage).CombinedOutput(); err != nil {
		t.remove()
		return nil, fmt.Errorf("go test -c %s: %w\n%s", testedPackage, err, out)
	}
	return t, nil
}

func (t *testBinary) path() string { return filepath.Join(t.dir, "package.test") }
func (t *testBinary) remove()      { _ = os.RemoveAll(t.dir) }

// prove runs a test without the mutant, where it must pass, and with it, where it must
// fail.
func (t *testBinary) prove(name, test string) error {
	if out, failed, err := t.run("none", test); err != nil || failed || !bytes.Contains(out, []byte("--- PASS")) {
		return fmt.Errorf("mutant %s: its proof %s does not pass without it (%v)\n%s", name, test, err, out)
	}
	if out, failed, err := t.run(name, test); err != nil || !failed {
		return fmt.Errorf("mutant %s: its proof %s passes with it (%v)\n%s", name, test, err, out)
	}
	return nil
}

func (t *testBinary) run(mutant, test string) (out []byte, failed bool, err error) {
	cmd := exec.Command(t.path(), "-test.v", "-test.timeout=2m", "-test.run", test)
	cmd.Dir = t.source
	cmd.Env = append(os.Environ(), "ORDERGRID_MUTANT="+mutant)
	out, err = cmd.CombinedOutput()
	if failed = bytes.Contains(out, []byte("--- FAIL")); failed {
		err = nil
	}
	return out, failed, err
}
