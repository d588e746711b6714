package limits

// mutantID names a deliberately broken variant, as in grid-node/match.
type mutantID uint8

const (
	mutNone mutantID = iota
	mutCounterless
	mutLocalClock
	mutFillBeyond
	mutOverflow
	mutRestoreRestricted
	mutNoMaxValue
	mutants
)
