package view

// mutantID names a deliberately broken variant, as in grid-node/machine.
type mutantID uint8

const (
	mutNone mutantID = iota
	mutZoneEdge
	mutPostingLost
	mutDictCollision
	mutPrefixIgnored
	mutStateEarly
	mutRunEdge
	mutFarIgnored
	mutSkipsEntry // this one and those after it are of a Follower
	mutAppliesUncommitted
	mutDropsLate
	mutDropsEarly
	mutReadersForgotten
	mutHistoryUnchecked
	mutPageBase
	mutants
)
