package store

import (
	"errors"
	"hash/maphash"
	"sync/atomic"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"github.com/ordergrid/ordergrid/internal/prefetch"
)

// keyIndex maps ClOrdID to the position of its entry by extendible hashing: a
// directory of 4 KiB pages; a page that is full is split in two, and only when
// the directory is too small for that it doubles (4 bytes per page). The
// largest pause is thus the split of one page, about a microsecond, or the copy
// of the directory, 20 microseconds at 20 million orders.
//
// The fill of a page is stored apart from the pages, in two bytes each, so that an order
// costs one cache miss here and not two.
//
// A slot is position+1 in its low half and 32 bits of the key's hash in its high half: a
// split does not read the entries, and a lookup reads an entry only when all 32 bits
// agree. The hash is seeded per store, so clients cannot choose colliding keys.
type keyIndex struct {
	seed   maphash.Seed
	same   bool     // the hash has no seed: Options.Repeatable
	depth  uint     // the directory has 1<<depth places
	dir    []uint32 // page numbers; low bits of the hash choose
	dirMap []byte
	chunks [][]byte // see chunkOfPage
	pages  uint32
	ready  atomic.Pointer[readyChunk]
}

// readyChunk is a chunk mapped and faulted in ahead of need, off the hot path.
type readyChunk struct {
	chunk uint32
	mem   []byte
}

const (
	pageSlotBits = 9
	pageSlots    = 1 << pageSlotBits // of 8 bytes
	pageBytes    = pageSlots * 8
	pageFull     = 440
	fillBytes    = 2
	chunkBytes   = 2 << 20 // one huge page
	chunkPages   = chunkBytes/pageBytes - 1
	maxDepth     = 22
)

var errKeyIndexFull = errors.New("order store: ClOrdID index cannot be split further")

type page [pageSlots]uint64

// pageFill is the depth of a page, and how many slots it has in use.
type pageFill uint16

const fillDepthBits = 5 // of maxDepth

func makeFill(depth uint, n int) pageFill { return pageFill(depth) | pageFill(n)<<fillDepthBits }
func (f pageFill) depth() uint            { return uint(f & (1<<fillDepthBits - 1)) }
func (f pageFill) count() int             { return int(f >> fillDepthBits) }

// add puts a slot into a page that is not full.
func (p *page) add(slot uint64) {
	i := startSlot(uint32(slot >> 32))
	for p[i] != 0 {
		i = (i + 1) & (pageSlots - 1)
	}
	p[i] = slot
}

// startSlot uses the bits of the hash that the directory does not use.
func startSlot(fp uint32) uint32 { return fp >> (32 - pageSlotBits) }

func (x *keyIndex) open() (err error) {
	x.seed = maphash.MakeSeed()
	if x.dirMap, x.dir, err = mapDir(1); err != nil {
		return err
	}
	x.dir[0], err = x.newPage()
	return err
}

func mapDir(n int) ([]byte, []uint32, error) {
	mem, err := mapMemory(max(4*n, 4096))
	if err != nil {
		return nil, nil, err
	}
	return mem, unsafe.Slice((*uint32)(unsafe.Pointer(&mem[0])), n), nil
}

// chunkOfPage returns the chunk of a page. A chunk has the pageFills in place of its last
// page. From the second on it is one huge page: accesses are spread over the whole index,
// and with many small pages the TLB misses would cost more than the memory accesses.
func chunkOfPage(n uint32) (chunk, at uint32) { return n / chunkPages, n % chunkPages }

func (x *keyIndex) newPage() (uint32, error) {
	if chunk, _ := chunkOfPage(x.pages); int(chunk) == len(x.chunks) {
		mem := x.takeReady(chunk)
		if mem == nil {
			var err error
			if mem, err = mapChunk(chunk); err != nil {
				return 0, err
			}
		}
		x.chunks = append(x.chunks, mem)
	}
	x.pages++
	return x.pages - 1, nil
}

func mapChunk(chunk uint32) ([]byte, error) {
	mem, err := mapMemory(chunkBytes)
	if err == nil && chunk > 0 { // a small grid uses little
		askHuge(mem)
	}
	return mem, err
}

// takeReady returns the chunk if it was mapped ahead, else nil.
func (x *keyIndex) takeReady(chunk uint32) []byte {
	r := x.ready.Swap(nil)
	switch {
	case r == nil:
		return nil
	case r.chunk != chunk: // too late
		unmapMemory(r.mem)
		return nil
	}
	return r.mem
}

func (x *keyIndex) page(n uint32) *page {
	chunk, at := chunkOfPage(n)
	return (*page)(unsafe.Pointer(&x.chunks[chunk][at*pageBytes]))
}

func (x *keyIndex) fill(n uint32) *pageFill {
	chunk, at := chunkOfPage(n)
	return (*pageFill)(unsafe.Pointer(&x.chunks[chunk][chunkPages*pageBytes+at*fillBytes]))
}

// bytes the index holds.
func (x *keyIndex) bytes() int64 {
	return int64(x.pages)*pageBytes + int64(len(x.chunks))*pageBytes + int64(len(x.dir))*4
}

func (x *keyIndex) hash(key []byte) uint32 {
	if x.same {
		return uint32(xxhash.Sum64(key))
	}
	return uint32(maphash.Bytes(x.seed, key))
}

// pageOf returns the number of the page for a hash.
func (x *keyIndex) pageOf(fp uint32) uint32 { return x.dir[fp&(1<<x.depth-1)] }

// prefetch starts to load what find and insert of this hash will access.
func (x *keyIndex) prefetch(fp uint32) {
	prefetch.Line(unsafe.Pointer(&x.page(x.pageOf(fp))[startSlot(fp)]))
}

// find returns the position of the first entry for which same is true.
func (x *keyIndex) find(fp uint32, key []byte, s *Store) (pos uint32, ok bool) {
	p := x.page(x.pageOf(fp))
	for i := startSlot(fp); ; i = (i + 1) & (pageSlots - 1) {
		slot := p[i]
		if slot == 0 {
			return 0, false
		}
		if uint32(slot>>32) == fp {
			pos = uint32(slot) - 1
			if s.keyAt(pos, key) {
				return pos, true
			}
		}
	}
}

// growth returns how many bytes reserve may add for this hash.
func (x *keyIndex) growth(fp uint32) int64 {
	f := x.fill(x.pageOf(fp))
	if f.count() < pageFull {
		return 0
	}
	n := int64(pageBytes)
	if int(x.pages) == len(x.chunks)*chunkPages { // and the pageFills of another chunk
		n += pageBytes
	}
	if f.depth() == x.depth {
		n += int64(len(x.dir)) * 4
	}
	return n
}

// reserve makes room for one slot of this hash.
func (x *keyIndex) reserve(fp uint32) error {
	for {
		n := x.pageOf(fp)
		if x.fill(n).count() < pageFull {
			return nil
		}
		if err := x.split(fp, n); err != nil {
			return err
		}
	}
}

// insert adds a slot; reserve was called for the same hash.
func (x *keyIndex) insert(fp, pos uint32) {
	n := x.pageOf(fp)
	x.page(n).add(uint64(fp)<<32 | uint64(pos+1))
	*x.fill(n) += makeFill(0, 1)
}

// split divides page number from, to which fp belongs, by one more bit of the hash.
func (x *keyIndex) split(fp, from uint32) error {
	d := x.fill(from).depth()
	if d == x.depth {
		if err := x.double(); err != nil {
			return err
		}
	}
	n, err := x.newPage()
	if err != nil {
		return err
	}
	p, q := x.page(from), x.page(n)
	old := *p
	clear(p[:])
	kept, moved := 0, 0
	for _, slot := range old {
		switch {
		case slot == 0:
		case slot>>32>>d&1 == 0:
			p.add(slot)
			kept++
		default:
			q.add(slot)
			moved++
		}
	}
	*x.fill(from), *x.fill(n) = makeFill(d+1, kept), makeFill(d+1, moved)
	// Every directory entry whose low d bits are fp's and whose bit d is 1.
	for i := uint64(fp)&(1<<d-1) | 1<<d; i < uint64(len(x.dir)); i += 1 << (d + 1) {
		x.dir[i] = n
	}
	return nil
}

func (x *keyIndex) double() error {
	if x.depth == maxDepth {
		return errKeyIndexFull
	}
	n := len(x.dir)
	mem, dir, err := mapDir(2 * n)
	if err != nil {
		return err
	}
	copy(dir, x.dir)
	copy(dir[n:], x.dir)
	unmapMemory(x.dirMap)
	x.dirMap, x.dir = mem, dir
	x.depth++
	return nil
}

func (x *keyIndex) close() {
	for _, c := range x.chunks {
		unmapMemory(c)
	}
	if r := x.ready.Swap(nil); r != nil {
		unmapMemory(r.mem)
	}
	unmapMemory(x.dirMap)
	x.chunks, x.dir, x.dirMap, x.pages = nil, nil, nil, 0
}
