package sim

// operatorMutantID names a deliberately broken variant of what stands around the replicas, how the operator gives a
// partition up and how a writer feeds the sink: see mutants_on.go.
type operatorMutantID uint8

const (
	mutOperatorNone operatorMutantID = iota
	mutJudgeUnrevised
	mutJudgeUnsunk
	mutRetireUncompared
	mutSinkUnfenced
	mutClockStands
	mutBudgetOpen
	mutSurgeUnclosed
	operatorMutants
)
