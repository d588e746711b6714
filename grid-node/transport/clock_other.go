//go:build !linux

package transport

import "time"

func bootNanos(elapsed time.Duration) int64 { return int64(elapsed) }
