//go:build !unix || race

package view

import "unsafe"

// mapMemory returns n zero bytes of the heap: the race detector does not see other memory.
func mapMemory(n int) ([]byte, error) {
	words := make([]uint64, (n+7)/8) // aligned for columns
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n), nil
}

func unmapMemory([]byte) {}
