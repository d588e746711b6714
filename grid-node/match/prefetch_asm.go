//go:build amd64 || arm64

package match

import "unsafe"

// prefetch starts to load the cache line at p without waiting, as in grid-node/store.
//
//go:noescape
func prefetch(p unsafe.Pointer)
