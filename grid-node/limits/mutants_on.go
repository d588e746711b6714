//go:build mutants

package limits

import "time"

// selected is set before any instance is used and not changed after.
var selected mutantID

func mutant(id mutantID) bool { return selected == id }

// Mutant is a deliberately broken variant.
type Mutant struct {
	Name   string
	Breaks string // what it does, against which rule
	Proof  string // a test of this package that fails with it
}

var mutantList = [mutants]Mutant{
	mutNone:              {"none", "nothing", ""},
	mutCounterless:       {"counterless", "the counter of executed credit is not in the snapshot", "TestSnapshot"},
	mutLocalClock:        {"local-clock", "time is this machine's, not the operation's", "TestOracle"},
	mutFillBeyond:        {"fill-beyond", "an execution may be of more than the order, or at a worse price than its limit", "TestOracle"},
	mutOverflow:          {"overflow", "price x quantity x multiplier wraps", "TestOracle"},
	mutRestoreRestricted: {"restore-restricted", "after a restore restricted symbols may be traded", "TestSnapshot"},
	mutNoMaxValue:        {"no-max-value", "the limit of an order's value is not checked", "TestOracle"},
}

// Mutants lists the variants.
func Mutants() []Mutant { return mutantList[1:] }

// SelectMutant breaks the package in one way from here on, in this process, or not at all
// if there is no such variant. It reports whether there is.
func SelectMutant(name string) bool {
	selected = mutNone
	for id := range mutantList {
		if id > 0 && mutantList[id].Name == name {
			selected = mutantID(id)
		}
	}
	return selected != mutNone
}

func clock(now int64) int64 {
	if mutant(mutLocalClock) {
		return time.Now().UnixNano()
	}
	return now
}
