// Package certificate turns the history of a drill into a loss certificate: orders created and
// acknowledged, where they are now, the effect of each fault, and a verdict with its reasons. It is
// a function of the history alone, so that a saved history gives the same certificate again,
// without a cluster (Verify).
package certificate
