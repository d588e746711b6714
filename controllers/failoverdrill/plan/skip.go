package plan

import (
	"fmt"
	"slices"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Skip returns the faults of a completed spec that are left out where some are not supported. unsupported has the
// reason by the name of the fault. Faults that start Served or Held after a skipped fault depend on it, and are skipped
// too.
func Skip(spec *api.FailoverDrillSpec, unsupported map[string]string) []api.DrillSkipped {
	var skipped []api.DrillSkipped
	for _, g := range group(spec.Faults) {
		leader := "" // the first skipped fault of the group
		for _, f := range g {
			why, is := unsupported[f.Name]
			switch {
			case leader != "":
				why = fmt.Sprintf("it starts %s after %s, which is skipped", f.Start, leader)
			case is:
				leader = f.Name
			default:
				continue
			}
			skipped = append(skipped, api.DrillSkipped{Fault: f.Name, Type: f.Type, Message: why})
		}
	}
	return skipped
}

// Without returns the steps of a plan without those of some faults, renumbered. The targets of the others do not
// change.
func Without(steps []Step, skipped []api.DrillSkipped) []Step {
	var left []Step
	for _, s := range steps {
		if slices.ContainsFunc(skipped, func(k api.DrillSkipped) bool { return k.Fault == s.Fault.Name }) {
			continue
		}
		s.Index = len(left)
		left = append(left, s)
	}
	return left
}
