// Package ledger answers the question the published tests left to the vendor's
// own logic: is everything the grid acknowledged really there, once?
//
// The probe writes down what it created and what was acknowledged (File).
// After every step the committed log of the partition is read back, entry by
// entry, and held against those records (Checker). Nothing the grid says about
// itself is used except the log.
//
// A checker that cannot see loss would call every run clean. So a second one,
// the control, reads the same log with one entry taken out and one repeated,
// and must see exactly that; a run whose control is blind is not valid.
package ledger
