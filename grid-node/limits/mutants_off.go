//go:build !mutants

package limits

func mutant(mutantID) bool { return false }

// clock returns the time of Limits, which is that of its operations.
func clock(now int64) int64 { return now }
