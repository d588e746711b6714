// Package checkout finds the working tree a tool of development or a test runs in, and lays out the tree of an earlier
// commit, for suites in which the programs of today meet those of then.
package checkout

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Module is the path of the Go module.
const Module = "github.com/ordergrid/ordergrid"

// Root is the root of the working tree that the current directory is in.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.Contains("\n"+string(content), "\nmodule "+Module+"\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a checkout of %s; change into one", start, Module)
		}
	}
}
