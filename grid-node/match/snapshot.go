package match

// The state as bytes: a sequence of items, each a word with its kind and length followed by
// words, little-endian: head, books, orders in the order of their queues, pending mass
// cancels, end. Slots are not in it: nothing that is written depends on them.

// Kinds of items.
const (
	itemHead = iota + 1
	itemBook
	itemOrder
	itemSweep
	itemEnd
	itemParties // some of the parties of the mass cancel before it
)

// itemWords is the number of words behind the first of each item.
var itemWords = [itemParties + 1]int{itemHead: 5, itemBook: 16, itemOrder: 7, itemSweep: 7, itemEnd: 1, itemParties: 2}

// snapshotPart is the approximate size of a part.
const snapshotPart = 64 << 10

// Cursor is where the next part of a snapshot begins. The zero Cursor is the beginning.
type Cursor struct {
	Done  bool
	began bool
	book  int
	place uint8
	in    bool // the book was written
	slot  uint32
	key   uint32 // of the next queue, if slot is 0
	sweep int    // the next mass cancel, behind the books
}

// SnapshotParts returns how many parts the snapshot of the present state has at most. Every
// part but the last has snapshotPart bytes or more.
func (e *Engine) SnapshotParts() int {
	words := itemWords[itemHead] + itemWords[itemEnd] + 2 + e.resting*(itemWords[itemOrder]+1) + len(e.sweeps)*(itemWords[itemSweep]+1)
	for i := range e.sweeps {
		words += len(e.sweeps[i].parties) * (itemWords[itemParties] + 1)
	}
	for i := range e.books {
		if e.books[i].span != 0 {
			words += itemWords[itemBook] + 1
		}
	}
	return words*8/snapshotPart + 1
}

// AppendSnapshot appends the part of the state that begins at c, about 64 KiB, and returns
// where the next one begins. The engine must not be changed between parts.
func (e *Engine) AppendSnapshot(dst []byte, c Cursor) ([]byte, Cursor) {
	start := len(dst)
	if !c.began {
		c.began = true
		dst = item(dst, itemHead, DigestForm, e.pos.ExecSeq, e.pos.ExecHash, uint64(e.now), e.prio)
	}
	for len(dst)-start < snapshotPart {
		if c.book == len(e.books) {
			if c.sweep == len(e.sweeps) {
				return item(dst, itemEnd, e.Digest()), Cursor{Done: true}
			}
			dst = e.appendSweep(dst, &e.sweeps[c.sweep])
			c.sweep++
			continue
		}
		b := &e.books[c.book]
		switch {
		case b.span == 0 || c.place == places:
			c = Cursor{began: true, book: c.book + 1}
		case !c.in:
			dst, c.in = b.appendTo(dst, c.book), true
		case c.slot != 0:
			dst = e.orders[c.slot].appendTo(dst)
			c.slot = e.orders[c.slot].next
		default:
			e.seek(&c, b)
		}
	}
	return dst, c
}

// seek goes to the next queue.
func (e *Engine) seek(c *Cursor, b *book) {
	key := uint32(0)
	if c.place < placeMarket {
		key = b.ladders[c.place].next(c.key)
	} else if c.key != 0 {
		key = none
	}
	if key == none {
		c.place, c.key = c.place+1, 0
		return
	}
	c.slot, c.key = e.level(b, c.place, key).head, key+1
}

func item(dst []byte, kind uint64, words ...uint64) []byte {
	dst = le.AppendUint64(dst, kind)
	for _, w := range words {
		dst = le.AppendUint64(dst, w)
	}
	return dst
}

func (b *book) appendTo(dst []byte, n int) []byte {
	return item(dst, itemBook,
		uint64(n)|uint64(b.state)<<16|uint64(b.resume)<<24|uint64(b.auction.next)<<32|uint64(b2u(b.crossed)|b2u(b.triggers)<<1|b2u(b.traded)<<2)<<40,
		uint64(b.Tick), uint64(b.Lot), uint64(b.Low), uint64(b.High), uint64(b.Ref), uint64(b.bandLo), uint64(b.bandHi), uint64(b.until),
		uint64(b.last)<<32|uint64(b.auction.price), uint64(b.lo)<<32|uint64(b.hi), b.auction.left,
		uint64(b.best[0].key)<<32|uint64(b.best[1].key), uint64(b.best[0].count)<<32|uint64(b.best[1].count), b.best[0].shown, b.best[1].shown)
}

func (o *order) appendTo(dst []byte) []byte {
	return item(dst, itemOrder, o.id, o.prio, uint64(o.key)<<32|uint64(o.leaves), uint64(o.cum)<<32|uint64(o.shown),
		uint64(o.display)<<32|uint64(o.limit), uint64(o.owner)<<32|uint64(o.group), uint64(o.party)<<32|uint64(o.book)<<16|uint64(o.place)<<8|uint64(o.flags))
}

func (e *Engine) appendSweep(dst []byte, s *sweep) []byte {
	dst = item(dst, itemSweep, s.id, s.prio, s.count, uint64(s.owner)<<32|uint64(s.group),
		uint64(s.book)<<48|uint64(s.at)<<32|uint64(s.side)<<16|uint64(s.place)<<8|uint64(b2u(s.lapse)<<2|b2u(s.kill)<<1|b2u(s.inside)), uint64(s.key)|uint64(len(s.parties))<<32, e.orders[s.slot].id)
	for n, w := range s.parties {
		if w != 0 {
			dst = item(dst, itemParties, uint64(n), w)
		}
	}
	return dst
}
