//go:build mutants

package machine

import (
	"os"
	"testing"
)

// TestMain breaks the machine in the way that the environment names, as in
// grid-node/replica.
func TestMain(m *testing.M) {
	SelectMutant(os.Getenv("ORDERGRID_MUTANT"))
	m.Run()
}
