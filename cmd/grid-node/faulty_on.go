//go:build faulty

package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

func init() {
	fmt.Fprintln(os.Stderr, "grid-node: BUILT WITH THE TAG faulty: it can lose orders on request; for tests only")
}

// addFaults adds the flags of a build with fault injection.
func addFaults(fl *pflag.FlagSet) {
	fl.Uint64Var(&replica.DropEvery, "faulty-drop-every", dropEvery(), "acknowledge every Nth order of a partition and drop it; 0: none; default $"+dropEveryEnv)
}

// dropEveryEnv is for pods: an OrderGrid's spec.podTemplate may add a variable, but no argument.
const dropEveryEnv = "ORDERGRID_FAULTY_DROP_EVERY"

func dropEvery() uint64 {
	v := os.Getenv(dropEveryEnv)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		fmt.Fprintf(os.Stderr, "grid-node: $%s: value %q, allowed: a number, 0 for no order\n", dropEveryEnv, v)
		os.Exit(2)
	}
	return n
}
