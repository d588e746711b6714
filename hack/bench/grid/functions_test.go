package grid

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// TestBare: a program built with the tag is taken for bare, and a release is not.
func TestBare(t *testing.T) {
	dir := t.TempDir()
	for tags, bare := range map[string]bool{"nofunctions": true, "": false} {
		program := testgrid.Program(t, "grid-node", strings.Fields(tags)...)
		if err := Bare(t.Context(), dir, program); (err == nil) != bare {
			t.Errorf("built with the tags %q: %v, bare: %v", tags, err, bare)
		}
	}
}
