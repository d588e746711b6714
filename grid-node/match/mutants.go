package match

// mutantID names a deliberately broken variant of the engine, as in grid-node/machine.
type mutantID uint8

const (
	mutNone mutantID = iota
	mutSweepMap
	mutLocalClock
	mutFloatPrice
	mutKeepPriority
	mutSelfTrade
	mutPressure
	mutIcebergKeeps
	mutFOKPartial
	mutRestoreDisplay
	mutRestoreSweep
	mutSweepLate
	mutRestoreParty
	mutKilledTrades
	mutBandStands
	mutRestoreBand
	mutants
)
