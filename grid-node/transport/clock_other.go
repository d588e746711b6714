//go:build !linux

package transport

import "time"

// CountsSuspension reports whether Clock counts the time for which the machine was
// suspended. Otherwise a suspension extends a lease.
func CountsSuspension() bool { return false }

func bootNanos(elapsed time.Duration) int64 { return int64(elapsed) }
