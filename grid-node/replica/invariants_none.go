//go:build !invariants

package replica

type logCheck struct{}

// checkLog costs too much for production; see invariants_log.go.
func (r *Replica) checkLog() {}
