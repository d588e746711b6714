//go:build mutants

package view

// selected is set before any view is used and not changed after.
var selected mutantID

func mutant(id mutantID) bool { return selected == id }

// Mutant is a deliberately broken variant.
type Mutant struct {
	Name   string
	Breaks string
}

var mutantList = [mutants]Mutant{
	mutNone:               {"none", "nothing"},
	mutZoneEdge:           {"zone-edge", "the largest value of a chunk is left out of its zone"},
	mutPostingLost:        {"posting-lost", "some blocks of postings are not linked to the one before"},
	mutDictCollision:      {"dict-collision", "texts of one hash have one number"},
	mutPrefixIgnored:      {"prefix-ignored", "a question sees rows after its prefix"},
	mutStateEarly:         {"state-early", "an order is cancelled or replaced by an entry after the prefix"},
	mutRunEdge:            {"run-edge", "a sorted run leaves out the first row of a range"},
	mutFarIgnored:         {"far-ignored", "decimals that do not fit the column are passed over"},
	mutSkipsEntry:         {"view-skips-entry", "the last entry of a step has an empty row in the view"},
	mutAppliesUncommitted: {"view-applies-uncommitted", "a view has rows of entries that are stored and not committed"},
	mutDropsLate:          {"view-drops-late", "entries are freed whose rows are in the view"},
	mutDropsEarly:         {"view-drops-early", "rows are dropped whose entries are not to be freed"},
	mutReadersForgotten:   {"view-readers-forgotten", "entries are freed that a question still reads"},
	mutHistoryUnchecked:   {"view-history-unchecked", "a question that has to see an entry is answered by a log with another one in its place"},
	mutPageBase:           {"view-page-base", "a page goes on at a copy with earlier rows than that of the first page had"},
}

// Mutants lists the variants that questions to one view find.
func Mutants() []Mutant { return mutantList[1:mutSkipsEntry] }

// Following lists those that the simulator finds: of a Follower, and of the prefix that a question is about.
func Following() []Mutant {
	return append(mutantList[mutSkipsEntry:len(mutantList):len(mutantList)], mutantList[mutPrefixIgnored], mutantList[mutStateEarly])
}

// SelectMutant breaks views in one way from here on, in this process, or not at all if there
// is no such variant. It reports whether there is.
func SelectMutant(name string) bool {
	selected = mutNone
	for id := range mutantList {
		if id > 0 && mutantList[id].Name == name {
			selected = mutantID(id)
		}
	}
	return selected != mutNone
}
