// Package certificate turns the history of a drill into a loss certificate: what was
// created, what was acknowledged, where all of it is now, what each fault did, and
// a verdict with its reasons. It is a function of the history alone, so that a saved
// history gives the same certificate again, without a cluster (package certificate,
// Verify).
package certificate
