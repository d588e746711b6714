//go:build !amd64 && !arm64

// Package prefetch loads memory into the caches ahead of its use.
package prefetch

import "unsafe"

// Line has no instruction here.
func Line(unsafe.Pointer) {}

// Four has none either.
func Four(_, _, _, _ unsafe.Pointer) {}
