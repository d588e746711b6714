//go:build !race

// Package race reports to tests whether the race detector is in the build: it allocates, and makes
// exhaustive loops slow. Not for production code.
package race

// Enabled reports whether the race detector is in this build.
const Enabled = false
