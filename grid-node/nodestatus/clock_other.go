//go:build !linux

package nodestatus

// kernelClocks are not known here.
func kernelClocks() (unixNs, monotonicNs int64) { return 0, 0 }
