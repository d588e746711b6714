//go:build mutants

package sim

import (
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// selectedOperator is set before any world runs and not changed while one does.
var selectedOperator operatorMutantID

func operatorMutant(id operatorMutantID) bool { return selectedOperator == id }

var operatorMutantList = [operatorMutants]replica.Mutant{
	mutOperatorNone:      {Name: "none", Breaks: "nothing"},
	mutSinkUnfenced:      {Name: "sink-unfenced", Breaks: "the sink's writer of a past epoch continues with entries of the next one"},
	mutClockStands:       {Name: "clock-stands", Breaks: "a machine's clock stops while its process is suspended, as CLOCK_MONOTONIC does while the machine is suspended"},
	mutBudgetOpen:        {Name: "budget-open", Breaks: "the disruption budget of a pair allows evictions as long as one pod stays"},
	mutSurgeUnclosed:     {Name: "surge-unclosed", Breaks: "the third copy of a roll is removed while the disruption budget still counts it"},
	mutFollowUncommitted: {Name: "follow-uncommitted", Breaks: "a follower is sent entries that are stored and not committed"},
	mutLinkAhead:         {Name: "link-ahead", Breaks: "a link tells the source that the standby holds what it has sent"},
	mutModuleUnchecked:   {Name: "module-unchecked", Breaks: "a process decides by a module of another digest than the one deployed"},
	mutPlanStale:         {Name: "plan-stale", Breaks: "the operator moves the partition by an outdated record"},
}

// Mutants lists the variants of the protocol, then those of its surroundings.
func Mutants() []replica.Mutant {
	all := append(replica.Mutants(), operatorMutantList[1:]...)
	for _, m := range match.Mutants() {
		if OfMatch(m.Name) {
			all = append(all, replica.Mutant{Name: m.Name, Breaks: m.Breaks})
		}
	}
	for _, m := range view.Following() {
		all = append(all, replica.Mutant{Name: m.Name, Breaks: m.Breaks})
	}
	return all
}

// ofMatch are those that only the world match can show. The engine has more, of what that
// world does not trade; its own tests catch them.
var ofMatch = []string{"execute-undecided", "release-at-execution", "tape-behind", "book-uncommitted", "orders-uncommitted", "orders-skip", "ack-position-ignored", "position-of-last", "position-echoed", "continue-forgotten",
	"post-only-ignored", "states-unrestored", "sweep-map", "local-clock", "keep-priority", "fok-partial", "band-stands", "restore-band", "restore-sweep", "restore-party",
	"fix-names-shared", "fix-value-unsnapshotted", "fix-numbers-shared", "fix-mass-of-all", "fix-mass-unreported", "sweep-late", "fix-opened-ahead", "fix-report-early", "fix-first-of-entry",
	"fix-state-of-entry", "fix-state-of-any",
	"fix-lapse-forgotten", "fix-lapse-of-loss", "fix-lapse-seated", "fix-lapse-on-primary", "fix-lapse-of-first", "fix-lapse-unfenced", "fix-lapse-unsnapshotted", "fix-lapse-late", "copy-numbers-shared",
	"calendar-twice", "calendar-forgotten", "calendar-unsnapshotted"}

// OfMatch reports whether only the world match can show what a mutant breaks.
func OfMatch(name string) bool { return slices.Contains(ofMatch, name) }

// ofJournal are those that only the world journal can show.
var ofJournal = []string{"ack-before-sync", "commit-before-sync", "config-unsynced", "heir-continues", "heir-hasty", "shorter-wins", "state-bare"}

// OfJournal reports whether only the world journal can show what a mutant breaks.
func OfJournal(name string) bool { return slices.Contains(ofJournal, name) }

// OfPairs reports whether only pairs of worlds can show what a mutant breaks.
func OfPairs(name string) bool { return name == operatorMutantList[mutLinkAhead].Name }

// SelectMutant breaks one of them from here on, in this process.
func SelectMutant(name string) error {
	if view.SelectMutant(name) {
		selectedOperator = mutOperatorNone
		return replica.SelectMutant("none")
	}
	for id := range operatorMutantList {
		if id > 0 && operatorMutantList[id].Name == name {
			selectedOperator = operatorMutantID(id)
			return replica.SelectMutant("none")
		}
	}
	selectedOperator = mutOperatorNone
	return replica.SelectMutant(name)
}
