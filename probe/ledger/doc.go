// Package ledger checks independently of the grid whether all acknowledged orders are really there,
// once.
//
// The probe records what it created and what was acknowledged (File). After every step the
// committed log of the partition is read back, entry by entry, and compared with those records
// (Checker). Of the grid's own reports only the log is used.
//
// A checker that cannot detect loss would accept every run. So a second one, the control, reads the
// same log with one entry removed and one repeated, and must find exactly that; a run whose control
// fails is not valid.
package ledger
