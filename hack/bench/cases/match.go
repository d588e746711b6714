package cases

// Grids that match. They are measured where a case asks for them only.
const (
	// GridMatch matches each order in the book of its symbol, on every copy, as spec.execution.mode Match.
	GridMatch = "grid-match"
	// GridMatchTold tells the clients besides what happened to their orders, as an exchange does.
	GridMatchTold = "grid-match-told"
)

// Match are the cases that show what matching costs orders, beside the grid that stores the same ones: of both sides
// around one price, half of which rest until the other half trades with them. On request only: CASES=match.
func Match() []Case {
	all := besides("match", Grid, GridMatch, GridMatchTold)
	for i := range all {
		all[i].Title += ", both sides"
		all[i].Shape.TwoSided = true
	}
	return all
}
