package view

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// State codes of rows.
const (
	NoState byte = iota
	IsNew
	IsReplaced
	IsCancelled
)

var stateNames = [...]string{IsNew: StateNew, IsReplaced: StateReplaced, IsCancelled: StateCancelled}

// StateCode returns the code of a state's name, NoState if it is none.
func StateCode(name string) byte {
	for c, n := range stateNames {
		if n == name && n != "" {
			return byte(c)
		}
	}
	return NoState
}

// Storage tells readers which column of a Part a field has.
type Storage uint8

// Storages.
const (
	RowNumber  = Storage(inRow)
	LogText    = Storage(inLog)
	Characters = Storage(inByte)
	Codes      = Storage(inCode)
	Fixed      = Storage(inFixed)
	Times      = Storage(inTime)
	Slots      = Storage(inSlot)
	States     = Storage(inStates)
)

// Storage of the field.
func (d *Def) Storage() Storage { return Storage(d.store) }

// Texts returns how many numbers the dictionary of a column of Codes has: 1 to Texts.
func (d *Def) Texts() uint32 { return d.dict.n.Load() }

// TextOf returns the text of a number from 1 on.
func (d *Def) TextOf(code uint32) []byte { return d.dict.text(code) }

// CodeOf returns the number of a text, 0 if no row has it.
func (d *Def) CodeOf(text string) uint32 {
	s := unsafe.Slice(unsafe.StringData(text), len(text))
	code, _ := d.dict.find(s, d.dict.hash(s))
	return code
}

// Kinds has MsgType of each row, 0 where it is no order's.
func (p *Part) Kinds() []byte { return column[byte](p.c, offMsgType, chunkRows) }

// Bytes is a column of Characters, 0 for none.
func (p *Part) Bytes(d *Def) []byte { return column[byte](p.c, d.off, chunkRows) }

// Codes is a column of Codes, 0 for none.
func (p *Part) Codes(d *Def) []uint32 { return column[uint32](p.c, d.off, chunkRows) }

// Fixed is a column of Fixed: units of 1e-8, or FixedNull or FixedFar.
func (p *Part) Fixed(d *Def) []int64 { return column[int64](p.c, d.off, chunkRows) }

// Slots is the column Session.
func (p *Part) Slots(d *Def) []uint16 { return column[uint16](p.c, d.off, chunkRows) }

// Times is a column of Times: distances, or TimeNull or TimeFar, from the base of each 64
// rows, in a unit of so many ns.
func (p *Part) Times(d *Def) (distances []int32, bases []int64, unit int64) {
	return column[int32](p.c, d.off, chunkRows), column[int64](p.c, d.base, chunkRows>>blockBits), unitOf(d.off)
}

// Marks in columns.
const (
	FixedNull = int64(fixedNull)
	FixedFar  = int64(fixedFar)
	TimeNull  = int32(timeNull)
	TimeFar   = int32(timeFar)
	TimeBlock = 1 << blockBits // rows with one base
)

// State returns the state code of the row at a place.
func (p *Part) State(i int) byte {
	h := atomic.LoadUint32(at[uint32](p.c, offHeir, uint32(i)))
	if h != 0 && (p.First+uint64(i)+uint64(h>>1) <= p.last || mutant(mutStateEarly)) {
		return IsReplaced + byte(h&1)
	}
	if kind := *at[byte](p.c, offMsgType, uint32(i)); kind == 0 || kind == 'F' {
		return NoState
	}
	return IsNew
}

// Zone returns the least and largest value of a column of Fixed or of Times (ns) in a part
// that ends with its chunk. lo > hi if there is none. far: of Fixed, other rows have values
// beyond. ok is false if the zone is not known.
func (p *Part) Zone(d *Def) (lo, hi int64, far, ok bool) {
	if d.zone < 0 || p.To != chunkRows {
		return 0, 0, true, false
	}
	z := p.c.zones[d.zone]
	if mutant(mutZoneEdge) {
		z.hi--
	}
	return z.lo, z.hi, z.far, true
}

// Ordered returns the places of rows with a value from lo to hi (ns for times) by value,
// places before From among them. ok is false if there is no sorted run. Rows marked far are
// not among them.
func (p *Part) Ordered(d *Def, lo, hi int64) (places []uint16, ok bool) {
	if d.run < 0 || p.To != chunkRows {
		return nil, false
	}
	r := p.c.runs[d.run].Load()
	if r == nil {
		return nil, false
	}
	from, to := r.span(p.c, d, lo, hi)
	return r.rows[from:to], true
}

// Posted calls do with the rows of a snapshot that have the number in a column with
// postings, in order, until it returns false. complete is false if rows of the snapshot
// were dropped meanwhile: then some may have been left out, and the columns have to be
// scanned.
func (s *Snapshot) Posted(d *Def, code uint32, do func(row uint64) bool) (complete bool) {
	s.posted(d, code, do)
	return s.v.dropping.Load() <= s.base
}

func (s *Snapshot) posted(d *Def, code uint32, do func(row uint64) bool) {
	l, p := &d.dict.entry(code).list, &s.v.posts[d.post]
	for i := atomic.LoadUint32(&l.head); i != 0; {
		b := p.block(i)
		last := uint64(0)
		for k := range b.rows {
			row := uint64(int64(s.at) + int64(int32(atomic.LoadUint32(&b.rows[k])-uint32(s.at))))
			if row <= last || row > s.at {
				return
			}
			last = row
			if row > s.base && !do(row) {
				return
			}
		}
		i = atomic.LoadUint32(&b.next)
	}
}

// Count returns about how many rows have the number in a column with postings.
func (s *Snapshot) Count(d *Def, code uint32) uint32 {
	return atomic.LoadUint32(&d.dict.entry(code).list.count)
}

// Named calls do with the rows whose ClOrdID or OrigClOrdID is the text, the newest first,
// until it returns false.
func (s *Snapshot) Named(d *Def, text string, do func(row uint64) bool) {
	s.NamedWithin(d, text, math.MaxInt, do)
}

// NamedWithin is Named that looks at no more than a number of rows, those of other texts that
// share the place of the index among them. It reports whether there were no more.
func (s *Snapshot) NamedWithin(d *Def, text string, rows int, do func(row uint64) bool) (all bool) {
	x := &s.v.ids
	if d.Field == OrigClOrdID {
		x = &s.v.origs
	}
	key := unsafe.Slice(unsafe.StringData(text), len(text))
	x.walk(s.v, key, s.base, s.at, func(row uint64) bool {
		if rows--; rows < 0 {
			return false
		}
		return !s.Has(row) || string(s.LogText(d, row)) != text || do(row)
	})
	return rows >= 0
}

// LogText returns ClOrdID or OrigClOrdID of a row, from its entry; nil if it has none.
func (s *Snapshot) LogText(d *Def, row uint64) []byte {
	entry := s.v.log.Read(row)
	if entry == nil {
		return nil
	}
	if d.Field == ClOrdID {
		return order.ClOrdID(entry)
	}
	if *at[byte](s.v.chunkOf(row), offMsgType, uint32(row)&(chunkRows-1)) == 'D' {
		return nil
	}
	return order.TagValue(order.Payload(entry), uint32(d.Field))
}

// Value returns a field of a row that the snapshot Has.
func (s *Snapshot) Value(d *Def, row uint64) Value {
	p := s.PartOf(row)
	return s.ValueAt(&p, d, uint32(row)&(chunkRows-1))
}

// ValueAt returns a field of the row at a place of a part.
func (s *Snapshot) ValueAt(p *Part, d *Def, i uint32) Value {
	row := p.First + uint64(i)
	switch d.store {
	case inRow:
		return IntValue(int64(row))
	case inLog:
		if t := s.LogText(d, row); len(t) > 0 {
			return TextValue(string(t))
		}
	case inByte:
		if b := *at[byte](p.c, d.off, i); b != 0 {
			return TextValue(string([]byte{b}))
		}
	case inCode:
		if code := *at[uint32](p.c, d.off, i); code != 0 {
			return TextValue(string(d.dict.text(code)))
		}
	case inFixed:
		switch x := *at[int64](p.c, d.off, i); x {
		case fixedNull:
		case fixedFar:
			return NumberValue(s.FarNumber(d, row))
		default:
			return NumberValue(fixedNumber(x))
		}
	case inTime:
		if ns, ok := s.TimeAt(p, d, i); ok {
			return TimeValue(ns)
		}
	case inSlot:
		return IntValue(int64(*at[uint16](p.c, d.off, i)))
	case inStates:
		if c := p.State(int(i)); c != NoState {
			return TextValue(stateNames[c])
		}
	}
	return Value{}
}

// FarNumber returns the decimal of a row that is marked FixedFar.
func (s *Snapshot) FarNumber(d *Def, row uint64) Number {
	if mutant(mutFarIgnored) {
		return Number{}
	}
	n, err := ParseNumber(string(s.tagValue(d, row)))
	if err != nil {
		return Number{} // cannot be: it was read as a decimal when the row was made
	}
	return n
}

// TimeAt returns the time at a place in ns since 1970; false if there is none.
func (s *Snapshot) TimeAt(p *Part, d *Def, i uint32) (int64, bool) {
	x := *at[int32](p.c, d.off, i)
	switch {
	case x >= timeMin:
		return *at[int64](p.c, d.base, i>>blockBits) + int64(x)*unitOf(d.off), true
	case x == timeNull:
		return 0, false
	}
	row := p.First + uint64(i)
	if d.off == offReceived {
		return order.Received(s.v.log.Read(row)), true
	}
	var c clock
	ms, ok := c.parse(s.tagValue(d, row))
	return ms * nsPerMs, ok
}

// tagValue reads a tag from the row's entry.
func (s *Snapshot) tagValue(d *Def, row uint64) []byte {
	entry := s.v.log.Read(row)
	if entry == nil {
		return nil
	}
	return order.TagValue(order.Payload(entry), uint32(d.Field))
}

// StateName is the name of a state code from IsNew on.
func StateName(code byte) string { return stateNames[code] }

// FixedNumber is a column's value as a Number.
func FixedNumber(v int64) Number { return fixedNumber(v) }
