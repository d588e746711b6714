//go:build faulty

package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

func init() {
	fmt.Fprintln(os.Stderr, "grid-node: BUILT WITH THE TAG faulty: it can be told to lose orders; for tests only")
}

// addFaults adds the flags of a build that can be told to fail.
func addFaults(fl *pflag.FlagSet) {
	fl.Uint64Var(&replica.DropEvery, "faulty-drop-every", 0, "acknowledge every so manyth order of a partition and throw it away; 0: none")
}
