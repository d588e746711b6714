package cases

import "slices"

// Grids that call functions. They are measured where a case asks for them only.
const (
	// GridBare is built without what calls functions: the grid as it would be if there were none.
	GridBare = "grid-bare"
	// GridPre has a check of five fields decide on each order (fat-finger).
	GridPre = "grid-pre"
	// GridPost has every copy count orders by account (count-accounts), GridAudit make a record of each, linked by
	// SHA-256 (audit-trail).
	GridPost  = "grid-post"
	GridAudit = "grid-audit"
)

var calling = []string{GridBare, GridPre, GridPost, GridAudit}

// Functions are the cases that show what functions cost orders, beside the grid without them: one that could call some,
// and one that could not. On request only: CASES=functions.
func Functions() []Case { return besides("functions", slices.Concat([]string{Grid}, calling)...) }
