// Package flow says when the orders of a step are intended and what each of
// them is: evenly spaced, in bursts (a Hawkes process), along a trading day, or
// as in a recording; all alike, or varied with cancels and replaces.
//
// It is pure: no clock, no file of its own, and from the same words and seed
// the same orders come out on every machine. That is what lets every pod of a
// run, and the check of the log afterwards, make an order's content again
// instead of keeping it.
package flow
