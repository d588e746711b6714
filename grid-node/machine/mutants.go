package machine

// mutantID names a deliberately broken variant of the machine, as in grid-node/replica.
type mutantID uint8

const (
	mutNone mutantID = iota
	mutEpochBoundary
	mutWindowEdge
	mutRestoreEpochless
	mutRestoreCursorless
	mutRestoreLastReply
	mutRestoreReaderless
	mutCloneShares
	mutFixInOfLast
	mutFixAttemptForgotten
	mutFixResetKeeps
	mutFixDayBackwards
	mutFixNoJump
	mutFixRestoreless
	mutFixLateReset
	mutLineageOpen
	mutOldClOrdID
	mutRestingUnsnapshotted
	mutOwnerKept
	mutFixNamesShared
	mutFixFirstOfEntry
	mutFixValueUnsnapshotted
	mutFixNumbersShared
	mutFixMassOfAll
	mutFixMassUnreported
	mutFixLapseOfFirst
	mutFixLapseUnfenced
	mutFixLapseUnsnapshotted
	mutFixLapseLate
	mutCopyUnfiltered
	mutCopyNumbersShared
	mutCopyOfStates
	mutCopyUnsnapshotted
	mutFunctionsForget
	mutFunctionsCloneFresh
	mutFunctionsStateless
	mutFunctionsChainless
	mutRegionsUnsnapshotted
	mutKillUnsnapshotted
	mutCountersUnsnapshotted
	mutKillKeepsResting
	mutPostOnlyIgnored
	mutStatesUnrestored
	mutProfileBack
	mutProfileByGeneration
	mutProfileByAge
	mutCalendarUnsnapshotted
	mutRegionBack
	mutRegionByGeneration
	mutRegionByAge
	mutRegionUnsourced
	mutBatchPartly
	mutants
)
