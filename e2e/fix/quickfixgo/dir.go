// Package quickfixgo finds the module of quickfixgo, which has the acceptance scripts and
// the specifications of FIX, in the module cache. The version is pinned by go.mod of
// e2e/fix, a module of its own: nothing that is delivered depends on it.
package quickfixgo

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"

	_ "github.com/quickfixgo/quickfix" // keeps the version in go.mod
)

// Version is that of go.mod.
const Version = "v0.9.7"

// FIX50 returns the files of the dictionaries of FIXT 1.1 and FIX 5.0 SP2.
func FIX50() (transport, application string, err error) {
	dir, err := Dir()
	return filepath.Join(dir, "spec", "FIXT11.xml"), filepath.Join(dir, "spec", "FIX50SP2.xml"), err
}

// Dir returns the directory of the module, which is downloaded if it is not there.
func Dir() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", "github.com/quickfixgo/quickfix").Output()
	version, dir, ok := bytes.Cut(bytes.TrimSpace(out), []byte(" "))
	switch {
	case err != nil:
		return "", fmt.Errorf("go list -m github.com/quickfixgo/quickfix: %w", err)
	case !ok || len(dir) == 0:
		return "", fmt.Errorf("github.com/quickfixgo/quickfix %s is not in the module cache: run go mod download in e2e/fix", Version)
	case string(version) != Version:
		return "", fmt.Errorf("github.com/quickfixgo/quickfix is %s, expected %s", version, Version)
	}
	return string(dir), nil
}
