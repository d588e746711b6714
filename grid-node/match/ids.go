package match

import (
	"math/bits"
	"unsafe"
)

// ids finds the slot of an order id: open addressing with linear probing, at most half
// full. An entry is 32 bits of the hash, whose lower ones are its place, and the slot. The
// order itself decides whether it is the one.
type ids struct {
	table []uint64
	mask  uint32
	seed  uint64
}

// idPlaces returns the size of the table for so many orders.
func idPlaces(orders int) uint32 { return 1 << bits.Len32(uint32(2*orders-1)) }

func (t *ids) hash(id uint64) uint32 {
	return uint32(fold(id^t.seed^0x8ebc6af09c88c6e3, 0x9e3779b97f4a7c15) >> 16)
}

// home returns where an id is looked for first.
func (t *ids) home(id uint64) unsafe.Pointer { return unsafe.Pointer(&t.table[t.hash(id)&t.mask]) }

// find returns the slot of an id, 0 for none.
func (t *ids) find(orders []order, id uint64) uint32 {
	h := t.hash(id)
	for i := h & t.mask; ; i = (i + 1) & t.mask {
		switch e := t.table[i]; {
		case e == 0:
			return 0
		case uint32(e>>32) == h && orders[uint32(e)].id == id:
			return uint32(e)
		}
	}
}

// put adds an id that is not there.
func (t *ids) put(id uint64, slot uint32) {
	h := t.hash(id)
	i := h & t.mask
	for t.table[i] != 0 {
		i = (i + 1) & t.mask
	}
	t.table[i] = uint64(h)<<32 | uint64(slot)
}

// drop removes an id that is there, and moves back those that its place had pushed on.
func (t *ids) drop(id uint64, slot uint32) {
	h := t.hash(id)
	i := h & t.mask
	for want := uint64(h)<<32 | uint64(slot); t.table[i] != want; {
		i = (i + 1) & t.mask
	}
	for j := i; ; {
		j = (j + 1) & t.mask
		e := t.table[j]
		if e == 0 {
			break
		}
		if home := uint32(e>>32) & t.mask; (j-home)&t.mask >= (j-i)&t.mask {
			t.table[i], i = e, j
		}
	}
	t.table[i] = 0
}
