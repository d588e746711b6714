//go:build race

package race

// Enabled reports whether the race detector is in this build.
const Enabled = true
