package view

import (
	"sync/atomic"
	"unsafe"
)

// postings holds, for each code of a dictionary column, the rows that have it: a chain of
// blocks of one cache line, the oldest first, each with 15 rows (the low halves of their
// numbers) and the number of the block after it.
//
// A block begins with all its places equal to its first row. Rows rise, so a reader stops
// at a place that does not, and at a row beyond its prefix.
type postings struct {
	pages []atomic.Pointer[postPage]
	n     uint32 // blocks made
	free  []uint32
	mem   *budget
	maps  [][]byte
}

const (
	postRows     = 15
	postPageBits = 12
	postPageSize = 1 << postPageBits
)

type (
	postBlock struct {
		rows [postRows]uint32
		next uint32 // 0 for none
	}
	postPage [postPageSize]postBlock
)

// list is the chain of one value. Blocks count from 1.
type list struct {
	head  uint32 // atomic
	tail  uint32
	fill  uint32 // rows in tail
	count uint32 // atomic; rows in the list
}

func (p *postings) open(mem *budget, limit int64) {
	pages := limit/int64(unsafe.Sizeof(postPage{})) + 2
	*p = postings{n: 1, mem: mem, pages: make([]atomic.Pointer[postPage], pages)}
}

func (p *postings) block(i uint32) *postBlock {
	return &p.pages[i>>postPageBits].Load()[i&(postPageSize-1)]
}

// reserve makes sure that a block is there for add; false if there is no memory.
func (p *postings) reserve(l *list) (bool, error) {
	if l.fill%postRows != 0 || len(p.free) > 0 {
		return true, nil
	}
	if page := p.n >> postPageBits; p.pages[page].Load() == nil {
		mem, err := p.mem.alloc(int(unsafe.Sizeof(postPage{})))
		if mem == nil {
			return false, err
		}
		p.maps = append(p.maps, mem)
		p.pages[page].Store((*postPage)(unsafe.Pointer(&mem[0])))
	}
	return true, nil
}

// add appends a row; reserve was called.
func (p *postings) add(l *list, row uint32) {
	if l.fill%postRows == 0 {
		p.addBlock(l, row)
	} else {
		put32(&p.block(l.tail).rows[l.fill], row)
		l.fill++
	}
	put32(&l.count, l.count+1)
}

func (p *postings) addBlock(l *list, row uint32) {
	var i uint32
	if n := len(p.free); n > 0 {
		i, p.free = p.free[n-1], p.free[:n-1]
	} else {
		i = p.n
		p.n++
	}
	b := p.block(i)
	for k := range b.rows {
		put32(&b.rows[k], row)
	}
	put32(&b.next, 0)
	switch {
	case l.tail == 0 || atomic.LoadUint32(&l.head) == 0:
		release32(&l.head, i)
	case mutant(mutPostingLost) && row%8 == 3:
		// the block is never linked
	default:
		release32(&p.block(l.tail).next, i)
	}
	l.tail, l.fill = i, 1
}

// drop removes the first rows of a list up to row, which the list contains. It returns the
// block that became empty, 0 if none did: it may be in use by readers.
func (p *postings) drop(l *list, row uint32) (emptied uint32) {
	put32(&l.count, l.count-1)
	head := l.head
	b := p.block(head)
	switch {
	case head != l.tail && b.rows[postRows-1] == row:
		atomic.StoreUint32(&l.head, b.next)
		return head
	case head == l.tail && b.rows[l.fill-1] == row:
		atomic.StoreUint32(&l.head, 0)
		l.tail, l.fill = 0, 0
		return head
	}
	return 0
}

func (p *postings) close() {
	for _, m := range p.maps {
		unmapMemory(m)
	}
	p.maps = nil
}
