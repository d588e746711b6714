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
	mutShrinkKeepsAcking:      {"shrink-keeps-acking", "a primary goes on acknowledging, without the silent member, before the arbiter has dropped it"},
	mutMinInSyncIgnored:       {"min-in-sync-ignored", "orders that were accepted before a member was lost are committed with too few copies"},
	mutForgetHash:             {"forget-prev-hash", "neither side compares hashes: a log that does not chain is stored and acknowledged"},
	mutReturnToOldEpoch:       {"return-to-old-epoch", "a take-over or shrink whose outcome is unknown is taken as failed, the old epoch goes on"},
	mutUnknownAdmissionFailed: {"unknown-admission-failed", "an admission whose outcome is unknown is taken as failed, the learner leaves the ack set"},
	mutStaleConfig:            {"stale-configuration", "a replica adopts whatever the watch shows, old epochs too"},
	mutPromoteByPod:           {"promote-by-pod-name", "a process counts as a member when its pod's name is listed, whatever its boot id"},
	mutFencedAnswers:          {"fenced-answers", "a backup that proposed its take-over goes on answering beacons and prepares of the old epoch"},
	mutOldEpochAccepted:       {"old-epoch-accepted", "a backup stores prepares of an epoch that is over"},
	mutFormerProcess:          {"former-process", "a primary takes a restarted process for the one before it, with all that one stored"},
	mutAdmitEarly:             {"admit-before-caught-up", "a learner is proposed for inSync before it holds what was committed"},
	mutAdmitBeforeAckSet:      {"admit-before-ack-set", "a learner is proposed for inSync while commits do not wait for it yet"},
	mutReadBeforeFloor:        {"read-before-floor", "a new primary serves reads before what it took over is committed"},
	mutReadOldEcho:            {"read-old-echo", "a read is confirmed by an answer to something sent before the read arrived"},
	mutReadSuspended:          {"read-suspended", "a primary that proposed to drop a member confirms reads without it"},
	mutDuplicateEarly:         {"duplicate-early", "a ClOrdID is refused as duplicate of an order that is not committed yet"},
	mutLeaseFromReceipt:       {"lease-from-receipt", "the read lease counts from when an answer came, not from when its beacon was sent"},
	mutTakeOverInLease:        {"take-over-in-lease", "a backup whose connection was reset takes over without waiting out the primary's lease"},
	mutWakeIgnored:            {"wake-ignored", "a process that was stopped goes on with answers that were queued before it slept"},
	mutDedupeForgotten:        {"dedupe-forgotten", "a new primary forgets which clientSeqs were applied"},
	mutSessionFenceIgnored:    {"session-fence-ignored", "a submit is taken from a connection that its session has left"},
	mutHandOverUndrained:      {"hand-over-undrained", "a primary whose hand-over was accepted becomes a backup at once, whatever it has not committed, and nobody holds the record"},
	mutWatchBelieved:          {"watch-believed", "a member acts on a change that its watch shows before the primary that made it has heard"},
	mutHandOverLeases:         {"hand-over-leases", "leased reads go on while a hand-over is proposed"},
	mutBackupLeaves:           {"backup-leaves", "a backup that is told to leave says it may end while it is still in sync"},
	mutForeignReaders:         {"foreign-readers", "a primary frees what a reader that other nodes have does not hold"},
	mutCursorAhead:            {"cursor-ahead", "the write-behind cursor says what is committed, not what the sink holds"},
	mutDoubtIgnored:           {"old-read-believed", "a read of the record that began before the present epoch was known counts as a regression"},
	mutFreeUndrained:          {"free-undrained", "entries are freed that the write-behind sink does not hold"},
	mutFreeUncommitted:        {"free-uncommitted", "entries are freed before the entry that says so is committed"},
	mutSurplusMiscounted:      {"surplus-miscounted", "a member is let go although there are not more copies than wanted"},
	mutToldChain:              {"told-chain", "a copy follows a primary that only a configuration names which the arbiter has not confirmed"},
	mutAdoptOnWord:            {"adopt-on-word", "a replica adopts whatever later configuration a peer tells of"},
	mutDiscardOnWord:          {"discard-on-word", "a replica throws its log away when a frame says that it is of no use, or does not continue it"},
	mutJoinsUnbounded:         {"joins-unbounded", "a primary takes every process in that asks to catch up"},
	mutUntrueKept:             {"untrue-kept", "a member keeps to a word that the arbiter cannot confirm because its record went back in time"},
	mutClimbTakesLearners:     {"climb-takes-learners", "a primary that puts the record right takes learners in, who know another configuration by its epoch"},
	mutSnapshotBare:           {"snapshot-bare", "a learner takes the sessions of a snapshot over without their replies"},

	mutWithdrawnProposes:     {"withdrawn-proposes", "a learner goes on to propose a new lineage whose acceptance was taken back"},
	mutOlderLineageShown:     {"older-lineage-shown", "a learner shows its log of an older lineage as that of the present one"},
	mutReadOneEcho:           {"read-one-echo", "a read is confirmed when one member of the ack set has echoed, of two"},
	mutStaleNack:             {"stale-nack", "a Nack of another epoch is taken"},
	mutStaleAck:              {"stale-ack", "an acknowledgement of an older epoch is taken"},
	mutStaleJoinReply:        {"stale-join-reply", "an answer to a Join is taken in another epoch"},
	mutStaleSnapshotRequest:  {"stale-snapshot-request", "a request for a snapshot of another epoch is answered"},
	mutAnySender:             {"any-sender", "a backup takes frames of its epoch from anybody"},
	mutStaleBeacon:           {"stale-beacon", "a beacon of an older epoch counts as a sign of life and is answered"},
	mutRestForEver:           {"rest-for-ever", "a replica at rest takes no tick until something happens, so nobody's silence is noticed"},
	mutToldKept:              {"told-commit-kept", "a committed position that was told in the epoch before is taken over in the next"},
	mutVitalsLeaseKept:       {"vitals-lease-kept", "a lease that beacons earned lives on in the next epoch"},
	mutDataLeaseKept:         {"data-lease-kept", "a lease that the data path earned lives on in the next epoch"},
	mutFenceUnheard:          {"fence-unheard", "a take-over looks at what the replica heard, not at what its vitals answered since"},
	mutLeasedForgotten:       {"leased-forgotten", "that the primary answers leased reads is forgotten with every configuration"},
	mutEchoUnclamped:         {"echo-unclamped", "an answer to a beacon may claim a send time that was never sent"},
	mutUnknownHandOverFailed: {"unknown-hand-over-failed", "a hand-over whose outcome is unknown is taken as failed"},
	mutUnknownRetireFailed:   {"unknown-retirement-failed", "a retirement whose outcome is unknown is taken as failed"},
	mutChangeUnheard:         {"change-unheard", "a change is proposed although a member has not acknowledged in the epoch before it"},
	mutRefusedForgets:        {"refused-after-unknown", "a change that is refused is forgotten although an earlier attempt may still happen"},
	mutHandOverUnheard:       {"hand-over-unheard", "a hand-over begins although another member has not answered in this epoch"},
	mutParkedForgotten:       {"parked-forgotten", "requests that were parked are forgotten at the end of a hand-over"},
	mutCursorParking:         {"cursor-while-parking", "the sink's position is logged while a hand-over is being finished"},
	mutTruncateParking:       {"truncate-while-parking", "a truncate entry is logged while a hand-over is being finished"},
	mutTruncateFull:          {"truncate-in-full-window", "a truncate entry is logged in a full in-flight window"},
	mutUnsettled:             {"unsettled", "a learner enters the ack set before what it was fed is acknowledged"},
	mutLateJoinReply:         {"late-join-reply", "an answer to an older Join accepts a learner"},
	mutReleasedAgain:         {"released-again", "a process that was let go is accepted again"},
	mutLeaverUnanswered:      {"leaver-unanswered", "a learner that is to leave and was dropped is not told that it may"},
	mutBaseUntold:            {"base-untold", "a learner whose answer was lost is not told again that the log begins later"},
	mutSecondProcess:         {"second-process", "a second process of a pod takes the place of one that is in sync and answers"},
	mutFreeSnapshot:          {"free-under-snapshot", "entries are freed while a learner is sent the base state"},
	mutEvictAnybody:          {"evict-anybody", "a client's new session takes the place of whoever's has been quiet for longest"},
	mutEvictUnderWay:         {"evict-under-way", "a session with entries under way is evicted"},
	mutConnectionsKept:       {"connections-kept", "a new primary remembers which connections sessions were on when it was the primary before"},
	mutClaimsCopies:          {"claims-copies", "a process that starts empty claims a record that was made again without its status"},
	mutHandOverUnproved:      {"hand-over-unproved", "a primary hands over to a member that has not shown that it reaches the arbiter"},
	mutClimbShrinks:          {"climb-shrinks", "a primary that puts the record right leaves out the members that it missed while the record was wrong"},
	mutHashOfLast:            {"hash-of-last", "a receipt carries the hash of the last entry that is stored, not that of its own"},
	mutApplyByRole:           {"apply-by-role", "a primary does not apply the entry with which it begins its epoch"},
	mutDigestIgnored:         {"digest-ignored", "a copy does not compare the state that its primary tells of with its own"},
	mutDifferenceKept:        {"difference-kept", "a primary keeps a copy that made another state of the log"},
	mutOldCopyFirst:          {"old-copy-first", "a copy on a pod that the record does not name is let go before the one that takes its place is in sync"},
	mutLearnerCounted:        {"learner-counted", "a copy that moves away is let go when the one that takes its place is fed, not when it is in sync"},
	mutSpecOutlives:          {"spec-outlives", "what the spec asked for before the record went back counts for a later record of the same version"},
	mutStalePods:             {"stale-pods", "copies are let go, and handed over to, by the pods of an older version of the record than the one that is changed"},
	mutUnwantedClaims:        {"unwanted-claims", "a pod that the record does not name claims the partition"},
	mutRankIgnored:           {"rank-ignored", "which copy goes is decided by the pods' names alone"},
	mutWithdrawnForgotten:    {"withdrawn-forgotten", "what was proposed for the sake of a former list of pods, and may still happen, is forgotten"},
	mutFreeUnapplied:         {"free-unapplied", "orders are freed without being applied to the base"},
	mutAttemptEqual:          {"attempt-equal", "an OpenSession with the attempt of the present connection takes the session over"},
}

// Mutants lists all variants, those of the machine last; the first is the protocol as it is.
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
