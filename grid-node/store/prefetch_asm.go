//go:build amd64 || arm64

package store

import "unsafe"

// prefetch begins to load the cache line at p and waits for nothing. A load in Go
// would wait: until it is done, the core runs out of what it may do ahead.
//
//go:noescape
func prefetch(p unsafe.Pointer)
