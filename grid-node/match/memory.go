package match

import "unsafe"

// hugeFrom is the size from which memory is requested outside the Go heap, in huge pages.
// What is smaller belongs to small engines.
const hugeFrom = 4 << 20

// allocate returns zeroed memory of these sizes.
func allocate(sizes ...int64) (memory [][]byte, err error) {
	for _, n := range sizes {
		b, err := mapped(n)
		if err != nil {
			unmap(memory)
			return nil, err
		}
		memory = append(memory, b)
	}
	return memory, nil
}

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
