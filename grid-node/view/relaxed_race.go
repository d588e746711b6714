//go:build race

package view

import "sync/atomic"

// put32 is atomic where the race detector looks.
func put32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
