//go:build !faulty

package replica

import "github.com/ordergrid/ordergrid/grid-node/wire"

// Faulty reports that this build can be configured to lose orders; see faulty_on.go.
const Faulty = false

// Dropped is always 0.
func Dropped() (orders, every uint64) { return 0, 0 }

// throwsAway reports whether orders are dropped; see faulty_on.go.
func throwsAway() bool { return false }

// throwAway is never true; see faulty_on.go.
func (r *Replica) throwAway(uint64, *wire.Submit) bool { return false }
