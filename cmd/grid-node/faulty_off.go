//go:build !faulty

package main

import "github.com/spf13/pflag"

// addFaults adds no flag: this build has no fault injection.
func addFaults(*pflag.FlagSet) {}
