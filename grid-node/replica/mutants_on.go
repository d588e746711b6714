//go:build mutants

package replica

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/machine"
)

// selected is set before any replica runs and not changed while one does.
var selected mutantID

func mutant(id mutantID) bool { return selected == id }

// Mutant is a deliberately broken variant of the protocol.
type Mutant struct {
	Name   string
	Breaks string // what it does, against which rule
}

var mutantList = [mutants]Mutant{
	mutNone:                   {"none", "nothing: the protocol as it is"},
	mutAckBeforeBackup:        {"ack-before-backup", "an order is acknowledged before any backup stored it"},
	mutShrinkKeepsAcking:      {"shrink-keeps-acking", "a primary keeps acknowledging, without the silent member, before the arbiter has dropped it"},
	mutMinInSyncIgnored:       {"min-in-sync-ignored", "orders that were accepted before a member was lost are committed with too few copies"},
	mutForgetHash:             {"forget-prev-hash", "neither side compares hashes: a log that does not chain is stored and acknowledged"},
	mutReturnToOldEpoch:       {"return-to-old-epoch", "a take-over or shrink whose outcome is unknown is treated as failed, the old epoch continues"},
	mutUnknownAdmissionFailed: {"unknown-admission-failed", "an admission whose outcome is unknown is treated as failed, the learner leaves the ack set"},
	mutStaleConfig:            {"stale-configuration", "a replica adopts any configuration of the watch, old epochs too"},
	mutPromoteByPod:           {"promote-by-pod-name", "a process counts as a member when its pod's name is listed, whatever its boot id"},
	mutFencedAnswers:          {"fenced-answers", "a backup that proposed its take-over keeps answering beacons and prepares of the old epoch"},
	mutOldEpochAccepted:       {"old-epoch-accepted", "a backup stores prepares of a past epoch"},
	mutFormerProcess:          {"former-process", "a primary mistakes a restarted process for its predecessor, with all its entries"},
	mutAdmitEarly:             {"admit-before-caught-up", "a learner is proposed for inSync before it holds the committed entries"},
	mutAdmitBeforeAckSet:      {"admit-before-ack-set", "a learner is proposed for inSync while commits do not wait for it yet"},
	mutReadBeforeFloor:        {"read-before-floor", "a new primary serves reads before the entries it took over are committed"},
	mutReadOldEcho:            {"read-old-echo", "a read is confirmed by an answer to a message sent before the read arrived"},
	mutReadSuspended:          {"read-suspended", "a primary that proposed to drop a member confirms reads without it"},
	mutDuplicateEarly:         {"duplicate-early", "a ClOrdID is refused as duplicate of an order that is not committed yet"},
	mutLeaseFromReceipt:       {"lease-from-receipt", "the read lease counts from when an answer came, not from when its beacon was sent"},
	mutTakeOverInLease:        {"take-over-in-lease", "a backup whose connection was reset takes over without waiting out the primary's lease"},
	mutWakeIgnored:            {"wake-ignored", "a suspended process continues with answers that were queued before the suspension"},
	mutDedupeForgotten:        {"dedupe-forgotten", "a new primary forgets which clientSeqs were applied"},
	mutSessionFenceIgnored:    {"session-fence-ignored", "a submit is taken from a connection that its session has left"},
	mutHandOverUndrained:      {"hand-over-undrained", "a primary whose hand-over was accepted becomes a backup at once, with uncommitted entries, and no member holds the record"},
	mutWatchBelieved:          {"watch-believed", "a member acts on a change that its watch shows before the primary that made it knows"},
	mutHandOverLeases:         {"hand-over-leases", "leased reads continue while a hand-over is proposed"},
	mutBackupLeaves:           {"backup-leaves", "a draining backup reports that it may exit while it is still in sync"},
	mutForeignReaders:         {"foreign-readers", "a primary frees entries that a reader of other nodes does not hold"},
	mutCursorAhead:            {"cursor-ahead", "the write-behind cursor is the committed position, not the sink's"},
	mutDoubtIgnored:           {"old-read-believed", "a read of the record that began before the present epoch was known counts as a regression"},
	mutFreeUndrained:          {"free-undrained", "entries are freed that the write-behind sink does not hold"},
	mutFreeUncommitted:        {"free-uncommitted", "entries are freed before the truncate entry is committed"},
	mutSurplusMiscounted:      {"surplus-miscounted", "a member is removed although there are not more copies than wanted"},
	mutToldChain:              {"told-chain", "a copy follows a primary of a configuration that the arbiter has not confirmed"},
	mutAdoptOnWord:            {"adopt-on-word", "a replica adopts any later configuration that a peer announces"},
	mutDiscardOnWord:          {"discard-on-word", "a replica discards its log when a frame calls it useless, or does not continue it"},
	mutJoinsUnbounded:         {"joins-unbounded", "a primary accepts every process that asks to catch up"},
	mutUntrueKept:             {"untrue-kept", "a member keeps an announcement that the arbiter cannot confirm because its record was rolled back"},
	mutClimbTakesLearners:     {"climb-takes-learners", "a primary that restores the record accepts learners that know another configuration by its epoch"},
	mutSnapshotBare:           {"snapshot-bare", "a learner restores the sessions of a snapshot without their replies"},

	mutWithdrawnProposes:     {"withdrawn-proposes", "a learner keeps proposing a new lineage whose acceptance was withdrawn"},
	mutOlderLineageShown:     {"older-lineage-shown", "a learner presents its log of an older lineage as one of the present"},
	mutReadOneEcho:           {"read-one-echo", "a read is confirmed when one member of the ack set has echoed, of two"},
	mutStaleNack:             {"stale-nack", "a Nack of another epoch is taken"},
	mutStaleAck:              {"stale-ack", "an acknowledgement of an older epoch is taken"},
	mutStaleJoinReply:        {"stale-join-reply", "an answer to a Join is taken in another epoch"},
	mutStaleSnapshotRequest:  {"stale-snapshot-request", "a request for a snapshot of another epoch is answered"},
	mutAnySender:             {"any-sender", "a backup accepts frames of its epoch from any sender"},
	mutStaleBeacon:           {"stale-beacon", "a beacon of an older epoch counts as a heartbeat and is answered"},
	mutRestForEver:           {"rest-for-ever", "a replica at rest takes no tick until another event, so silence is not noticed"},
	mutCommitSaidEarly:       {"commit-said-early", "a backup that is followed is told that all that is stored is committed"},
	mutCommitUnsaid:          {"commit-unsaid", "a backup that is followed learns of a commit by the next order or heartbeat"},
	mutToldKept:              {"told-commit-kept", "a committed position announced in the previous epoch is used in the next"},
	mutVitalsLeaseKept:       {"vitals-lease-kept", "a lease earned by beacons stays valid in the next epoch"},
	mutDataLeaseKept:         {"data-lease-kept", "a lease earned on the data path stays valid in the next epoch"},
	mutFenceUnheard:          {"fence-unheard", "a take-over considers what the replica received, not what its vitals answered since"},
	mutLeasedForgotten:       {"leased-forgotten", "that the primary answers leased reads is forgotten with every configuration"},
	mutEchoUnclamped:         {"echo-unclamped", "an answer to a beacon may claim a send time that was never sent"},
	mutUnknownHandOverFailed: {"unknown-hand-over-failed", "a hand-over whose outcome is unknown is treated as failed"},
	mutUnknownRetireFailed:   {"unknown-retirement-failed", "a retirement whose outcome is unknown is treated as failed"},
	mutChangeUnheard:         {"change-unheard", "a change is proposed although a member has not acknowledged in the previous epoch"},
	mutRefusedForgets:        {"refused-after-unknown", "a rejected change is forgotten although an earlier attempt may still happen"},
	mutHandOverUnheard:       {"hand-over-unheard", "a hand-over starts although another member has not answered in this epoch"},
	mutParkedForgotten:       {"parked-forgotten", "requests that were parked are forgotten at the end of a hand-over"},
	mutCursorParking:         {"cursor-while-parking", "the sink's position is logged while a hand-over is being finished"},
	mutTruncateParking:       {"truncate-while-parking", "a truncate entry is logged while a hand-over is being finished"},
	mutTruncateFull:          {"truncate-in-full-window", "a truncate entry is logged in a full in-flight window"},
	mutUnsettled:             {"unsettled", "a learner enters the ack set before the entries it was fed are acknowledged"},
	mutLateJoinReply:         {"late-join-reply", "an answer to an older Join accepts a learner"},
	mutReleasedAgain:         {"released-again", "a released process is accepted again"},
	mutLeaverUnanswered:      {"leaver-unanswered", "a draining learner that was dropped is not notified that it may exit"},
	mutBaseUntold:            {"base-untold", "a learner whose answer was lost is not notified again that the log begins later"},
	mutSecondProcess:         {"second-process", "a second process of a pod replaces one that is in sync and answers"},
	mutFreeSnapshot:          {"free-under-snapshot", "entries are freed while a learner is sent the base state"},
	mutEvictAnybody:          {"evict-anybody", "a client's new session replaces the one that has been quiet longest, of any client"},
	mutEvictUnderWay:         {"evict-under-way", "a session with entries in flight is evicted"},
	mutConnectionsKept:       {"connections-kept", "a new primary keeps the connections of sessions from its earlier term"},
	mutClaimsCopies:          {"claims-copies", "a process that starts empty claims a record that was recreated without its status"},
	mutHandOverUnproved:      {"hand-over-unproved", "a primary hands over to a member that has not shown that it reaches the arbiter"},
	mutClimbShrinks:          {"climb-shrinks", "a primary that restores the record drops the members that were silent while the record was wrong"},
	mutHashOfLast:            {"hash-of-last", "a receipt carries the hash of the last stored entry, not of its own"},
	mutApplyByRole:           {"apply-by-role", "a primary does not apply the entry with which it begins its epoch"},
	mutDigestIgnored:         {"digest-ignored", "a copy does not compare the state that its primary announces with its own"},
	mutDifferenceKept:        {"difference-kept", "a primary keeps a copy with a different state"},
	mutOldCopyFirst:          {"old-copy-first", "a copy on a pod that the record does not name is removed before its replacement is in sync"},
	mutLearnerCounted:        {"learner-counted", "a copy that moves away is removed when its replacement is fed, not when it is in sync"},
	mutSpecOutlives:          {"spec-outlives", "the spec of before a rollback of the record counts for a later record of the same version"},
	mutStalePods:             {"stale-pods", "removals and hand-overs use the pods of an older version of the record than the one being changed"},
	mutUnwantedClaims:        {"unwanted-claims", "a pod that the record does not name claims the partition"},
	mutRankIgnored:           {"rank-ignored", "the copy to remove is chosen by the pods' names alone"},
	mutWithdrawnForgotten:    {"withdrawn-forgotten", "a proposal made because of a former list of pods, which may still happen, is forgotten"},
	mutFreeUnapplied:         {"free-unapplied", "orders are freed without being applied to the base"},
	mutFollowUnchecked:       {"follow-unchecked", "a follower goes on at a log whose hash at its place is another"},
	mutFollowSkips:           {"follow-skips", "a follower that resumes is sent on one entry behind its place"},
	mutFollowLearner:         {"follow-learner", "a learner sends what it holds as committed to followers"},
	mutAdvanceUnchecked:      {"advance-unchecked", "the position of a reader outside is taken in whatever history it holds"},
	mutPinForgotten:          {"pin-forgotten", "a new primary does not hold the log for a reader outside that has not told it its position"},
	mutRestoreUnloaded:       {"restore-claims-unloaded", "a replica claims a partition that is to be restored before it has loaded the archive"},
	mutRestoreSkips:          {"restore-skips", "an entry of the archive is stored and not applied"},
	mutRestoreKeepsLineage:   {"restore-keeps-lineage", "a restored partition goes on in the lineage of the archive"},
	mutRestoreForgetsReplies: {"restore-forgets-replies", "a restored partition has the sessions of the archive without their replies"},
	mutRestoreUncommitted:    {"restore-uncommitted", "the entries of the archive are stored and not committed before the claim"},
	mutRestoreOutlived:       {"restore-outlived", "a replica of before the restore goes on with its history when its record shows the restore"},
	mutRestoreCommitsLate:    {"restore-commits-late", "the entries of the archive are committed with the last of them only, so that none can be freed while they are loaded"},
	mutRestoreUnwanted:       {"restore-unwanted", "a replica loads the archive whose pod the record does not name"},
	mutRestoreHistory:        {"restore-history", "the hash of the last entry of the archive is not compared with that of the record"},
	mutDemoteUndrained:       {"demote-undrained", "a site is demoted with entries that are not committed"},
	mutDemoteAdmits:          {"demote-admits", "a site takes orders while it is being demoted"},
	mutStandbyNoop:           {"standby-noop", "the primary of a standby begins its epoch with an entry of its own"},
	mutStandbyCursors:        {"standby-cursors", "the primary of a standby logs positions of readers"},
	mutStandbyServes:         {"standby-serves", "the primary of a standby takes orders"},
	mutLinkUnchecked:         {"link-unchecked", "an entry of a link is stored without a look at the hash before it"},
	mutLinkUncommitted:       {"link-uncommitted", "a link is told that all stored entries are committed, so that its source may free them"},
	mutTermIgnored:           {"term-ignored", "a standby takes entries of a site that was replaced"},
	mutPromoteShort:          {"promote-short", "a clean promotion does not wait for the other site's last entry"},
	mutPromoteTakes:          {"promote-takes", "entries of the link are stored while the promotion is proposed"},
	mutPromoteKeepsEpoch:     {"promote-keeps-epoch", "a promoted site begins with an epoch below those of its log"},
	mutForcedKeepsLineage:    {"forced-keeps-lineage", "a forced promotion stays in the lineage of the lost site"},
	mutFenceForgotten:        {"fence-forgotten", "a site that hears of another one's later term goes on taking orders"},

	mutFixUnasked:          {"fix-unasked", "a FIX session is opened although a member does not know its entries"},
	mutFixReportEarly:      {"fix-report-early", "a FIX session is sent what an entry did before that is committed"},
	mutFixOpenedAhead:      {"fix-opened-ahead", "a FIX session that is opened skips the numbers of reports that are not committed yet"},
	mutFixOpenUncommitted:  {"fix-open-uncommitted", "a FIX session is said to be open before its opening is committed"},
	mutFixFenceIgnored:     {"fix-fence-ignored", "a gateway that was replaced goes on with its FIX session"},
	mutFixPrevUnchecked:    {"fix-prev-unchecked", "an order of a FIX session is taken although one before it was not"},
	mutFixRefusalUnlogged:  {"fix-refusal-unlogged", "the refusal of an order of a FIX session has no entry"},
	mutFixReasonUntold:     {"fix-reason-untold", "the record of what a limit refuses has a code of which gateways report no OrdRejReason"},
	mutFixStepUncommitted:  {"fix-step-uncommitted", "a heartbeat of a FIX session gets its number before that is committed"},
	mutFixPagesKept:        {"fix-pages-kept", "after a reset of a FIX session reports of before are sent again"},
	mutFixRefusalUnchained: {"fix-refusal-unchained", "an order of a FIX session is taken although the gateway's refusal before it was not"},
	mutFixOpenOther:        {"fix-open-other", "the opening of a FIX session is answered with the state of a later one that is not committed"},
	mutFixBoundTwice:       {"fix-bound-twice", "a FIX session is bound to its connection again, amid entries that are not committed"},
	mutFixIndexClOrdID:     {"fix-index-clordid", "the ClOrdID of a FIX session is looked up among those of all sessions"},
	mutFixIndexDayless:     {"fix-index-dayless", "a ClOrdID of a FIX session is refused that another day had"},
	mutFixAgainRefused:     {"fix-again-refused", "an order that a FIX session sends again as such is refused as a duplicate"},
	mutFixAgainAsSent:      {"fix-again-as-sent", "an order that a FIX session sends again is reported as it was sent the second time"},
	mutFixLapseForgotten:   {"fix-lapse-forgotten", "a new primary counts no grace for FIX sessions that it has not seen"},
	mutFixLapseOfLoss:      {"fix-lapse-of-loss", "the grace of a FIX session counts from the first loss of its connection, though it came back since"},
	mutFixLapseSeated:      {"fix-lapse-seated", "orders of a FIX session are cancelled though it logged on again"},
	mutFixLapseOnPrimary:   {"fix-lapse-on-primary", "only the primary cancels the orders of FIX sessions that are gone"},
	mutCopyEarly:           {"copy-early", "a drop copy leaves before the entry of its report is committed"},
	mutCopyUncounted:       {"copy-uncounted", "a primary does not count the numbers of drop copies that it sends"},
	mutCopyOpenedAhead:     {"copy-opened-ahead", "a session that is opened is told numbers of drop copies that are not committed"},
	mutCopyKept:            {"copy-kept", "a session that is opened as one that gets no copies goes on to get them"},
	mutCopyOnPrimary:       {"copy-on-primary", "a backup does not note of which sessions there are drop copies"},
	mutCopyUnreserved:      {"copy-unreserved", "an entry is made without the memory that its drop copies may take"},
	mutCopyNamedAhead:      {"copy-named-ahead", "a gateway is told that a session has its sources before their entry is committed"},
	mutCopyEndedLate:       {"copy-ended-late", "a Logon that is refused for its number ends the drop copies of its session"},
	mutResumedCounted:      {"resumed-counted", "what the entries of a journal did is counted again when they are committed"},
	mutFixStateOfEntry:     {"fix-state-of-entry", "the state of an order is what its first entry did"},
	mutFixStateOfAny:       {"fix-state-of-any", "the state of an order may be that of another session's with the same ClOrdID"},
	mutFeaturesUnasked:     {"features-unasked", "an entry of a new feature is made although a copy does not know it"},
	mutCalendarTwice:       {"calendar-twice", "a new primary does phases of the calendar again that are done"},
	mutCalendarBack:        {"calendar-back", "a primary whose calendar is behind that of the log does what it has"},
	mutCalendarForgotten:   {"calendar-forgotten", "a new primary does nothing by the calendar"},
	mutFix50Unasked:        {"fix50-unasked", "an order of FIX 5.0 SP2 is taken although a copy does not know that version"},
	mutFix50Fed:            {"fix50-fed", "a copy that does not know FIX 5.0 SP2 is given a log with such orders"},
	mutGuardUnasked:        {"guard-unasked", "limits come into force while a copy does not know them"},
	mutGuardUnchecked:      {"guard-unchecked", "a primary that took over does not check limits"},
	mutGuardLocalClock:     {"guard-local-clock", "limits count by the clock of each copy"},
	mutGuardOnBackup:       {"guard-on-backup", "a backup checks limits anew, by its own clock"},
	mutKillUncommitted:     {"kill-uncommitted", "a kill is acknowledged before the ack set has it"},

	mutFixGoneUnasked: {"fix-gone-unasked", "a second gateway gets a FIX session whose counterparty is at the first"},

	mutTapeBehind:        {"tape-behind", "a stream of executions begins behind those of its first entry"},
	mutReleaseEarly:      {"release-at-execution", "executions are sent when an entry is stored, before the copies agree on them"},
	mutBookUncommitted:   {"book-uncommitted", "a book is shown as it is after an entry that is not committed"},
	mutOrdersUncommitted: {"orders-uncommitted", "the orders of a book are shown as they are after an entry that is not committed"},
	mutOrdersSkip:        {"orders-skip", "changes of a book go on behind what is not held any more"},
	mutPositionIgnored:   {"ack-position-ignored", "an acknowledgement counts whatever its sender made of the entries"},
	mutPositionOfLast:    {"position-of-last", "an acknowledgement is compared with the newest position, not that of its entry"},
	mutPositionEchoed:    {"position-echoed", "a copy acknowledges the position that its primary has sent"},
	mutContinueForgotten: {"continue-forgotten", "a new primary does not go on with a mass cancel that is pending"},

	mutDecidedAgain:         {"decided-again", "a primary decides on an order before it looks whether it was applied: sent again, it is decided again"},
	mutFunctionsUnasked:     {"functions-unasked", "functions are offered before every copy knows their entries"},
	mutFunctionsLate:        {"functions-late", "the primary calls other functions one order later than the log says"},
	mutFunctionsOwnClock:    {"functions-own-clock", "functions are given the time of the copy that calls them"},
	mutFunctionsPrimaryOnly: {"functions-primary-only", "functions are called on the primary only"},
	mutFunctionsCommitted:   {"functions-committed", "a backup does not call functions for orders far ahead of the commit"},

	mutExecuteUndecided: {"execute-undecided", "a partition that matches does not ask the functions"},
	mutDecidedUnsaid:    {"decided-unsaid", "a gateway is not told what functions made of an order, and reports it otherwise than a resend does"},
	mutDecidedOnBackup:  {"decided-on-backup", "a backup decides on an order that its primary has decided on"},

	mutRegionRetried:         {"region-retried", "a put of a region that is sent again is applied again"},
	mutRegionGetEarly:        {"region-get-early", "a read of a region is answered with a value that is not committed"},
	mutRegionConditionEarly:  {"region-condition-early", "a condition is answered to have failed on a value that is not committed"},
	mutRegionNothingReceived: {"region-reply-dropped", "the value that was taken is forgotten before its session has it"},
	mutBaseRegionless:        {"base-regionless", "what is freed leaves the values of regions behind: a learner gets none of them"},
	mutRegionsKept:           {"regions-kept", "a region has the bounds that it began with, whatever file is read"},
	mutExpiredByClock:        {"expired-by-clock", "each copy has values expire by its own clock, not by that of the entries"},
	mutMapUnconfirmed:        {"map-unconfirmed", "a Map is answered with what is not committed, or by a primary that another one has replaced"},
	mutMapOrdersUnconfirmed:  {"map-orders-unconfirmed", "a Map over orders is answered by a primary that another one has replaced"},
	mutMapOrdersUncommitted:  {"map-orders-uncommitted", "a Map over orders has entries that are stored and not committed"},
	mutMapOrdersFreed:        {"map-orders-freed", "a Map over orders passes over entries that were freed while it read"},
	mutBatchRetried:          {"batch-retried", "a batch of a region that is sent again is applied again"},
	mutBatchReplyDropped:     {"batch-reply-dropped", "how many keys a batch skipped is forgotten before its session has it"},
	mutInvokeRetried:         {"invoke-retried", "a call that is sent again is made and applied again"},
	mutInvokedOnBackup:       {"invoked-on-backup", "a backup calls the function of an entry that its primary has decided"},
	mutInvokeCommitted:       {"invoke-committed", "a function is called with the committed value, not with that which all stored entries leave"},
	mutInvokeNothingReceived: {"invoke-reply-dropped", "the reply of a function is forgotten before its session has it"},
	mutInvokeUnknownEarly:    {"invoke-unknown-early", "a call of a function that another copy has is refused for good"},
	mutInvokeFailedEarly:     {"invoke-failed-early", "a call is answered to have failed on a value that is not committed"},
	mutAckBeforeSync:         {"ack-before-sync", "a copy acknowledges entries that its journal has not synced"},
	mutCommitBeforeSync:      {"commit-before-sync", "a primary commits entries that its own journal has not synced"},
	mutConfigUnsynced:        {"config-unsynced", "a copy acts in a configuration that its journal has not synced"},
	mutHeirContinues:         {"heir-continues", "the heir of a member acts in an epoch in which its predecessor did"},
	mutHeirHasty:             {"heir-hasty", "the heir of a member takes over while a lease may last that its predecessor granted"},
	mutShorterWins:           {"shorter-wins", "of the heirs of all members the one with the shorter log goes first"},
	mutStateBare:             {"state-bare", "of a journal with a state the entries behind that are not read"},

	mutAttemptEqual: {"attempt-equal", "an OpenSession with the attempt of the present connection takes the session over"},
}

// Mutants lists all variants, those of the machine last; the first is the correct
// protocol.
func Mutants() (all []Mutant) {
	all = append(all, mutantList[:]...)
	for _, m := range machine.Mutants() {
		all = append(all, Mutant{m.Name, m.Breaks})
	}
	return all
}

// SelectMutant breaks the protocol in one way from here on, in this process.
func SelectMutant(name string) error {
	selected = mutNone
	if machine.SelectMutant(name) {
		return nil
	}
	var names []string
	for id, m := range Mutants() {
		if m.Name == name {
			selected = mutantID(id)
			return nil
		}
		names = append(names, m.Name)
	}
	return fmt.Errorf("mutant is %q, allowed: %s", name, strings.Join(names, ", "))
}
