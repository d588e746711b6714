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
	mutNone:          {"none", "nothing"},
	mutZoneEdge:      {"zone-edge", "the largest value of a chunk is left out of its zone"},
	mutPostingLost:   {"posting-lost", "some blocks of postings are not linked to the one before"},
	mutDictCollision: {"dict-collision", "texts of one hash have one number"},
	mutPrefixIgnored: {"prefix-ignored", "a question sees rows after its prefix"},
	mutStateEarly:    {"state-early", "an order is cancelled or replaced by an entry after the prefix"},
	mutRunEdge:       {"run-edge", "a sorted run leaves out the first row of a range"},
	mutFarIgnored:    {"far-ignored", "decimals that do not fit the column are passed over"},
}

// Mutants lists the variants.
func Mutants() []Mutant { return mutantList[1:] }

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
