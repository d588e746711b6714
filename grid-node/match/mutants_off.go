//go:build !mutants

package match

func mutant(mutantID) bool { return false }

// clock returns the engine's time, which is that of its operations.
func clock(now int64) int64 { return now }

// victim returns the order that a mass cancel visits next.
func (e *Engine) victim(s *sweep) uint32 { return s.slot }
