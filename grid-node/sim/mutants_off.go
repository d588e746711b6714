//go:build !mutants

package sim

func operatorMutant(operatorMutantID) bool { return false }
