package plan

import (
	"fmt"
	"slices"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Skip says which faults of a completed spec are left out where some cannot be carried out. unsupported has the reason by
// the name of the fault. What starts Served or Held after a fault that is left out means nothing without it, and is left
// out too.
func Skip(spec *api.FailoverDrillSpec, unsupported map[string]string) []api.DrillSkipped {
	var skipped []api.DrillSkipped
	for _, g := range group(spec.Faults) {
		leader := "" // the first of the group that is left out
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

// Without returns the steps of a plan without those of some faults, numbered anew. The others hit whom they would have hit.
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
