package view

import (
	"hash/maphash"
	"sync/atomic"
	"unsafe"
)

// hashIndex finds rows by the hash of a text that is in the log: the newest row of each
// place, and from there by a column of the chunks the row before it that fell into the same
// place. A chain thus ends where rows were dropped, and nothing is ever removed. The hash
// is seeded, so clients cannot choose texts that fall into one place.
type hashIndex struct {
	seed  maphash.Seed
	heads []uint32 // low halves of row numbers
	mem   []byte
	next  uintptr // the column
}

func (x *hashIndex) open(b *budget, rows int, next uintptr) (full bool, err error) {
	places := 1 << 10
	for places < rows {
		places *= 2
	}
	x.mem, err = b.alloc(4 * places)
	if x.mem == nil {
		return true, err
	}
	x.seed, x.next = maphash.MakeSeed(), next
	x.heads = unsafe.Slice((*uint32)(unsafe.Pointer(&x.mem[0])), places)
	return false, nil
}

func (x *hashIndex) place(text []byte) uint32 {
	return uint32(maphash.Bytes(x.seed, text)) & uint32(len(x.heads)-1)
}

// add puts a row before all others of its place, the newest of which is before.
func (x *hashIndex) add(c *chunk, i, row, place, before uint32) {
	put32(at[uint32](c, x.next, i), before)
	release32(&x.heads[place], row)
}

// walk calls do for each row of the text's place that is in (base, last], the newest first,
// until it returns false. Rows of other texts are among them.
func (x *hashIndex) walk(v *View, text []byte, base, last uint64, do func(row uint64) bool) {
	r := atomic.LoadUint32(&x.heads[x.place(text)])
	for before := last + 1<<31; ; {
		row := uint64(int64(last) + int64(int32(r-uint32(last))))
		if row <= base || row >= before { // dropped, or overwritten since
			return
		}
		if row <= last && !do(row) {
			return
		}
		c := v.chunkOf(row)
		if c == nil {
			return
		}
		before = row
		r = atomic.LoadUint32(at[uint32](c, x.next, uint32(row)&(chunkRows-1)))
	}
}
