package sim

// operatorMutantID names a deliberately broken variant of the replicas' surroundings, such
// as a sink's writer: see mutants_on.go.
type operatorMutantID uint8

const (
	mutOperatorNone operatorMutantID = iota
	mutSinkUnfenced
	mutClockStands
	mutBudgetOpen
	mutSurgeUnclosed
	mutPlanStale
	mutFollowUncommitted
	mutLinkAhead
	mutModuleUnchecked
	operatorMutants
)
