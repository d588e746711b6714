//go:build !faulty

package replica

import "github.com/ordergrid/ordergrid/grid-node/wire"

// throwAway is never true; see faulty_on.go.
func (r *Replica) throwAway(uint64, *wire.Submit, *session) bool { return false }
