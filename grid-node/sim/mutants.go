package sim

// operatorMutantID names a deliberately broken variant of how the operator gives a partition up: see mutants_on.go.
type operatorMutantID uint8

const (
	mutOperatorNone operatorMutantID = iota
	mutJudgeUnrevised
	mutJudgeUnsunk
	mutRetireUncompared
	operatorMutants
)
