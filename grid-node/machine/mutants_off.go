//go:build !mutants

package machine

func mutant(mutantID) bool { return false }
