package sim

// operatorMutantID names a deliberately broken variant of what stands around the replicas, as how a writer feeds the
// sink: see mutants_on.go.
type operatorMutantID uint8

const (
	mutOperatorNone operatorMutantID = iota
	mutSinkUnfenced
	mutClockStands
	mutBudgetOpen
	mutSurgeUnclosed
	mutPlanStale
	operatorMutants
)
