//go:build !amd64 && !arm64

package store

import "unsafe"

// prefetch has no instruction here.
func prefetch(unsafe.Pointer) {}
