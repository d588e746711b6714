package model

// table holds every state seen, in the order found, with its predecessor: the queue of the
// search, the visited set, and the traces in one.
type table struct {
	chunks [][]packed
	from   [][]uint32
	slots  []uint32 // 1 + number of a state, by hash; 0 free
	n      uint32
}

const (
	chunkBits = 16
	chunkMask = 1<<chunkBits - 1
	maxStates = 1<<32 - 2
)

func newTable() *table { return &table{slots: make([]uint32, 1<<16)} }

func (t *table) at(i uint32) *packed    { return &t.chunks[i>>chunkBits][i&chunkMask] }
func (t *table) parent(i uint32) uint32 { return t.from[i>>chunkBits][i&chunkMask] }
func (t *table) bytes() int64 {
	return int64(len(t.chunks))<<chunkBits*(packedBytes+4) + int64(len(t.slots))*4
}
func (t *table) slot(k *packed) uint32    { return uint32(k.hash() & uint64(len(t.slots)-1)) }
func (t *table) after(slot uint32) uint32 { return (slot + 1) & uint32(len(t.slots)-1) }

// add returns the number of a state, and whether it is new.
func (t *table) add(k *packed, from uint32) (uint32, bool) {
	i := t.slot(k)
	for ; t.slots[i] != 0; i = t.after(i) {
		if n := t.slots[i] - 1; *t.at(n) == *k {
			return n, false
		}
	}
	if t.n == maxStates {
		panic("model: more states than a table holds")
	}
	if t.n&chunkMask == 0 {
		t.chunks = append(t.chunks, make([]packed, 1<<chunkBits))
		t.from = append(t.from, make([]uint32, 1<<chunkBits))
	}
	n := t.n
	t.n++
	*t.at(n), t.from[n>>chunkBits][n&chunkMask] = *k, from
	t.slots[i] = t.n
	if uint64(t.n)*3 > uint64(len(t.slots))*2 {
		t.grow()
	}
	return n, true
}

func (t *table) grow() {
	t.slots = make([]uint32, 2*len(t.slots))
	for n := range t.n {
		i := t.slot(t.at(n))
		for t.slots[i] != 0 {
			i = t.after(i)
		}
		t.slots[i] = n + 1
	}
}
