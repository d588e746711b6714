//go:build !mutants

package main

import "github.com/spf13/cobra"

// Without the tag there are no mutants: what runs is what the node runs.

func mutantFlags(*cobra.Command, *options) {}

func selectMutant(string) error { return nil }
