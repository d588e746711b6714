//go:build amd64 || arm64

package store

import "unsafe"

// prefetch starts to load the cache line at p without waiting. A load in Go would stall
// once the core's reorder buffer is full.
//
//go:noescape
func prefetch(p unsafe.Pointer)
