package limits

import "math/bits"

// table finds a slot by a hash: open addressing with linear probing. An entry is the hash,
// whose lower bits are its place, and the slot + 1. What is in the slot decides whether it
// is the one.
type table struct {
	places []uint64
	mask   uint32
	seed   uint64
}

func newTable(n int, seed uint64) table {
	return table{make([]uint64, places(n)), places(n) - 1, seed}
}

func (t *table) hash(a, b uint64) uint32 {
	return uint32(fold(a^t.seed^0x8ebc6af09c88c6e3, b^0x9e3779b97f4a7c15) >> 16)
}

// put adds a slot that is not there.
func (t *table) put(h, slot uint32) {
	i := h & t.mask
	for t.places[i] != 0 {
		i = (i + 1) & t.mask
	}
	t.places[i] = uint64(h)<<32 | uint64(slot+1)
}

// drop removes a slot that is there, and moves back those that its place had pushed on.
func (t *table) drop(h, slot uint32) {
	i := h & t.mask
	for want := uint64(h)<<32 | uint64(slot+1); t.places[i] != want; {
		i = (i + 1) & t.mask
	}
	for j := i; ; {
		j = (j + 1) & t.mask
		e := t.places[j]
		if e == 0 {
			break
		}
		if home := uint32(e>>32) & t.mask; (j-home)&t.mask >= (j-i)&t.mask {
			t.places[i], i = e, j
		}
	}
	t.places[i] = 0
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func mix(a, b, c uint64) uint64 {
	return fold(fold(a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)^0x8ebc6af09c88c6e3, c^0x589965cc75374cc3)
}

// find returns the slot of an order, 0 for none.
func (l *Limits) find(id uint64) uint32 {
	h := l.byID.hash(id, 0)
	for i := h & l.byID.mask; ; i = (i + 1) & l.byID.mask {
		switch e := l.byID.places[i]; {
		case e == 0:
			return 0
		case uint32(e>>32) == h && l.orders[uint32(e)-1].id == id:
			return uint32(e) - 1
		}
	}
}

// add puts an order into a free slot, which there is.
func (l *Limits) add(o *order) {
	slot := l.free
	if slot != 0 {
		l.free = l.orders[slot].party
	} else {
		l.top++
		slot = l.top
	}
	l.orders[slot] = *o
	l.byID.put(l.byID.hash(o.id, 0), slot)
	l.open++
	l.sum += o.digest()
}

// remove frees a slot.
func (l *Limits) remove(slot uint32) {
	o := &l.orders[slot]
	l.sum -= o.digest()
	l.byID.drop(l.byID.hash(o.id, 0), slot)
	*o = order{party: l.free}
	l.free = slot
	l.open--
}
