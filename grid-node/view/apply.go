package view

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

var (
	errClosed  = errors.New("view: closed")
	errStopped = errors.New("view: stopped by the caller")
)

// Apply makes the row of the next entry of the log. It is seen by snapshots after Publish.
// entry is unpadded, as the store returns it. After an error the view takes no more rows;
// those it has stay right.
func (v *View) Apply(entry []byte) error {
	if v.full != nil {
		return v.full
	}
	p := &v.ahead[0]
	p.entry = entry
	v.prepare(p)
	return v.applyPrepared(p)
}

func (v *View) applyPrepared(p *prepared) error {
	if err := v.apply(p); err != nil {
		v.full = err
		return err
	}
	return nil
}

// Publish lets snapshots have the rows that were applied.
func (v *View) Publish() { v.applied.Store(v.next - 1) }

func (v *View) apply(p *prepared) error {
	if p.err != nil {
		return p.err
	}
	e := &p.e
	if e.Seq != v.next {
		return fmt.Errorf("view: entry %d applied, allowed: %d, the next", e.Seq, v.next)
	}
	i := uint32(e.Seq) & (chunkRows - 1)
	if i == 0 || v.cur == nil {
		if err := v.begin(e.Seq); err != nil {
			return err
		}
	}
	c := v.cur
	if i&(1<<blockBits-1) == 0 || e.Seq == v.first {
		v.beginBlock(c, i, e.TimeNs)
	}
	v.putTime(c, offReceived, offReceivedBase, i, e.TimeNs, &c.zones[zoneReceived])
	*at[uint16](c, offSession, i) = uint16(e.Session)
	if e.Kind != order.KindOrder || v.blind == e.Seq {
		*at[byte](c, offMsgType, i) = 0
		put32(at[uint32](c, offHeir, i), 0)
		v.ids.skip(c, i)
		v.origs.skip(c, i)
		v.next++
		return nil
	}
	if err := v.order(c, i, p, order.Payload(p.entry)); err != nil {
		return err
	}
	v.next++
	return nil
}

// order fills the row of an order. Everything that can fail comes first.
func (v *View) order(c *chunk, i uint32, p *prepared, msg []byte) error {
	e, f := &p.e, &p.e.Fields
	before := v.ids.heads[p.place]
	spans := v.find.Locate(msg, f.Places())
	symbol, err := v.code(&v.defs[defSymbol], msg[f.SymbolOff:int(f.SymbolOff)+int(f.SymbolLen)], p.symbol, e.Seq)
	if err != nil {
		return err
	}
	account, err := v.code(&v.defs[defAccount], msg[f.AccountOff:int(f.AccountOff)+int(f.AccountLen)], p.account, e.Seq)
	if err != nil {
		return err
	}
	*at[uint32](c, offSymbol, i), *at[uint32](c, offAccount, i) = symbol, account
	for k, d := range v.extra {
		if d.store == inCode {
			text := spans[firstExtra+k].Of(msg)
			code, err := v.code(d, text, d.dict.hash(text), e.Seq)
			if err != nil {
				return err
			}
			*at[uint32](c, d.off, i) = code
		}
	}
	for k, d := range v.posted {
		if code := *at[uint32](c, d.off, i); code != 0 {
			ok, err := v.posts[k].reserve(&d.dict.entry(code).list)
			if !ok {
				return v.noRoom(e.Seq, "postings", err)
			}
		}
	}
	v.numbers(c, i, f, msg, spans)
	v.link(c, i, e, msg, spans, p.place, before)
	return nil
}

// code returns the number of a text with this hash, 0 for an empty one.
func (v *View) code(d *Def, text []byte, hash uint32, seq uint64) (uint32, error) {
	if len(text) == 0 {
		return 0, nil
	}
	code, err := d.dict.add(text, hash)
	if code == 0 {
		return 0, v.noRoom(seq, "the values of "+d.Name, err)
	}
	return code, nil
}

func (v *View) noRoom(seq uint64, what string, err error) error {
	if err != nil {
		return err
	}
	return &FullError{Seq: seq, What: what, Used: v.mem.used, Limit: v.mem.limit}
}

// numbers fills the columns of decimals, times and single characters.
func (v *View) numbers(c *chunk, i uint32, f *order.Fields, msg []byte, spans []order.Span) {
	v.putFixed(c, offPrice, i, value(msg, f.PriceOff), &c.zones[zonePrice])
	v.putFixed(c, offQty, i, value(msg, f.QtyOff), &c.zones[zoneQty])
	if ns, ok := v.time(spans[spanTransact].Of(msg)); ok {
		v.putTime(c, offTransact, offTransactBase, i, ns, &c.zones[zoneTransact])
	} else {
		*at[int32](c, offTransact, i) = timeNull
	}
	*at[byte](c, offSide, i) = f.Side
	*at[byte](c, offOrdType, i) = char(spans[spanOrdType].Of(msg))
	*at[byte](c, offTIF, i) = char(spans[spanTIF].Of(msg))
	for k, d := range v.extra {
		text := spans[firstExtra+k].Of(msg)
		switch d.store {
		case inFixed:
			v.putFixed(c, d.off, i, text, &c.zones[d.zone])
		case inTime:
			if ns, ok := v.time(text); ok {
				v.putTime(c, d.off, d.base, i, ns, &c.zones[d.zone])
			} else {
				*at[int32](c, d.off, i) = timeNull
			}
		}
	}
}

// link makes the row found: by postings, by its ClOrdID and OrigClOrdID, and as the entry
// that replaced or cancelled another.
func (v *View) link(c *chunk, i uint32, e *order.Entry, msg []byte, spans []order.Span, place, before uint32) {
	row := uint32(e.Seq)
	for k, d := range v.posted {
		if code := *at[uint32](c, d.off, i); code != 0 {
			v.posts[k].add(&d.dict.entry(code).list, row)
		}
	}
	kind := msgType(spans[spanMsgType].Of(msg))
	put32(at[uint32](c, offHeir, i), 0)
	*at[byte](c, offMsgType, i) = kind
	v.ids.add(c, i, row, place, before)
	orig := spans[spanOrig].Of(msg)
	if len(orig) == 0 || kind == 'D' {
		v.origs.skip(c, i)
		return
	}
	p := v.origs.place(orig)
	v.origs.add(c, i, row, p, v.origs.heads[p])
	v.ids.walk(v, orig, v.base.Load(), e.Seq-1, func(subject uint64) bool {
		entry := v.log.Read(subject)
		if entry == nil || string(order.ClOrdID(entry)) != string(orig) {
			return true
		}
		v.inherit(subject, e.Seq, kind == 'F')
		return false
	})
}

// inherit records that entry by ended order subject, unless one before did.
func (v *View) inherit(subject, by uint64, cancel bool) {
	c, i := v.chunkOf(subject), uint32(subject)&(chunkRows-1)
	heir := at[uint32](c, offHeir, i)
	if *at[byte](c, offMsgType, i) == 'F' || *heir != 0 {
		return
	}
	h := uint32(by-subject) << 1
	if cancel {
		h |= 1
	}
	atomic.StoreUint32(heir, h)
}

// skip leaves a row out of the index's chains without cutting one: nothing leads to it.
func (x *hashIndex) skip(c *chunk, i uint32) { put32(at[uint32](c, x.next, i), 0) }

// value returns the bytes from off to the next SOH, none if off is 0.
func value(msg []byte, off uint16) []byte {
	if off == 0 {
		return nil
	}
	v := msg[off:]
	for i, b := range v {
		if b == order.SOH {
			return v[:i]
		}
	}
	return v
}

func char(s []byte) byte {
	if len(s) != 1 {
		return 0
	}
	return s[0]
}

// msgType is D for what is neither F nor G: a row of an order is never empty.
func msgType(s []byte) byte {
	if c := char(s); c == 'F' || c == 'G' {
		return c
	}
	return 'D'
}

func (v *View) putFixed(c *chunk, off uintptr, i uint32, text []byte, z *zone) {
	x, far, ok := parseFixed(text)
	switch {
	case !ok:
		x = fixedNull
	case far:
		x, z.far = fixedFar, true
	default:
		z.add(x)
	}
	*at[int64](c, off, i) = x
}

// time returns ns since 1970. Times that these cannot tell count as absent.
func (v *View) time(s []byte) (int64, bool) {
	ms, ok := v.clock.parse(s)
	return ms * nsPerMs, ok && ms > math.MinInt64/nsPerMs && ms < math.MaxInt64/nsPerMs
}

// unitOf a time column: Received counts ns from its base, all others ms.
func unitOf(off uintptr) int64 {
	if off == offReceived {
		return 1
	}
	return nsPerMs
}

// beginBlock sets the bases of times: the time at which the first entry was received.
func (v *View) beginBlock(c *chunk, i uint32, ns int64) {
	for _, d := range v.zoned {
		if d.store == inTime {
			unit := unitOf(d.off)
			*at[int64](c, d.base, i>>blockBits) = ns / unit * unit
		}
	}
}

func (v *View) putTime(c *chunk, off, base uintptr, i uint32, ns int64, z *zone) {
	z.add(ns)
	from := *at[int64](c, base, i>>blockBits)
	d := ns - from
	over := (ns^from)&(ns^d) < 0
	if off != offReceived {
		d /= nsPerMs
	}
	if over || d < timeMin || d > math.MaxInt32 {
		d, z.far = timeFar, true
	}
	*at[int32](c, off, i) = int32(d)
}
