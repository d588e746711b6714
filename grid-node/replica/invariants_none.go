//go:build !invariants

package replica

type logCheck struct{}

// check is too expensive for production; see invariants_log.go.
func (logCheck) check(*Replica) {}

func (logCheck) begin(*Replica) {}
