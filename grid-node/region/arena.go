package region

import (
	"encoding/binary"
	"fmt"
)

var le = binary.LittleEndian

// Blocks. The first block of an entry is its head; next leads to the others. The bytes of
// the key, then those of the value, fill what is behind the fields.
//
//	off size field            off size field
//	 0  u32  next             24  u64  version
//	 4  u8   kind             32  u64  expireNs; of a taken one its clientSeq
//	 5  u8   0                40  u64  sum
//	 6  u16  bytes of the key 48  u32  bytes of the value
//	 8  u32  left             52  u16  region
//	12  u32  right            54  u16  0
//	16  u32  priority         56  u32  era of the region
//	20  u32  place in the heap, from 1; of a taken one its session
//	                          60  data
const (
	blockSize = 128
	headFixed = 60
	nextFixed = 8
	headData  = blockSize - headFixed
	nextData  = blockSize - nextFixed

	chunkBlocks = 1 << 13 // 1 MiB
)

// Kinds of blocks.
const (
	blockFree  = 0
	blockHead  = 1
	blockNext  = 2
	blockTaken = 3 // the head of a value that was taken: a reply
)

// BlockSize is what memory is counted in, in bytes.
const BlockSize = blockSize

// arena has blocks by number, from 1 on. Free ones are used first.
type arena struct {
	chunks [][]byte
	high   uint32 // blocks that were ever used
	free   uint32 // the first free one of those
	used   uint64
	tie    []byte // scratch: a key
}

func (a *arena) at(n uint32) []byte {
	return a.chunks[n/chunkBlocks][n%chunkBlocks*blockSize:][:blockSize:blockSize]
}

// alloc returns a zeroed block.
func (a *arena) alloc(kind byte) uint32 {
	n := a.free
	if n != 0 {
		b := a.at(n)
		a.free = le.Uint32(b)
		clear(b)
	} else {
		a.high++
		if n = a.high; int(n/chunkBlocks) == len(a.chunks) {
			chunk, err := mapped(chunkBlocks * blockSize)
			if err != nil { // a copy that cannot hold what the others can is none
				panic(fmt.Sprintf("regions: %d blocks in use: %v", a.used, err))
			}
			a.chunks = append(a.chunks, chunk)
		}
	}
	a.used++
	a.at(n)[4] = kind
	return n
}

// release frees the chain of blocks that begins with n.
func (a *arena) release(n uint32) {
	for n != 0 {
		b := a.at(n)
		next := le.Uint32(b)
		le.PutUint32(b, a.free)
		b[4] = blockFree
		a.free = n
		a.used--
		n = next
	}
}

// close returns the memory.
func (a *arena) close() {
	unmap(a.chunks)
	*a = arena{}
}

// blocksOf returns how many blocks an entry with so many bytes of data takes.
func blocksOf(data int) uint64 {
	if data <= headData {
		return 1
	}
	return 1 + uint64(data-headData+nextData-1)/nextData
}

func (a *arena) keyLen(n uint32) int     { return int(le.Uint16(a.at(n)[6:])) }
func (a *arena) valueLen(n uint32) int   { return int(le.Uint32(a.at(n)[48:])) }
func (a *arena) version(n uint32) uint64 { return le.Uint64(a.at(n)[24:]) }
func (a *arena) expire(n uint32) int64   { return int64(le.Uint64(a.at(n)[32:])) }
func (a *arena) region(n uint32) uint16  { return le.Uint16(a.at(n)[52:]) }
func (a *arena) sum(n uint32) uint64     { return le.Uint64(a.at(n)[40:]) }
func (a *arena) era(n uint32) uint32     { return le.Uint32(a.at(n)[56:]) }
func (a *arena) left(n uint32) uint32    { return le.Uint32(a.at(n)[8:]) }
func (a *arena) right(n uint32) uint32   { return le.Uint32(a.at(n)[12:]) }
func (a *arena) prio(n uint32) uint32    { return le.Uint32(a.at(n)[16:]) }
func (a *arena) place(n uint32) uint32   { return le.Uint32(a.at(n)[20:]) }

func (a *arena) setLeft(n, to uint32)  { le.PutUint32(a.at(n)[8:], to) }
func (a *arena) setRight(n, to uint32) { le.PutUint32(a.at(n)[12:], to) }
func (a *arena) setPlace(n, to uint32) { le.PutUint32(a.at(n)[20:], to) }

// fill writes key and value into the chain of head n, which gets as many blocks as it needs.
func (a *arena) fill(n uint32, key, value []byte) {
	b := a.at(n)
	le.PutUint16(b[6:], uint16(len(key)))
	le.PutUint32(b[48:], uint32(len(value)))
	rest := b[headFixed:]
	last := n
	for _, part := range [2][]byte{key, value} {
		for len(part) > 0 {
			if len(rest) == 0 {
				next := le.Uint32(a.at(last))
				if next == 0 {
					next = a.alloc(blockNext)
					le.PutUint32(a.at(last), next)
				}
				last, rest = next, a.at(next)[nextFixed:]
			}
			k := copy(rest, part)
			rest, part = rest[k:], part[k:]
		}
	}
	b = a.at(last)
	a.release(le.Uint32(b))
	le.PutUint32(b, 0)
}

// read appends bytes of the data of head n: those from from on, at most size.
func (a *arena) read(dst []byte, n uint32, from, size int) []byte {
	for b := a.at(n)[headFixed:]; size > 0; b = a.at(n)[nextFixed:] {
		if from < len(b) {
			k := min(size, len(b)-from)
			dst = append(dst, b[from:from+k]...)
			from, size = from+k, size-k
		}
		from -= len(b)
		if n = le.Uint32(a.at(n)); n == 0 {
			return dst
		}
	}
	return dst
}

// key appends the key of head n, value its value.
func (a *arena) key(dst []byte, n uint32) []byte { return a.read(dst, n, 0, a.keyLen(n)) }

func (a *arena) value(dst []byte, n uint32) []byte {
	return a.read(dst, n, a.keyLen(n), a.valueLen(n))
}

// compare orders a key and that of head n by their bytes.
func (a *arena) compare(key []byte, n uint32) int {
	size := a.keyLen(n)
	for b := a.at(n)[headFixed:]; ; b = a.at(n)[nextFixed:] {
		own := b[:min(size, len(b))]
		part := key[:min(len(key), len(own))]
		for i := range part {
			if part[i] != own[i] {
				return int(part[i]) - int(own[i])
			}
		}
		if len(part) < len(own) || size == len(own) {
			return len(key) - size
		}
		key, size, n = key[len(part):], size-len(own), le.Uint32(a.at(n))
	}
}
