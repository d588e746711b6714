//go:build race

package sim

// The race detector makes a run ten times slower; a world has one goroutine, so
// a few seeds show what there is to see: that worlds share nothing.
const raceEnabled = true
