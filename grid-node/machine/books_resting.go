package machine

import (
	"github.com/cespare/xxhash/v2"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// resting has a row per order in the books: an order may outlive its entry, and is found
// by the ClOrdID of its last accepted entry. Nothing ranges over it but snapshots.
type resting struct {
	rows   []row // 0 is none
	free   []uint32
	byID   places
	byName places
	values [][2]uint64 // of the fills of rows of FIX sessions; nil before the first
	ofFix  []uint32    // orders that rest, by slot of the FIX sessions
	seed   uint64
	n      int
	sum    uint64
}

// row is an order that rests.
type row struct {
	id, first uint64 // the entry that it has its id of, and its first one
	hash      uint64 // of the ClOrdID alone
	size      uint8
	name      [order.MaxClOrdID]byte
	_         [3]byte
	owner     uint32
}

func (r *row) clOrdID() []byte { return r.name[:r.size] }

func (t *resting) digest(at uint32) uint64 {
	r := &t.rows[at]
	d := mix(r.id, r.first, r.hash)
	if r.owner >= fixOwner {
		d += mix(t.values[at][0], t.values[at][1], uint64(r.owner))
	}
	return d
}

// places finds rows by a hash: open addressing with linear probing, at most half full.
type places struct {
	table []uint64 // hash<<32 | row
	mask  uint32
}

func (p *places) init(table []uint64) { p.table, p.mask = table, uint32(len(table)-1) }

func (p *places) put(h, at uint32) {
	i := h & p.mask
	for p.table[i] != 0 {
		i = (i + 1) & p.mask
	}
	p.table[i] = uint64(h)<<32 | uint64(at)
}

func (p *places) drop(h, at uint32) {
	i := h & p.mask
	for want := uint64(h)<<32 | uint64(at); p.table[i] != want; {
		i = (i + 1) & p.mask
	}
	for j := i; ; {
		j = (j + 1) & p.mask
		e := p.table[j]
		if e == 0 {
			break
		}
		if home := uint32(e>>32) & p.mask; (j-home)&p.mask >= (j-i)&p.mask {
			p.table[i], i = e, j
		}
	}
	p.table[i] = 0
}

// init makes room for n orders. Its tables are of the engine's memory, which lasts as long.
func (t *resting) init(n int, seed uint64, e *match.Engine) {
	t.rows, t.free = make([]row, 1, n+1), make([]uint32, 0, n)
	t.seed = seed
	t.byID.init(e.Table(0))
	t.byName.init(e.Table(1))
}

func (t *resting) hashID(id uint64) uint32 { return uint32(mix(id, t.seed, 7)) }

// hashName hashes a ClOrdID: those of a FIX session are its own, all others share one space.
func (t *resting) hashName(name []byte, owner uint32) uint32 {
	return t.hashed(xxhash.Sum64(name), owner)
}

// hashed is hashName of a ClOrdID with this hash.
func (t *resting) hashed(name uint64, owner uint32) uint32 {
	return uint32(mix(name, t.seed, 8+uint64(spaceOf(owner))))
}

func (t *resting) hintID(id uint64) { match.HintPlace(t.byID.table, t.hashID(id)&t.byID.mask) }

func (t *resting) hintName(name []byte) {
	match.HintPlace(t.byName.table, t.hashName(name, 0)&t.byName.mask)
}

func spaceOf(owner uint32) uint32 {
	if owner >= fixOwner && !mutant(mutFixNamesShared) {
		return owner
	}
	return 0
}

// at returns the row of an order, 0 for none.
func (t *resting) at(id uint64) uint32 {
	if t.rows == nil {
		return 0
	}
	h := t.hashID(id)
	for i := h & t.byID.mask; ; i = (i + 1) & t.byID.mask {
		switch e := t.byID.table[i]; {
		case e == 0:
			return 0
		case uint32(e>>32) == h && t.rows[uint32(e)].id == id:
			return uint32(e)
		}
	}
}

// named returns the row of a ClOrdID, 0 for none.
func (t *resting) named(name []byte, owner uint32) uint32 {
	if t.rows == nil {
		return 0
	}
	h, space := t.hashName(name, owner), spaceOf(owner)
	for i := h & t.byName.mask; ; i = (i + 1) & t.byName.mask {
		switch e := t.byName.table[i]; {
		case e == 0:
			return 0
		case uint32(e>>32) == h && string(t.rows[uint32(e)].clOrdID()) == string(name) && spaceOf(t.rows[uint32(e)].owner) == space:
			return uint32(e)
		}
	}
}

func (t *resting) firstOf(id uint64) uint64 {
	if at := t.at(id); at != 0 {
		return t.rows[at].first
	}
	return id
}

// add adds an order that is not there. The engine has no more orders than there are rows.
func (t *resting) add(id, first uint64, name []byte, owner uint32, value [2]uint64) {
	var at uint32
	if n := len(t.free); n > 0 {
		at, t.free = t.free[n-1], t.free[:n-1]
	} else {
		at = uint32(len(t.rows))
		t.rows = append(t.rows, row{})
	}
	r := &t.rows[at]
	r.id, r.first, r.size, r.owner = id, first, uint8(len(name)), owner
	copy(r.name[:], name)
	r.hash = xxhash.Sum64(name)
	t.byID.put(t.hashID(id), at)
	t.byName.put(t.hashed(r.hash, owner), at)
	t.n++
	if owner >= fixOwner {
		t.countFix(owner, 1)
		t.setValue(at, value)
	}
	t.sum += t.digest(at)
}

// drop removes an order, if it is there.
func (t *resting) drop(id uint64) {
	at := t.at(id)
	if at == 0 {
		return
	}
	r := &t.rows[at]
	t.byID.drop(t.hashID(id), at)
	t.byName.drop(t.hashed(r.hash, r.owner), at)
	t.sum -= t.digest(at)
	if r.owner >= fixOwner {
		t.countFix(r.owner, ^uint32(0))
	}
	r.id = 0
	t.free = append(t.free, at)
	t.n--
}

func (t *resting) recount() (sum uint64) {
	for i := range t.rows {
		if t.rows[i].id != 0 {
			sum += t.digest(uint32(i))
		}
	}
	return sum
}

// owners numbers sessions: the orders of one have its number in the books. A slot that is
// opened again gets another, so orders of the session before have no owner.
type owners struct {
	bySlot []uint32
	slots  map[uint32]uint32
	last   uint32
	sum    uint64
}

func (o *owners) of(slot uint32) uint32 {
	if int(slot) >= len(o.bySlot) {
		return 0
	}
	return o.bySlot[slot]
}

func (o *owners) open(slot uint32) {
	if mutant(mutOwnerKept) && o.of(slot) != 0 {
		return
	}
	o.last++
	o.set(slot, o.last)
}

func (o *owners) set(slot, owner uint32) {
	if o.slots == nil {
		o.slots = map[uint32]uint32{}
	}
	for int(slot) >= len(o.bySlot) {
		o.bySlot = append(o.bySlot, 0)
	}
	if before := o.bySlot[slot]; before != 0 {
		o.sum -= mix(uint64(slot), uint64(before), 9)
		delete(o.slots, before)
	}
	o.bySlot[slot] = owner
	if owner != 0 {
		o.slots[owner] = slot
		o.sum += mix(uint64(slot), uint64(owner), 9)
	}
}
