package ledger

import (
	"fmt"

	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

// Verifier is a Checker together with its negative control.
type Verifier struct {
	*Checker
	control  *Checker
	dropped  bool
	repeated bool
}

// NewVerifier begins behind sequence number last, like NewChecker.
func NewVerifier(id fixorder.ID, last, lastHash uint64, known bool) *Verifier {
	return &Verifier{Checker: NewChecker(id, last, lastHash, known)}
}

// Begin starts a step for the checker and for a fresh control.
func (v *Verifier) Begin(first int64, orders []load.Order, content ContentCheck) {
	v.Checker.Begin(first, orders, content)
	v.control = &Checker{id: v.id, log: v.log, lastHash: v.lastHash, hashed: v.hashed}
	// The control need not know the checker's earlier steps: a late order counts as a duplicate for
	// neither.
	v.control.Begin(first, orders, content)
	v.dropped, v.repeated = false, false
}

// Entry passes the entry on; the control never sees the first acknowledged
// order of the step and sees the second one twice.
func (v *Verifier) Entry(e Entry) {
	v.Checker.Entry(e)
	if e.IsOrder && v.acked(e) {
		switch {
		case !v.dropped:
			v.dropped = true
			return
		case !v.repeated:
			v.repeated = true
			v.control.Entry(e)
		}
	}
	v.control.Entry(e)
}

func (v *Verifier) acked(e Entry) bool {
	id, index, ok := fixorder.ParseID(e.ClOrdID)
	i := index - v.first
	return ok && id == v.id && i >= 0 && i < int64(len(v.orders)) && v.orders[i].Fate == load.Acked && v.orders[i].Seq == e.Seq
}

// Finish ends the step. An error means that the control missed the modifications of its log, so
// that the counts are meaningless. A step with fewer than two acknowledged orders has no control;
// one with violations needs none.
func (v *Verifier) Finish() (Counts, error) {
	counts, control := v.Checker.Finish(), v.control.Finish()
	// A detector that has just found something works.
	if !v.dropped || !v.repeated || counts.Violations() > 0 {
		return counts, nil
	}
	lost, dup, gaps := control.Lost-counts.Lost, control.Duplicates-counts.Duplicates, control.Gaps-counts.Gaps
	// The repeated entry is both a sequence number and a ClOrdID seen twice.
	if lost != 1 || dup < 1 || gaps != 1 {
		return counts, fmt.Errorf("negative control: with one order removed from the log and one repeated, the detector found %d lost, %d duplicates and %d gaps more; want 1, at least 1, and 1", lost, dup, gaps)
	}
	return counts, nil
}
