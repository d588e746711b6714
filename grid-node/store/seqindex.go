package store

import (
	"math/bits"
	"unsafe"
)

// seqIndex maps seq to position. Chunk k holds 4096<<k positions, so it grows without
// copying; the kernel provides the pages as they are written.
type seqIndex struct {
	chunks [28][]uint32
	maps   [28][]byte
	before uint64 // seq before the one the index begins with: a log may begin at any number
}

const firstChunkBits = 12

// placeOf returns the chunk of a seq and the index in it.
func (x *seqIndex) placeOf(seq uint64) (chunk int, off uint64) { return chunkOf(seq - 1 - x.before) }

func chunkOf(i uint64) (chunk int, off uint64) {
	k := bits.Len64(i>>firstChunkBits+1) - 1
	return k, i - (1<<k-1)<<firstChunkBits
}

// reserve ensures that seq has a slot.
func (x *seqIndex) reserve(seq uint64) error {
	k, _ := x.placeOf(seq)
	if x.chunks[k] != nil {
		return nil
	}
	n := 1 << (firstChunkBits + k)
	mem, err := mapMemory(4 * n)
	if err != nil {
		return err
	}
	x.maps[k] = mem
	x.chunks[k] = unsafe.Slice((*uint32)(unsafe.Pointer(&mem[0])), n)
	return nil
}

func (x *seqIndex) put(seq uint64, pos uint32) {
	k, off := x.placeOf(seq)
	x.chunks[k][off] = pos
}

func (x *seqIndex) get(seq uint64) uint32 {
	k, off := x.placeOf(seq)
	return x.chunks[k][off]
}

func (x *seqIndex) close() {
	for k := range x.maps {
		unmapMemory(x.maps[k])
		x.maps[k], x.chunks[k] = nil, nil
	}
}
