package report

// LedgerCounts is the result of comparing the ledger with the committed log. Everything but
// Entries, Foreign, Late and the two Unknown counts must be zero in a correct run.
type LedgerCounts struct {
	Entries int64 `json:"entries"` // log entries read, of every kind
	Foreign int64 `json:"foreign"` // orders in the log that are not of this probe

	Lost        int64 `json:"lost"`        // acknowledged, not in the log
	Duplicates  int64 `json:"duplicates"`  // a ClOrdID in the log twice, or one receipt given twice
	Gaps        int64 `json:"gaps"`        // sequence numbers missing from the log
	Misplaced   int64 `json:"misplaced"`   // in the log, but not at the place in the receipt, or with another hash
	Refused     int64 `json:"refused"`     // in the log although the grid refused it, or it was never sent
	Corrupt     int64 `json:"corrupt"`     // in the log with invalid content
	ChainBreaks int64 `json:"chainBreaks"` // an entry that does not follow the previous one

	UnknownFound  int64 `json:"unknownFound"`  // unanswered, and in the log
	UnknownAbsent int64 `json:"unknownAbsent"` // unanswered, and not in the log
	Late          int64 `json:"late"`          // of an earlier step, not seen there, in the log now
}

// Add sums counts over steps, copies or partitions.
func (c *LedgerCounts) Add(o LedgerCounts) {
	c.Entries += o.Entries
	c.Foreign += o.Foreign
	c.Lost += o.Lost
	c.Duplicates += o.Duplicates
	c.Gaps += o.Gaps
	c.Misplaced += o.Misplaced
	c.Refused += o.Refused
	c.Corrupt += o.Corrupt
	c.ChainBreaks += o.ChainBreaks
	c.UnknownFound += o.UnknownFound
	c.UnknownAbsent += o.UnknownAbsent
	c.Late += o.Late
}

// Violations is the sum of all counts that must be zero.
func (c LedgerCounts) Violations() int64 {
	return c.Lost + c.Duplicates + c.Gaps + c.Misplaced + c.Refused + c.Corrupt + c.ChainBreaks
}
