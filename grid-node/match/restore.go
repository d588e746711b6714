package match

import "fmt"

// restorer reads the parts of a snapshot.
type restorer struct {
	e    *Engine
	book int // the last one read
	done bool
}

// Restorer restores an engine from the parts of a snapshot, which are untrusted input.
type Restorer struct{ r restorer }

// NewRestorer returns a Restorer for an engine fresh from New, with the Config of the one
// that made the snapshot. After an error the engine is unusable.
func NewRestorer(e *Engine) *Restorer { return &Restorer{restorer{e: e, book: -2}} }

// Add restores the next part. It reports whether it was the last.
func (r *Restorer) Add(part []byte) (done bool, err error) {
	for len(part) > 0 {
		if r.r.done || len(part) < 8 {
			return false, fmt.Errorf("books: %d bytes behind the end, allowed: none", len(part))
		}
		kind := le.Uint64(part)
		if kind < itemHead || kind > itemParties || len(part) < 8+8*itemWords[kind] {
			return false, fmt.Errorf("books: item %d in %d bytes, allowed: %d..%d, complete", kind, len(part), itemHead, itemParties)
		}
		var w [16]uint64
		for i := range itemWords[kind] {
			w[i] = le.Uint64(part[8+8*i:])
		}
		if err := r.r.item(kind, &w); err != nil {
			return false, err
		}
		part = part[8+8*itemWords[kind]:]
	}
	return r.r.done, nil
}

func (r *restorer) item(kind uint64, w *[16]uint64) error {
	if (kind == itemHead) != (r.book == -2) {
		return fmt.Errorf("books: item %d, allowed: one head, first", kind)
	}
	switch kind {
	case itemHead:
		return r.head(w)
	case itemBook:
		return r.bookItem(w)
	case itemOrder:
		return r.order(w)
	case itemSweep:
		return r.sweep(w)
	case itemParties:
		return r.parties(w)
	}
	if got := r.e.Digest(); got != w[0] {
		return fmt.Errorf("books: digest %016x, the snapshot's is %016x", got, w[0])
	}
	r.done = true
	return nil
}

func (r *restorer) head(w *[16]uint64) error {
	if w[0] != DigestForm {
		return fmt.Errorf("books: form %d, allowed: %d", w[0], DigestForm)
	}
	r.e.pos, r.e.now, r.e.prio, r.book = Position{w[1], w[2]}, int64(w[3]), w[4], -1
	return nil
}

func (r *restorer) bookItem(w *[16]uint64) error {
	n := int(w[0] & 0xffff)
	if n <= r.book {
		return fmt.Errorf("books: book %d behind %d, allowed: rising", n, r.book)
	}
	if err := r.e.Define(uint16(n), Instrument{int64(w[1]), int64(w[2]), int64(w[3]), int64(w[4]), int64(w[5])}); err != nil {
		return err
	}
	r.book = n
	b := &r.e.books[n]
	b.state, b.resume, b.auction.next = State(w[0]>>16), State(w[0]>>24), State(w[0]>>32)
	b.crossed, b.triggers, b.traded = w[0]>>40&1 != 0, w[0]>>41&1 != 0, w[0]>>42&1 != 0
	b.bandLo, b.bandHi, b.until = int64(w[6]), int64(w[7]), int64(w[8])
	if mutant(mutRestoreBand) {
		b.bandLo, b.bandHi = b.Low, b.High
	}
	b.last, b.auction.price = uint32(w[9]>>32), uint32(w[9])
	b.lo, b.hi, b.auction.left = uint32(w[10]>>32), uint32(w[10]), w[11]
	b.best = [2]best{{uint32(w[12] >> 32), uint32(w[13] >> 32), w[14]}, {uint32(w[12]), uint32(w[13]), w[15]}}
	if b.state > Halted || b.resume > Halted || b.resume == Uncrossing || b.auction.next > Halted || w[0]>>43 != 0 ||
		b.bandLo < b.Low || b.bandHi > b.High || b.bandLo > b.bandHi || (b.bandLo-b.Low)%b.Tick != 0 || (b.bandHi-b.Low)%b.Tick != 0 ||
		max(b.last, b.lo, b.hi, b.auction.price) >= b.span {
		return fmt.Errorf("books: book %d: state, band or last price, allowed: what an engine can have", n)
	}
	r.e.setBusy(uint16(n), b.state == Uncrossing || b.state == Open && b.triggers)
	return nil
}

func (r *restorer) order(w *[16]uint64) error {
	o := order{
		id: w[0], prio: w[1], key: uint32(w[2] >> 32), leaves: uint32(w[2]), cum: uint32(w[3] >> 32), shown: uint32(w[3]),
		display: uint32(w[4] >> 32), limit: uint32(w[4]), owner: uint32(w[5] >> 32), group: uint32(w[5]),
		party: uint32(w[6] >> 32), book: uint16(w[6] >> 16), place: uint8(w[6] >> 8), flags: uint8(w[6]),
	}
	e := r.e
	if r.book < 0 || int(o.book) != r.book || o.place >= places || o.id == 0 || e.ids.find(e.orders, o.id) != 0 {
		return fmt.Errorf("books: order %d of book %d, allowed: an id of its own in book %d", o.id, o.book, r.book)
	}
	b := &e.books[o.book]
	if o.key >= b.span || o.limit >= b.span || o.place >= placeMarket && o.key != 0 || o.leaves == 0 || o.shown == 0 || o.shown > o.leaves ||
		uint64(o.leaves)+uint64(o.cum) > MaxLots || o.display == 0 && o.shown != o.leaves || o.display != 0 && o.shown > o.display ||
		o.flags&flagSMP == 0 || o.flags >= flagMkt<<1 || o.prio == 0 || o.prio > e.prio || !e.room(b, o.place, o.key) {
		return fmt.Errorf("books: order %d: a field or no room, allowed: what an engine of this size can have", o.id)
	}
	if mutant(mutRestoreDisplay) {
		o.display = 0
	}
	if mutant(mutRestoreParty) {
		o.party = 0
	}
	slot := e.adopt(&o)
	e.orders[slot] = o
	e.link(slot)
	if p := e.orders[slot].prev; p != 0 && e.orders[p].prio >= o.prio {
		return fmt.Errorf("books: order %d has priority %d behind %d, allowed: rising in a queue", o.id, o.prio, e.orders[p].prio)
	}
	return nil
}

func (r *restorer) sweep(w *[16]uint64) error {
	e := r.e
	s := sweep{
		id: w[0], prio: w[1], count: w[2], owner: uint32(w[3] >> 32), group: uint32(w[3]),
		book: uint16(w[4] >> 48), at: uint16(w[4] >> 32), side: Side(w[4] >> 16), place: uint8(w[4] >> 8), inside: w[4]&1 != 0, kill: w[4]&2 != 0, lapse: w[4]&4 != 0,
		key: uint32(w[5]), slot: e.ids.find(e.orders, w[6]),
	}
	if w[4]&0xff0000f8 != 0 || s.kill && s.lapse || s.lapse && w[5]>>32 == 0 || w[5]>>32 > maxParties/64 || w[5]>>32 != 0 && !s.kill && !s.lapse || e.full(s.kill, s.lapse) || s.prio > e.prio || s.place > places || s.side > Sell ||
		w[6] != 0 && s.slot == 0 || s.inside && (int(s.at) >= len(e.books) || e.books[s.at].span == 0 || s.place >= places) {
		return fmt.Errorf("books: mass cancel %d, allowed: one that an engine can have", s.id)
	}
	if s.slot != 0 && (!s.inside || e.orders[s.slot].book != s.at || e.orders[s.slot].place != s.place || e.orders[s.slot].key != s.key) {
		return fmt.Errorf("books: mass cancel %d is at order %d, allowed: one of its queue", s.id, w[6])
	}
	if s.inside && s.place < placeMarket && s.key >= e.books[s.at].span {
		return fmt.Errorf("books: mass cancel %d is at key %d, allowed: below %d", s.id, s.key, e.books[s.at].span)
	}
	if n := w[5] >> 32; n != 0 {
		s.parties = make([]uint64, n)
	}
	if !mutant(mutRestoreSweep) {
		e.sweeps = append(e.sweeps, s)
	}
	return nil
}

// parties sets some of the parties of the last mass cancel.
func (r *restorer) parties(w *[16]uint64) error {
	if mutant(mutRestoreSweep) {
		return nil
	}
	n := len(r.e.sweeps)
	if n == 0 || w[0] >= uint64(len(r.e.sweeps[n-1].parties)) || w[1] == 0 || r.e.sweeps[n-1].parties[w[0]] != 0 {
		return fmt.Errorf("books: parties %d of a mass cancel, allowed: behind it, each word once", w[0])
	}
	r.e.sweeps[n-1].parties[w[0]] = w[1]
	return nil
}
