//go:build !mutants

package replica

func mutant(mutantID) bool { return false }
