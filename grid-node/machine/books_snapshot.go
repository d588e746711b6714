package machine

import (
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// The books in a snapshot: slots behind those of the sessions. The first has the config,
// the instruments and the owners, then come the parts of the engine's own snapshot, then
// the orders that rest, so many a slot.

// hasBooks in the counts of the head is set for a partition that matches. Releases that do
// not know it refuse the head.
const hasBooks = 1 << 63

// rowsPerSlot is how many orders that rest are in a slot.
const rowsPerSlot = 512

// rowValued in the size of a ClOrdID: the order is of a FIX session, and behind the ClOrdID is
// the value of its fills. Releases that do not know it refuse the row.
const rowValued = 1 << 63

// booksScheduled in the word with the number of instruments: behind them is what of the calendar
// was done. Releases that do not know it refuse the word.
const booksScheduled = 2

// restoring is the progress of a restore.
type restoring struct {
	sessions uint32 // slots before
	parts    uint32 // of the engine
	rows     uint32 // orders that rest
	began    bool   // the head slot was read
	engine   *match.Restorer
	done     bool // the engine is complete
}

// parts returns how many parts the engine has.
func (b *Books) parts() int {
	if b.engine == nil {
		return 0
	}
	return b.engine.SnapshotParts()
}

func (b *Books) snapshotSlots() int {
	if b == nil {
		return 0
	}
	return 1 + b.parts() + (b.resting.n+rowsPerSlot-1)/rowsPerSlot
}

// appendSlot appends a slot of the snapshot.
func (b *Books) appendSlot(dst []byte, n int) []byte {
	parts := b.parts()
	switch {
	case n == 0:
		return b.appendHead(dst)
	case n <= parts:
		return b.appendPart(dst, n-1)
	}
	return b.appendRows(dst, n-1-parts)
}

func (b *Books) appendHead(dst []byte) []byte {
	ready := uint64(b2u(b.engine != nil)) | uint64(b2u(b.Scheduled()))*booksScheduled
	dst = le.AppendUint64(dst, ready|uint64(len(b.instruments))<<32)
	dst = le.AppendUint64(dst, uint64(b.owners.last)|uint64(len(b.owners.bySlot))<<32)
	rows := b.resting.n
	dst = le.AppendUint64(dst, uint64(b.parts())|uint64(rows)<<32)
	c := &b.config
	for _, v := range [...]uint64{uint64(c.Orders), uint64(c.Pages), uint64(c.Books), uint64(c.Work), c.Seed} {
		dst = le.AppendUint64(dst, v)
	}
	for _, owner := range b.owners.bySlot {
		dst = le.AppendUint64(dst, uint64(owner))
	}
	for n := range b.instruments {
		m := b.instruments[n].Market(uint16(n))
		at := len(dst)
		dst = m.Append(le.AppendUint64(dst, 0))
		size := len(dst) - at - 8
		le.PutUint64(dst[at:], uint64(size))
		dst = append(dst, make([]byte, order.Padded(size)-size)...)
	}
	if b.Scheduled() {
		dst = b.calendar.appendTo(dst)
	}
	return dst
}

// appendPart appends a part of the engine. Parts are asked for in order, as a rule: then
// where it begins is known.
func (b *Books) appendPart(dst []byte, n int) []byte {
	if len(b.cursors) == 0 {
		b.cursors = append(b.cursors, match.Cursor{})
	}
	for len(b.cursors) <= n {
		_, next := b.engine.AppendSnapshot(nil, b.cursors[len(b.cursors)-1])
		b.cursors = append(b.cursors, next)
	}
	at := b.cursors[n]
	if at.Done {
		return dst // there are fewer parts than there may be
	}
	dst, next := b.engine.AppendSnapshot(dst, at)
	if len(b.cursors) == n+1 {
		b.cursors = append(b.cursors, next)
	}
	return dst
}

func (b *Books) appendRows(dst []byte, n int) []byte {
	// Rows that are free are skipped, so a slot has to be found from the first on.
	skip, count := n*rowsPerSlot, 0
	for i := range b.resting.rows {
		r := &b.resting.rows[i]
		if r.id == 0 {
			continue
		}
		if skip--; skip >= 0 {
			continue
		}
		head := uint64(r.size)
		if r.owner >= fixOwner {
			head |= rowValued
		}
		dst = le.AppendUint64(le.AppendUint64(le.AppendUint64(dst, r.id), r.first), head)
		name := r.name
		clear(name[r.size:])
		dst = append(dst, name[:]...)
		if r.owner >= fixOwner {
			dst = le.AppendUint64(le.AppendUint64(dst, b.resting.values[i][0]), b.resting.values[i][1])
		}
		if count++; count == rowsPerSlot {
			break
		}
	}
	return dst
}

func b2u(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// booksHead reads what the head says of books.
func (d *decoder) booksHead(m *Machine, has bool) {
	if has != (m.Books != nil) {
		d.fail("hasBooks", uint64(b2u(has)), "as this partition is: 1 if it matches, 0 if it stores")
		return
	}
	if has {
		n := d.u64("nSessions")
		if n > MaxSessions {
			d.fail("nSessions", n, "0..65536")
		}
		m.Books = newBooks()
		m.Books.twin = newBooks()
		m.Books.restoring, m.Books.twin.restoring = &restoring{sessions: uint32(n)}, &restoring{}
	}
}

// sessions returns how many slots of sessions come before the books.
func (b *Books) sessions() uint32 {
	if b.restoring == nil {
		return 0
	}
	return b.restoring.sessions
}

// books reads a slot of the books, both for the state and for the one that Clone returns.
func (d *decoder) books(b *Books, n uint32, last bool) {
	if b.restoring == nil {
		d.fail("slot", uint64(n), "after a head")
		return
	}
	before := d.b
	d.booksSlot(b, n, last)
	if after := d.b; d.err == nil {
		d.b = before
		d.booksSlot(b.twin, n, last)
		d.b = after
	}
}

func (d *decoder) booksSlot(b *Books, n uint32, last bool) {
	r := b.restoring
	switch {
	case n == 0 && !r.began:
		r.began = true
		d.booksConfig(b)
	case n > 0 && n <= r.parts && r.engine != nil:
		if !last {
			d.fail("part", uint64(n), "a part of the engine at the end of its frame")
			return
		}
		if r.done && len(d.b) == 0 {
			return
		}
		done, err := r.engine.Add(d.b)
		if err != nil {
			d.fail("books", uint64(n), err.Error())
			return
		}
		r.done, d.b = done, nil
	case n > r.parts && r.engine != nil && r.done:
		d.rows(b, min(int(r.rows)-b.resting.n, rowsPerSlot))
	default:
		d.fail("slot", uint64(n), "the slots of the books in order")
	}
}

func (d *decoder) booksConfig(b *Books) {
	ready, owners, counts := d.u64("nInstruments"), d.u64("nOwners"), d.u64("nRows")
	instruments, slots := ready>>32, owners>>32
	m := order.Market{Op: order.MarketConfig}
	for i := range m.Values {
		m.Values[i] = d.u64("config")
	}
	r := b.restoring
	r.parts, r.rows = uint32(counts), uint32(counts>>32)
	switch {
	case d.err != nil:
		return
	case ready&(1<<32-1) > 1|booksScheduled || instruments > MaxBooks || ready&1 == 0 && (ready|counts) != 0:
		d.fail("nInstruments", instruments, "0..4096, and none before the config")
		return
	case slots > MaxSessions || slots*8 > uint64(len(d.b)):
		d.fail("nOwners", slots, "0..65536, and no more than the bytes that follow")
		return
	}
	if ready&1 != 0 {
		c, err := configOf(&m)
		if err == nil {
			err = b.configure(c)
		}
		if err != nil {
			d.fail("config", m.Values[0], err.Error())
			return
		}
		r.engine = match.NewRestorer(b.engine)
	}
	b.owners.last = uint32(owners)
	for slot := range uint32(slots) {
		owner := d.u64("owner")
		if _, twice := b.owners.slots[uint32(owner)]; owner > uint64(b.owners.last) || twice {
			d.fail("owner", owner, "a number that was given, to one slot")
			return
		}
		b.owners.set(slot, uint32(owner))
	}
	for n := range instruments {
		d.instrument(b, uint16(n))
	}
	if ready&booksScheduled != 0 && d.err == nil {
		d.calendar(b)
	}
}

func (d *decoder) instrument(b *Books, n uint16) {
	size := d.u64("instrument")
	padded := (size + 7) &^ 7
	if d.err != nil || size <= order.MarketSize || size > order.MarketSize+order.MaxSymbol || padded > uint64(len(d.b)) {
		d.fail("instrument", size, "49..112 bytes, and no more than those that follow")
		return
	}
	m := order.MarketOf(d.b[:size])
	m.Book = n
	if err := b.checkInstrument(0, &m); err != nil {
		d.fail("instrument", uint64(n), err.Error())
		return
	}
	d.b = d.b[padded:]
	i := instrumentOf(&m)
	b.instruments = append(b.instruments, i) // the engine restores the book
	b.symbols[i.Symbol] = n
	b.sum += i.sum(n)
}

func (d *decoder) rows(b *Books, n int) {
	for range n {
		id, first, head := d.u64("order"), d.u64("first"), d.u64("clOrdID")
		if d.err != nil {
			return
		}
		o, rests := b.engine.Find(id)
		size, valued := head&^rowValued, head&rowValued != 0
		if size == 0 || size > order.MaxClOrdID || len(d.b) < order.MaxClOrdID || !rests || first == 0 || first > id || b.resting.at(id) != 0 || b.resting.named(d.b[:size], o.Owner) != 0 || valued != (o.Owner >= fixOwner) {
			d.fail("order", id, "one that rests, once, with a ClOrdID of 1..64 bytes of its own, and with a value if it is of a FIX session")
			return
		}
		name := d.b[:size]
		d.b = d.b[order.MaxClOrdID:]
		var value [2]uint64
		if valued {
			value = [2]uint64{d.u64("value"), d.u64("value")}
		}
		if mutant(mutFixValueUnsnapshotted) {
			value = [2]uint64{}
		}
		if !mutant(mutRestingUnsnapshotted) {
			b.resting.add(id, first, name, o.Owner, value)
		}
	}
}

// restored ends a restore.
func (b *Books) restored() *SnapshotError {
	if b == nil || b.restoring == nil {
		return nil
	}
	for _, x := range [2]*Books{b, b.twin} {
		r := x.restoring
		complete := r.began && (r.engine == nil || r.done && (x.resting.n == x.engine.Resting() || mutant(mutRestingUnsnapshotted)))
		if complete && x.engine != nil {
			complete = int(r.rows) == x.engine.Resting()
			for n := range x.instruments {
				complete = complete && x.engine.Defined(uint16(n), x.instruments[n].Instrument)
			}
		}
		if !complete {
			return &SnapshotError{Field: "nRows", Value: uint64(r.rows), Allowed: "all slots of the books, a book for each instrument, and a row for each order in them"}
		}
		x.restoring = nil
		x.followAll()
	}
	return nil
}

// clone returns a copy: the one that was restored beside this state, if there is one. Else
// it takes as long as the books are large.
func (b *Books) clone() *Books {
	if b == nil {
		return nil
	}
	if twin := b.twin; twin != nil {
		b.twin = nil
		return twin
	}
	c := newBooks()
	c.restoring, c.twin = &restoring{}, newBooks()
	c.twin.restoring = &restoring{}
	for n := range b.snapshotSlots() {
		d := decoder{b: b.appendSlot(nil, n)}
		if d.books(c, uint32(n), true); d.err != nil {
			panic("books: their own snapshot: " + d.err.Error())
		}
	}
	if err := c.restored(); err != nil {
		panic("books: their own snapshot: " + err.Error())
	}
	c.twin = nil
	return c
}
