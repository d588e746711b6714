//go:build mutants

package replica

import (
	"fmt"
	"os"
	"testing"
)

// TestMain breaks the protocol in the way that the environment names: `make
// sim-mutants` runs the test that a mutant names as its proof, which has to fail.
func TestMain(m *testing.M) {
	if name := os.Getenv("ORDERGRID_MUTANT"); name != "" {
		if err := SelectMutant(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	m.Run()
}
