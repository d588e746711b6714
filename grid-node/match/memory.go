package match

import "unsafe"

// hugeFrom is the size from which memory is requested outside the Go heap, in huge pages.
// What is smaller belongs to small engines.
const hugeFrom = 4 << 20

// hugePage is what the kernel aligns memory to whose size is a multiple of it.
const hugePage = 2 << 20

// allocate returns zeroed memory in parts of these sizes, one behind the other: tables that are
// smaller than a huge page are in one with what is beside them. A place of a table is waited for
// several times as long where its small page is not among those that the core has looked up.
func allocate(sizes ...int64) (parts [][]byte, memory []byte, err error) {
	total := int64(0)
	for _, n := range sizes {
		total += lines(n)
	}
	if total >= hugeFrom {
		total = (total + hugePage - 1) &^ (hugePage - 1)
	}
	if memory, err = mapped(total); err != nil {
		return nil, nil, err
	}
	at := int64(0)
	for _, n := range sizes {
		parts = append(parts, memory[at:][:n:n])
		at += lines(n)
	}
	return parts, memory, nil
}

// lines rounds up to cache lines.
func lines(n int64) int64 { return (n + 63) &^ 63 }

// slab returns memory as elements, which must have no pointers.
func slab[T any](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

// onHeap returns memory of the Go heap, aligned for any element.
func onHeap(n int64) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}
