//go:build mutants

package replica

import (
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/machine"
)

// proofs are the tests of this package that fail with a mutant, as for go test -run: for
// mutants that the simulator would find only after very many seeds, or whose harm it does
// not check. The simulator must find all others.
var proofs = [mutants]string{
	mutWithdrawnProposes:     "^TestScripts$/^accept_loss_withdrawn$",
	mutOlderLineageShown:     "^TestScripts$/^accept_loss_other_learner$",
	mutClimbTakesLearners:    "^TestScripts$/^reassert_learner$",
	mutHandOverUnproved:      "^TestScripts$/^handover_cut_off$",
	mutFollowUnchecked:       "^TestScripts$/^follow$",
	mutFollowLearner:         "^TestScripts$/^follow$",
	mutAdvanceUnchecked:      "^TestScripts$/^advance$",
	mutToldChain:             "^TestScripts$/^told_chain$",
	mutUntrueKept:            "^TestScripts$/^told_regressed$",
	mutInvokeFailedEarly:     "^TestScripts$/^invoke_failed$",
	mutReadOneEcho:           "^TestScripts$/^read_two_backups$",
	mutStaleNack:             "^TestFramesOfAnotherEpoch$/^Nack$",
	mutStaleAck:              "^TestFramesOfAnotherEpoch$/^PrepareAck$",
	mutStaleJoinReply:        "^TestFramesOfAnotherEpoch$/^JoinReply$",
	mutStaleSnapshotRequest:  "^TestFramesOfAnotherEpoch$/^SnapshotRequest$",
	mutAnySender:             "^TestFramesOfAnotherSender$",
	mutStaleBeacon:           "^TestVitalsDropWhatIsNotForThem$/^older_epoch$",
	mutCommitUnsaid:          "^TestFollowedBackupIsToldOfCommits$",
	mutToldKept:              "^TestWhatWasToldEndsWithItsEpoch$",
	mutVitalsLeaseKept:       "^TestLeaseIsEarnedAnewInEveryEpoch$/^heartbeats$",
	mutDataLeaseKept:         "^TestLeaseIsEarnedAnewInEveryEpoch$/^data$",
	mutFenceUnheard:          "^TestTakeOverAndAnswersExcludeEachOther$",
	mutLeasedForgotten:       "^TestLeasedIsRememberedOfData$",
	mutEchoUnclamped:         "^TestVitalsLeaseFromWhatWasSent$",
	mutUnknownHandOverFailed: "^TestScripts$/^handover_unknown$",
	mutUnknownRetireFailed:   "^TestScripts$/^retire_unanswered$",
	mutChangeUnheard:         "^TestScripts$/^move_unheard$",
	mutRefusedForgets:        "^TestScripts$/^refused_after_unknown$",
	mutSpecOutlives:          "^TestScripts$/^reassert_spec$",
	mutWithdrawnForgotten:    "^TestScripts$/^move_stale$",
	mutHandOverUnheard:       "^TestScripts$/^handover_unheard_member$",
	mutParkedForgotten:       "^TestScripts$/^handover_parked$",
	mutCursorParking:         "^TestScripts$/^handover_cursor$",
	mutTruncateParking:       "^TestScripts$/^handover_truncate$",
	mutTruncateFull:          "^TestTruncateInAFullWindow$",
	mutUnsettled:             "^TestLearnerIsSettledBeforeItCounts$",
	mutLateJoinReply:         "^TestLateJoinReplyAcceptsNobody$",
	mutReleasedAgain:         "^TestScripts$/^released_join_late$",
	mutBaseUntold:            "^TestScripts$/^truncate_lost_reply$",
	mutLeaverUnanswered:      "^TestScripts$/^drain_dropped_learner$",
	mutSecondProcess:         "^TestScripts$/^zombie_joins$",
	mutFreeSnapshot:          "^TestScripts$/^truncate_snapshot$",
	mutDemoteUndrained:       "^TestScripts$/^standby_demote$",
	mutDemoteAdmits:          "^TestScripts$/^standby_demote_unknown$",
	mutStandbyNoop:           "^TestScripts$/^standby_failover$",
	mutStandbyCursors:        "^TestScripts$/^standby$",
	mutCopyUnreserved:        "^TestCopiesInAFullLog$",
	mutCopyNamedAhead:        "^TestScripts$/^fix_copies$",
	mutCopyEndedLate:         "^TestScripts$/^fix_copies$",
	mutResumedCounted:        "^TestResumedEntriesAreNotCounted$",
	mutStandbyServes:         "^TestScripts$/^standby$",
	mutLinkUnchecked:         "^TestScripts$/^standby$",
	mutLinkUncommitted:       "^TestScripts$/^standby_failover$",
	mutTermIgnored:           "^TestScripts$/^standby$",
	mutPromoteShort:          "^TestScripts$/^standby_promote$",
	mutPromoteTakes:          "^TestScripts$/^standby_promote_unknown$",
	mutPromoteKeepsEpoch:     "^TestScripts$/^standby_promote$",
	mutForcedKeepsLineage:    "^TestScripts$/^standby_forced$",
	mutFenceForgotten:        "^TestScripts$/^standby_fenced$",
	mutEvictUnderWay:         "^TestScripts$/^eviction_under_way$",
	mutConnectionsKept:       "^TestScripts$/^old_connection$",

	mutFeaturesUnasked:    "^TestScripts$/^fix_books_versions$",
	mutCalendarBack:       "^TestCalendarThatIsBehind$",
	mutGuardUnasked:       "^TestScripts$/^limits_versions$",
	mutFixUnasked:         "^TestScripts$/^fix_versions$",
	mutFixOpenUncommitted: "^TestScripts$/^fix_open$",
	mutFixFenceIgnored:    "^TestScripts$/^fix_take$",
	mutFixPrevUnchecked:   "^TestScripts$/^fix_chain$",
	mutFixRefusalUnlogged: "^TestScripts$/^fix_refusals$",
	mutFixReasonUntold:    "^TestScripts$/^fix_refusals$",
	mutFixStepUncommitted: "^TestScripts$/^fix_steps$",
	mutFixPagesKept:       "^TestScripts$/^fix_resend$",

	mutFixRefusalUnchained: "^TestScripts$/^fix_refusals$",
	mutFixBoundTwice:       "^TestScripts$/^fix_take$",
	mutFixOpenOther:        "^TestScripts$/^fix_take$",
	mutFixIndexClOrdID:     "^TestScripts$/^fix_refusals$",
	mutFixIndexDayless:     "^TestScripts$/^fix_refusals$",
	mutFixGoneUnasked:      "^TestScripts$/^fix_probe$",
	mutFixAgainRefused:     "^TestScripts$/^fix_again$",
	mutFixAgainAsSent:      "^TestScripts$/^fix_again$",

	mutFunctionsUnasked: "^TestScripts$/^functions_versions$",

	mutAttemptEqual: "^TestScripts$/^fence$",
}

// Proof of a mutant: the package below grid-node and the test in it; "" the simulator's.
func Proof(name string) (pkg, test string) {
	for _, m := range machine.Mutants() {
		if m.Name == name && m.Proof != "" {
			pkg, test, _ = strings.Cut(m.Proof, " ")
			return pkg, test
		}
	}
	for id := range mutantList {
		if mutantList[id].Name == name && proofs[id] != "" {
			return "replica", proofs[id]
		}
	}
	return "", ""
}
