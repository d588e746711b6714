// Package limits checks orders against risk limits before they reach a book: price collars,
// the largest order, message rates, repeated executions, credit, duplicates, restricted
// symbols, authorised persons and the kill switch. The part Guard of a partition's machine
// (grid-node/machine) drives it. See docs/limits.md.
//
// Limits is a pure function of its operations. It reads no clock (an operation carries the
// time), starts no goroutine, uses no floating-point number, and ranges over no map. Two
// instances with the same Config that applied the same operations have given the same
// answers and have the same Digest.
//
// The caller passes each order, replace and cancel to Apply, and, if the answer is None, to
// the book; then it passes what the book did (Revised, Filled, Done) to Apply. Check gives
// the answer of Apply and changes nothing. Change is what persons do: profiles, credit,
// kills.
//
// Everything has a number, which the caller gives to names: sessions, traders, desks,
// algorithms, clients, symbols, profiles. A party is one combination of the first five.
// Memory is allocated by New, none by Apply and Change.
package limits
