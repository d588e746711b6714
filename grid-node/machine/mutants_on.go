//go:build mutants

package machine

import "github.com/ordergrid/ordergrid/grid-node/match"

// selected is set before any machine is used and not changed after.
var selected mutantID

func mutant(id mutantID) bool { return selected == id }

// Mutant is a deliberately broken variant.
type Mutant struct {
	Name   string
	Breaks string // what it does, against which rule
	Proof  string // "package ^Test$", a test that fails with it; "": the simulator finds it
}

var mutantList = [mutants]Mutant{
	mutNone:          {"none", "nothing", ""},
	mutEpochBoundary: {"epoch-boundary", "a copy of the first order of an epoch that is freed is reported with the epoch before", "machine ^TestSnapshot$"},
	mutWindowEdge:    {"window-edge", "a clientSeq that has just left the window is looked up in it", "replica ^TestScripts$/^sessions$"},

	mutRestoreEpochless:  {"restore-epochless", "a learner forgets the epochs in a snapshot", ""},
	mutRestoreCursorless: {"restore-cursorless", "a learner forgets the sink's position in a snapshot", ""},
	mutRestoreReaderless: {"restore-readerless", "a learner forgets the readers in a snapshot", ""},
	mutRestoreLastReply:  {"restore-last-reply", "a learner takes the last reply of each session in a snapshot only", ""},
	mutCloneShares:       {"clone-shares", "the live state of a learner shares the replies of its sessions with the base", ""},

	mutFixInOfLast:         {"fix-in-of-last", "after an order its own number is expected next in a FIX session", "machine ^TestFix$"},
	mutFixAttemptForgotten: {"fix-attempt-forgotten", "a later opening of a FIX session fences off no earlier one", "machine ^TestFix$"},
	mutFixResetKeeps:       {"fix-reset-keeps", "a reset of a FIX session continues its generation and its numbers", "machine ^TestFix$"},
	mutFixDayBackwards:     {"fix-day-backwards", "a FIX session is opened on a day before the one it is at", "machine ^TestFixRefuses$"},
	mutFixNoJump:           {"fix-no-jump", "after an accepted loss numbers that may have been sent are sent again", "machine ^TestFix$"},
	mutFixLateReset:        {"fix-late-reset", "a reset that was under way while a later Logon was taken ends the generation of that one", "machine ^TestFixRefuses$"},
	mutFixRestoreless:      {"fix-restoreless", "a learner forgets the FIX sessions in a snapshot", "machine ^TestDigest$"},

	mutLineageOpen:           {"lineage-open", "books go on trading after an accepted loss", "machine ^TestLineageHaltsBooks$"},
	mutOldClOrdID:            {"old-clordid", "an order that was replaced is not found by its new ClOrdID", "machine ^TestReplaceMovesClOrdID$"},
	mutRestingUnsnapshotted:  {"resting-unsnapshotted", "a learner forgets under which ClOrdIDs orders rest", "machine ^TestBooksSnapshot$"},
	mutFunctionsForget:       {"functions-forget", "a function that stays in force begins anew when the functions change", "machine ^TestFunctionsChange$"},
	mutFunctionsCloneFresh:   {"functions-clone-fresh", "the live state of a learner has functions without what they remember", ""},
	mutFunctionsStateless:    {"functions-stateless", "a learner forgets what functions remember", ""},
	mutFunctionsChainless:    {"functions-chainless", "a learner forgets the hash of the records", ""},
	mutOwnerKept:             {"owner-kept", "a session has the orders of the one that had its slot before", "machine ^TestOwnerEndsWithSession$"},
	mutFixFirstOfEntry:       {"fix-first-of-entry", "an order of a FIX session that is replaced is reported as one of its own", ""},
	mutFixNamesShared:        {"fix-names-shared", "a cancel of a FIX session finds the order of another one with its ClOrdID, or none", ""},
	mutFixValueUnsnapshotted: {"fix-value-unsnapshotted", "a learner forgets what the fills of orders of FIX sessions were worth", ""},
	mutFixNumbersShared:      {"fix-numbers-shared", "the reports of an entry share a number of their FIX session", ""},
	mutFixMassOfAll:          {"fix-mass-of-all", "a mass cancel of a FIX session for a symbol takes out its orders for others, too", ""},
	mutFixLapseOfFirst:       {"fix-lapse-of-first", "of the FIX sessions that lapse with one entry only the first loses its orders", "machine ^TestLapse$"},
	mutFixLapseUnfenced:      {"fix-lapse-unfenced", "a gateway that held a FIX session goes on with it after its orders lapsed", ""},
	mutFixLapseLate:          {"fix-lapse-late", "a FIX session whose Logon is refused for its number has not left, nor lapsed, any more", "machine ^TestLapse$"},
	mutFixLapseUnsnapshotted: {"fix-lapse-unsnapshotted", "a restored copy does not know which FIX sessions lapse", ""},
	mutFixMassUnreported:     {"fix-mass-unreported", "orders that a mass cancel of their FIX session takes out have no report", ""},
	mutCopyUnfiltered:        {"copy-unfiltered", "a drop copy gets the reports of sessions that it does not name", ""},
	mutCopyNumbersShared:     {"copy-numbers-shared", "the copies of the reports of an entry share a number", ""},
	mutCopyOfStates:          {"copy-of-states", "a drop copy gets what answers a request for the state of an order, and other refusals", ""},
	mutCopyUnsnapshotted:     {"copy-unsnapshotted", "a learner forgets which FIX sessions get copies", ""},
	mutRegionsUnsnapshotted:  {"regions-unsnapshotted", "a learner forgets the regions in a snapshot", "machine ^TestRegionsSnapshot$"},

	mutKillUnsnapshotted:     {"kill-unsnapshotted", "a learner forgets the kills in a snapshot", ""},
	mutKillKeepsResting:      {"kill-keeps-resting", "a kill leaves in the books what rests", "machine ^TestKillCancels$"},
	mutPostOnlyIgnored:       {"post-only-ignored", "an order that is not to trade on entry is one that may, on all copies alike", ""},
	mutStatesUnrestored:      {"states-unrestored", "a learner takes all books for closed", ""},
	mutProfileBack:           {"profile-back", "a primary whose file of limits is behind puts an earlier profile in force again", ""},
	mutProfileByGeneration:   {"profile-by-generation", "profiles of different RiskProfiles are compared by their generations", ""},
	mutProfileByAge:          {"profile-by-age", "a later generation of the RiskProfile in force is not taken", ""},
	mutCalendarUnsnapshotted: {"calendar-unsnapshotted", "a learner forgets which phases of the calendar were done", ""},
	mutRegionBack:            {"region-back", "a primary whose file of regions is behind gives a region the bounds of before again", ""},
	mutRegionByGeneration:    {"region-by-generation", "definitions of a region by different GridRegions are compared by their generations", ""},
	mutRegionByAge:           {"region-by-age", "a later generation of the GridRegion in force is not taken", ""},
	mutRegionUnsourced:       {"region-unsourced", "a learner forgets in a snapshot which GridRegions the regions are of", "machine ^TestRegionsSnapshot$"},
	mutBatchPartly:           {"batch-partly", "all copies apply a batch of a region without its last item", ""},
	mutCountersUnsnapshotted: {"counters-unsnapshotted", "a learner forgets what was counted against the limits", ""},
}

// Mutants lists the variants.
func Mutants() []Mutant { return mutantList[1:] }

// SelectMutant breaks the machine in one way from here on, in this process, or not at all
// if there is no such variant. It reports whether there is.
func SelectMutant(name string) bool {
	selected = mutNone
	for id := range mutantList {
		if id > 0 && mutantList[id].Name == name {
			selected = mutantID(id)
		}
	}
	return match.SelectMutant(name) || selected != mutNone
}
