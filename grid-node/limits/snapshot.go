package limits

import "encoding/binary"

var le = binary.LittleEndian

// The state as bytes: a sequence of items, each a word with its kind followed by words,
// little-endian: head, then each kind in this order by rising number, end. Items that are
// all zero are left out. Slots are not in it: no answer depends on them.

// Kinds of items.
const (
	itemHead = iota + 1
	itemProfile
	itemBits
	itemSymbol
	itemSession
	itemClient
	itemAlgorithm
	itemParty
	itemKill
	itemGifts
	itemRecent
	itemOrder
	itemEnd
)

// itemMost is the largest number of words of an item.
const itemMost = 12

// itemWords is the number of words behind the first of each item.
var itemWords = [itemEnd + 1]int{itemHead: 4, itemProfile: 12, itemBits: 3, itemSymbol: 3, itemSession: 3, itemClient: 4, itemAlgorithm: 3,
	itemParty: 3, itemKill: 9, itemGifts: 3, itemRecent: 5, itemOrder: 6, itemEnd: 1}

// snapshotPart is the approximate size of a part, snapshotVisits how many places it visits.
const (
	snapshotPart   = 64 << 10
	snapshotVisits = 64 << 10
)

// Cursor is where the next part of a snapshot begins. The zero Cursor is the beginning.
type Cursor struct {
	Done bool
	kind int
	n    int
}

// AppendSnapshot appends the part of the state that begins at c, at most about 64 KiB, and
// returns where the next one begins. A part may be empty. The state must not be changed
// between parts.
func (l *Limits) AppendSnapshot(dst []byte, c Cursor) ([]byte, Cursor) {
	start := len(dst)
	var w [itemMost]uint64
	if c.kind == 0 {
		dst = item(dst, itemHead, []uint64{DigestForm, uint64(l.now), flag(l.killedAll), l.first})
		c.kind = itemProfile
	}
	for visits := 0; len(dst)-start < snapshotPart && visits < snapshotVisits; visits++ {
		if c.kind == itemEnd {
			return item(dst, itemEnd, []uint64{l.Digest()}), Cursor{Done: true}
		}
		if n := l.words(c, &w); n > 0 {
			dst = item(dst, c.kind, w[:n])
		}
		l.next(&c)
	}
	return dst, c
}

func item(dst []byte, kind int, words []uint64) []byte {
	dst = le.AppendUint64(dst, uint64(kind))
	for _, w := range words {
		dst = le.AppendUint64(dst, w)
	}
	return dst
}

// next goes to the next place.
func (l *Limits) next(c *Cursor) {
	c.n++
	for c.kind < itemEnd && c.n >= l.visits(c.kind) {
		c.kind, c.n = c.kind+1, 0
	}
}

// visits is the number of places of a kind that may not be zero.
func (l *Limits) visits(kind int) int {
	switch kind {
	case itemSymbol, itemSession, itemClient, itemAlgorithm, itemParty:
		return l.used[kind] + 1
	case itemOrder:
		return int(l.top) + 1
	}
	return l.size(kind)
}

// size is the number of places of a kind.
func (l *Limits) size(kind int) int {
	switch kind {
	case itemProfile:
		return len(l.profiles)
	case itemBits:
		return l.bitWords()
	case itemSymbol:
		return len(l.symbols)
	case itemSession:
		return len(l.sessions)
	case itemClient:
		return len(l.clients)
	case itemAlgorithm:
		return len(l.algorithms)
	case itemParty:
		return len(l.parties)
	case itemKill:
		return len(l.kills)
	case itemGifts:
		return len(l.gave)
	case itemRecent:
		return int(l.held)
	case itemOrder:
		return len(l.orders)
	}
	return 0
}

// bitmaps are all of them.
func (l *Limits) bitmaps() [2 + All]*bitmap {
	b := [2 + All]*bitmap{&l.authorised, &l.restricted}
	for s := range l.killed {
		b[2+s] = &l.killed[s]
	}
	return b
}

func (l *Limits) bitWords() (n int) {
	for _, b := range l.bitmaps() {
		n += len(b.words)
	}
	return n
}

// bitWord returns a word of the bitmaps, and which one and where it is.
func (l *Limits) bitWord(n int) (at *uint64, b int) {
	for i, m := range l.bitmaps() {
		if n < len(m.words) {
			return &m.words[n], i
		}
		n -= len(m.words)
	}
	return nil, 0
}

// words sets w to the item at a place, and returns how many words it has, 0 if it is all
// zero.
func (l *Limits) words(c Cursor, w *[itemMost]uint64) int {
	set := func(words ...uint64) int { return copy(w[:], words) }
	n := uint64(c.n)
	switch c.kind {
	case itemProfile:
		if p := &l.profiles[c.n]; p.who != 0 {
			r := &p.Rules
			return set(n|uint64(p.who)<<32, uint64(p.at), two(r.CollarReference, r.CollarLast), uint64(r.CollarLeast), uint64(r.MaxVolume),
				uint64(r.MaxValue), two(r.Rate, r.Burst), two(r.Reserve, r.Repeats), uint64(r.RepeatWindow), uint64(r.DuplicateWindow),
				two(r.Officers[0], r.Officers[1]), two(r.Officers[2], r.Officers[3]))
		}
	case itemBits:
		if at, b := l.bitWord(c.n); *at != 0 {
			return set(n, uint64(b), *at)
		}
	case itemSymbol:
		if y := &l.symbols[c.n]; y.multiplier != 0 {
			return set(n|flag(y.traded)<<31|uint64(y.multiplier)<<32, uint64(y.reference), uint64(y.last))
		}
	case itemSession:
		if s := &l.sessions[c.n]; s.profile != 0 {
			return set(n|uint64(s.profile)<<32, s.level, uint64(s.at))
		}
	case itemClient:
		if k := &l.clients[c.n]; k.profile != 0 || k.limit != 0 || k.here != 0 || k.executed != 0 {
			return set(n|uint64(k.profile)<<32, uint64(k.limit), uint64(k.here), uint64(k.executed))
		}
	case itemAlgorithm:
		if a := &l.algorithms[c.n]; a.count != 0 {
			return set(two(uint32(c.n), a.count), uint64(a.profile), uint64(a.start))
		}
	case itemParty:
		if p := &l.parties[c.n]; p.Client != 0 {
			return set(two(uint32(c.n), p.Session), two(p.Trader, p.Desk), two(p.Algorithm, p.Client))
		}
	case itemKill:
		k := &l.kills[c.n]
		w[0], w[1], w[2] = two(k.Who, k.N), uint64(k.Scope), uint64(k.At)
		for i := range 6 {
			w[3+i] = le.Uint64(k.Why[8*i:])
		}
		return 9
	case itemGifts:
		if l.gave[c.n]|l.took[c.n] != 0 {
			return set(n, l.gave[c.n], l.took[c.n])
		}
	case itemRecent:
		r := &l.recent[(int(l.head)+c.n)%len(l.recent)]
		return set(uint64(r.at), uint64(r.price), uint64(r.trigger), uint64(r.qty), r.small())
	case itemOrder:
		if o := &l.orders[c.n]; o.id != 0 {
			return set(o.id, o.charge, uint64(o.limit), uint64(o.leaves), uint64(o.cum), o.small())
		}
	}
	return 0
}

func two(low, high uint32) uint64 { return uint64(low) | uint64(high)<<32 }
