//go:build !amd64 && !arm64

package match

import "unsafe"

// prefetch has no instruction here.
func prefetch(unsafe.Pointer) {}
