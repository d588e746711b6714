package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/envtest"
)

// TestEveryCommandIsOnThePage: docs/kubectl.md has every command with text and example, and every command it shows
// exists.
func TestEveryCommandIsOnThePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(envtest.Root(), "docs", "kubectl.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range rootCommand().Commands() {
		if !strings.Contains(string(page), "`"+c.CommandPath()) {
			t.Errorf("%q is not on the page", c.CommandPath())
		}
		if c.Short == "" || c.Long == "" || !c.HasExample() && !c.HasSubCommands() {
			t.Errorf("%s --help has no text or no example", c.CommandPath())
		}
	}
	for _, shown := range strings.Split(string(page), "`kubectl ordergrid ")[1:] {
		words := strings.Fields(strings.SplitN(shown, "`", 2)[0])
		if c, _, err := rootCommand().Find(words); err != nil || !c.HasParent() {
			t.Errorf("the page shows %q, which is not a command: %v", words, err)
		}
	}
}
