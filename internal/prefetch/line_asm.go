//go:build amd64 || arm64

// Package prefetch loads memory into the caches ahead of its use.
package prefetch

import "unsafe"

// Line starts to load the cache line at p without waiting. A load in Go would stall once the
// core's reorder buffer is full. p need not be valid.
//
//go:noescape
func Line(p unsafe.Pointer)

// Four starts to load four lines, at the cost of one call.
//
//go:noescape
func Four(p, q, r, s unsafe.Pointer)
