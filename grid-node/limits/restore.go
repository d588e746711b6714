package limits

import "fmt"

// Restorer restores an instance from the parts of a snapshot, which are untrusted input.
type Restorer struct {
	l    *Limits
	last Cursor // the item read last
}

// NewRestorer returns a Restorer for an instance fresh from New, with the Config of the one
// that made the snapshot. After an error the instance is unusable.
func NewRestorer(l *Limits) *Restorer { return &Restorer{l: l} }

// Add restores the next part. It reports whether it was the last.
func (r *Restorer) Add(part []byte) (done bool, err error) {
	for len(part) > 0 {
		if r.last.Done || len(part) < 8 {
			return false, fmt.Errorf("limits: %d bytes behind the end, allowed: none", len(part))
		}
		kind := le.Uint64(part)
		if kind < itemHead || kind > itemEnd || len(part) < 8+8*itemWords[kind] {
			return false, fmt.Errorf("limits: item %d in %d bytes, allowed: %d..%d, complete", kind, len(part), itemHead, itemEnd)
		}
		var w [itemMost]uint64
		for i := range itemWords[kind] {
			w[i] = le.Uint64(part[8+8*i:])
		}
		if err := r.item(int(kind), &w); err != nil {
			return false, err
		}
		part = part[8+8*itemWords[kind]:]
	}
	return r.last.Done, nil
}

func (r *Restorer) item(kind int, w *[itemMost]uint64) error {
	l := r.l
	if (kind == itemHead) != (r.last.kind == 0) || kind < r.last.kind {
		return fmt.Errorf("limits: item %d behind %d, allowed: one head, then rising", kind, r.last.kind)
	}
	switch kind {
	case itemHead:
		if w[0] != DigestForm || w[2] > 1 {
			return fmt.Errorf("limits: form %d, allowed: %d", w[0], DigestForm)
		}
		l.now, l.killedAll, l.first = int64(w[1]), w[2] != 0, w[3]
		r.last = Cursor{kind: kind}
		return nil
	case itemEnd:
		if got := l.Digest(); got != w[0] {
			return fmt.Errorf("limits: digest %016x, the snapshot's is %016x", got, w[0])
		}
		r.last = Cursor{kind: kind, Done: true}
		return nil
	case itemRecent, itemOrder, itemKill:
		r.last = Cursor{kind: kind}
		if !l.restoreFree(kind, w) {
			return fmt.Errorf("limits: item %d with %x, allowed: what an instance of this size can have", kind, w[:itemWords[kind]])
		}
		return nil
	}
	n := int(uint32(w[0]))
	if kind == itemSymbol {
		n &= 1<<31 - 1
	}
	if n >= l.size(kind) || r.last.kind == kind && n <= r.last.n {
		return fmt.Errorf("limits: item %d number %d, allowed: rising, below %d", kind, n, l.size(kind))
	}
	r.last = Cursor{kind: kind, n: n}
	if kind < itemKill && kind != itemBits {
		l.note(kind, uint32(n))
	}
	// What was restored makes the same words, or it was nothing that an instance makes.
	var again [itemMost]uint64
	if !l.restoreNumbered(kind, n, w) || l.words(r.last, &again) != itemWords[kind] || again != *w {
		return fmt.Errorf("limits: item %d number %d with %x, allowed: what an instance of this size can have", kind, n, w[:itemWords[kind]])
	}
	if kind == itemClient && mutant(mutCounterless) {
		l.clients[n].executed = 0
	}
	if kind == itemBits && mutant(mutRestoreRestricted) && w[1] == 1 {
		at, _ := l.bitWord(n)
		*at = 0
	}
	return nil
}

// restoreNumbered restores an item with a number. It reports whether its references are
// within bounds.
func (l *Limits) restoreNumbered(kind, n int, w *[itemMost]uint64) bool {
	low, high := func(i int) uint32 { return uint32(w[i]) }, func(i int) uint32 { return uint32(w[i] >> 32) }
	switch kind {
	case itemProfile:
		l.profiles[n] = profile{at: int64(w[1]), who: high(0), Rules: Rules{
			CollarReference: low(2), CollarLast: high(2), CollarLeast: int64(w[3]), MaxVolume: int64(w[4]), MaxValue: int64(w[5]),
			Rate: low(6), Burst: high(6), Reserve: low(7), Repeats: high(7), RepeatWindow: int64(w[8]), DuplicateWindow: int64(w[9]),
			Officers: [4]uint32{low(10), high(10), low(11), high(11)},
		}}
		return n != 0 && l.profiles[n].valid()
	case itemBits:
		at, b := l.bitWord(n)
		*at = w[2]
		return uint64(b) == w[1] && l.inside(n)
	case itemSymbol:
		l.symbols[n] = symbol{multiplier: high(0), traded: w[0]>>31&1 != 0, reference: int64(w[1]), last: int64(w[2])}
		return l.symbols[n].traded || w[2] == 0
	case itemSession:
		l.sessions[n] = session{profile: high(0), level: w[1], at: int64(w[2])}
		return n != 0 && l.hasProfile(high(0)) && w[1] <= maxBurst*second
	case itemClient:
		k := client{profile: high(0), limit: int64(w[1]), here: int64(w[2]), executed: int64(w[3])}
		l.clients[n] = k
		return k.limit >= 0 && k.limit <= maxCredit && k.here >= -2*maxCredit && k.here <= 2*maxCredit && k.executed >= 0 && k.executed <= 2*maxCredit &&
			(k.profile == 0 || n != 0 && l.hasProfile(k.profile))
	case itemAlgorithm:
		l.algorithms[n] = algorithm{count: high(0), profile: low(1), start: int64(w[2])}
		return n != 0 && (w[1] == 0 || l.hasProfile(low(1)))
	case itemParty:
		p := Party{Session: high(0), Trader: low(1), Desk: high(1), Algorithm: low(2), Client: high(2)}
		l.parties[n] = p
		return n != 0 && l.validParty(&p)
	case itemGifts:
		l.gave[n], l.took[n] = w[1], w[2]
		return true
	}
	return false
}

// inside reports whether a word of the bitmaps has only bits of numbers that there are, and
// of profiles that are defined.
func (l *Limits) inside(n int) bool {
	at, which := l.bitWord(n)
	bits := l.cfg.Traders + 1
	switch {
	case which == 1:
		bits = l.cfg.Symbols
	case which > 1:
		bits = l.count(Scope(which-2)) + 1
	}
	b := l.bitmaps()
	for _, m := range b[:which] {
		n -= len(m.words)
	}
	row, word := n/b[which].row, n%b[which].row
	if which < 2 && !l.hasProfile(uint32(row)) || which >= 2 && word == 0 && *at&1 != 0 {
		return false
	}
	room := bits - 64*word
	return room >= 64 || *at>>room == 0
}

// restoreFree restores an item without a number, for which there has to be room.
func (l *Limits) restoreFree(kind int, w *[itemMost]uint64) bool {
	switch kind {
	case itemRecent:
		r := recent{at: int64(w[0]), price: int64(w[1]), trigger: int64(w[2]), qty: int64(w[3]), party: uint32(w[4] >> 32),
			symbol: uint16(w[4] >> 16), side: Side(w[4] >> 8), flags: uint8(w[4])}
		if int(l.held) == len(l.recent) || r.flags > 3 {
			return false
		}
		l.keep(&r)
	case itemOrder:
		o := order{id: w[0], charge: w[1], limit: int64(w[2]), leaves: int64(w[3]), cum: int64(w[4]), party: uint32(w[5] >> 32),
			symbol: uint16(w[5] >> 16), side: Side(w[5] >> 8), traded: w[5]&1 != 0}
		if o.id == 0 || l.find(o.id) != 0 || l.open == l.cfg.Orders || int(o.party) >= len(l.parties) || l.parties[o.party].Client == 0 ||
			int(o.symbol) >= len(l.symbols) || l.symbols[o.symbol].multiplier == 0 || o.side != Buy && o.side != Sell || w[5]&0xfe != 0 ||
			o.leaves <= 0 || o.cum < 0 || o.leaves+o.cum < 0 || o.traded != (o.cum != 0) {
			return false
		}
		n, ok := value(o.charge, o.leaves, l.symbols[o.symbol].multiplier)
		if !ok || n > 2*maxCredit-l.clients[0].open {
			return false
		}
		l.add(&o)
		l.use(&o, n)
	case itemKill:
		k := Active{Who: uint32(w[0]), N: uint32(w[0] >> 32), Scope: Scope(w[1]), At: int64(w[2])}
		for i := range 6 {
			le.PutUint64(k.Why[8*i:], w[3+i])
		}
		if len(l.kills) == cap(l.kills) || k.Who == 0 || w[1] > uint64(All) || k.Scope < All && int(k.N) > l.count(k.Scope) ||
			k.Scope == All && k.N != 0 || !l.isKilled(k.Scope, k.N) {
			return false
		}
		l.kills = append(l.kills, k)
	}
	return true
}
