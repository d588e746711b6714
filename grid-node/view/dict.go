package view

import (
	"hash/maphash"
	"sync/atomic"
	"unsafe"
)

// dict numbers the distinct texts of a column from 1 on. It only grows. Its table has a
// fixed size, so readers look texts up while the writer adds some.
type dict struct {
	seed  maphash.Seed
	table []uint32 // codes by hash; twice as many places as codes at most
	max   uint32
	n     atomic.Uint32 // codes in use
	pages []atomic.Pointer[dictPage]
	texts []byte // the rest of the current piece of text memory
	mem   *budget
	maps  [][]byte
}

const (
	dictPageBits = 10
	dictPageSize = 1 << dictPageBits
	textPiece    = 64 << 10
)

type dictPage [dictPageSize]dictEntry

// dictEntry is in memory outside the heap: its pointer is to such memory too.
type dictEntry struct {
	text  unsafe.Pointer
	n     uint32
	hash  uint32
	list  list
	first uint64 // the first bytes of the text, for comparing
}

func (d *dict) open(mem *budget, values int) (full bool, err error) {
	places := 1
	for places < 2*values {
		places *= 2
	}
	b, err := mem.alloc(4 * places)
	if b == nil {
		return true, err
	}
	*d = dict{seed: maphash.MakeSeed(), max: uint32(values), mem: mem, maps: [][]byte{b}}
	d.table = unsafe.Slice((*uint32)(unsafe.Pointer(&b[0])), places)
	d.pages = make([]atomic.Pointer[dictPage], (values+dictPageSize)/dictPageSize+1)
	return false, nil
}

func (d *dict) entry(code uint32) *dictEntry {
	return &d.pages[code>>dictPageBits].Load()[code&(dictPageSize-1)]
}

// text of a code from 1 on. It belongs to the dictionary and never changes.
func (d *dict) text(code uint32) []byte {
	e := d.entry(code)
	return unsafe.Slice((*byte)(e.text), e.n)
}

func (d *dict) hash(s []byte) uint32 {
	hash := uint32(maphash.Bytes(d.seed, s))
	if mutant(mutDictCollision) {
		hash &= 7
	}
	return hash
}

// find returns the code of a text with this hash, 0 if it has none, and where the search ended.
func (d *dict) find(s []byte, hash uint32) (code, place uint32) {
	first := firstBytes(s)
	mask := uint32(len(d.table) - 1)
	for place = hash & mask; ; place = (place + 1) & mask {
		code = atomic.LoadUint32(&d.table[place])
		if code == 0 {
			return 0, place
		}
		e := d.entry(code)
		if e.hash != hash {
			continue
		}
		if mutant(mutDictCollision) {
			return code, place
		}
		if e.n == uint32(len(s)) && e.first == first && (len(s) <= 8 || string(d.text(code)) == string(s)) {
			return code, place
		}
	}
}

// firstBytes returns up to eight bytes of s as a number.
func firstBytes(s []byte) (x uint64) {
	if len(s) >= 8 {
		return *(*uint64)(unsafe.Pointer(&s[0]))
	}
	for i, c := range s {
		x |= uint64(c) << (8 * i)
	}
	return x
}

// add returns the code of a text with this hash, a new one if it has none; 0 if there is no room.
func (d *dict) add(s []byte, hash uint32) (uint32, error) {
	code, place := d.find(s, hash)
	if code != 0 {
		return code, nil
	}
	n := d.n.Load()
	if n == d.max {
		return 0, nil
	}
	code = n + 1
	if d.pages[code>>dictPageBits].Load() == nil {
		mem, err := d.mem.alloc(int(unsafe.Sizeof(dictPage{})))
		if mem == nil {
			return 0, err
		}
		d.maps = append(d.maps, mem)
		d.pages[code>>dictPageBits].Store((*dictPage)(unsafe.Pointer(&mem[0])))
	}
	if len(d.texts) < len(s) {
		mem, err := d.mem.alloc(textPiece)
		if mem == nil {
			return 0, err
		}
		d.maps = append(d.maps, mem)
		d.texts = mem
	}
	copy(d.texts, s)
	e := d.entry(code)
	e.text, e.n, e.hash, e.first = unsafe.Pointer(&d.texts[0]), uint32(len(s)), hash, firstBytes(s)
	d.texts = d.texts[len(s):]
	d.n.Store(code)
	atomic.StoreUint32(&d.table[place], code)
	return code, nil
}

func (d *dict) close() {
	for _, m := range d.maps {
		unmapMemory(m)
	}
	d.maps = nil
}
