//go:build !linux

package nodestatus

// kernelClocks is not available here.
func kernelClocks() (unixNs, monotonicNs int64) { return 0, 0 }
