//go:build !mutants

package main

import "github.com/spf13/cobra"

// Without the tag there are no mutants: the simulator runs the node's code.

func mutantFlags(*cobra.Command, *options) {}

func selectMutant(string) error { return nil }
