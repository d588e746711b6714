package testgrid

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Instruments is what a grid of Matching trades.
const Instruments = `
- {symbol: IBM, tick: "0.05", lot: "1", low: "0", high: "1000", reference: "125"}
- {symbol: OIL, tick: "1", lot: "1", low: "-100", high: "100"}
`

// Matching starts a grid that matches Instruments, with more arguments for grid-node dev, and behind "--" for its nodes.
// It ends with the test.
func Matching(t testing.TB, args ...string) *Grid {
	t.Helper()
	file := filepath.Join(t.TempDir(), "instruments.yaml")
	if err := os.WriteFile(file, []byte(Instruments), 0o600); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(args, "--") {
		args = append(args, "--")
	}
	return Run(t, append(args, "--execution", "match", "--instruments", file)...)
}
