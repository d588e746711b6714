// Package flow schedules the orders of a step and generates their content: evenly spaced, in bursts
// (a Hawkes process), along a trading day, or as in a recording; all alike, or varied with cancels
// and replaces.
//
// It is pure: no clock, no file of its own, and the same parameters and seed give the same orders
// on every machine. That lets every pod of a run, and the check of the log afterwards, regenerate
// an order's content instead of storing it.
package flow
