package replica

// mutantID names a deliberately broken variant of the protocol. They prove that the
// simulator would notice (`make sim-mutants`): mutants_on.go lists what each one breaks.
// Without the build tag mutant is a constant false, and the compiler removes every check
// of it.
type mutantID uint8

const (
	mutNone mutantID = iota
	mutAckBeforeBackup
	mutShrinkKeepsAcking
	mutMinInSyncIgnored
	mutForgetHash
	mutReturnToOldEpoch
	mutUnknownAdmissionFailed
	mutStaleConfig
	mutPromoteByPod
	mutFencedAnswers
	mutOldEpochAccepted
	mutFormerProcess
	mutAdmitEarly
	mutAdmitBeforeAckSet
	mutReadBeforeFloor
	mutReadOldEcho
	mutReadSuspended
	mutDuplicateEarly
	mutLeaseFromReceipt
	mutTakeOverInLease
	mutWakeIgnored
	mutDedupeForgotten
	mutSessionFenceIgnored
	mutHandOverUndrained
	mutWatchBelieved
	mutHandOverLeases
	mutBackupLeaves
	mutCursorAhead
	mutForeignReaders
	mutDoubtIgnored
	mutFreeUndrained
	mutFreeUncommitted
	mutSnapshotBare
	mutSurplusMiscounted
	mutClimbTakesLearners
	mutUntrueKept
	mutReadOneEcho
	mutStaleNack
	mutStaleAck
	mutStaleJoinReply
	mutStaleSnapshotRequest
	mutAnySender
	mutStaleBeacon
	mutToldKept
	mutRestForEver
	mutVitalsLeaseKept
	mutDataLeaseKept
	mutFenceUnheard
	mutLeasedForgotten
	mutEchoUnclamped
	mutUnknownHandOverFailed
	mutUnknownRetireFailed
	mutChangeUnheard
	mutRefusedForgets
	mutHandOverUnheard
	mutParkedForgotten
	mutCursorParking
	mutTruncateParking
	mutTruncateFull
	mutUnsettled
	mutLateJoinReply
	mutReleasedAgain
	mutLeaverUnanswered
	mutBaseUntold
	mutSecondProcess
	mutFreeSnapshot
	mutEvictUnderWay
	mutEvictAnybody
	mutConnectionsKept
	mutAttemptEqual
	mutWithdrawnProposes
	mutOlderLineageShown
	mutAdoptOnWord
	mutToldChain
	mutDiscardOnWord
	mutJoinsUnbounded
	mutHashOfLast
	mutClaimsCopies
	mutApplyByRole
	mutFreeUnapplied
	mutClimbShrinks
	mutHandOverUnproved
	mutDigestIgnored
	mutDifferenceKept
	mutOldCopyFirst
	mutLearnerCounted
	mutStalePods
	mutSpecOutlives
	mutUnwantedClaims
	mutRankIgnored
	mutWithdrawnForgotten
	mutFollowUnchecked
	mutFollowSkips
	mutFollowLearner
	mutAdvanceUnchecked
	mutPinForgotten
	mutants
)
