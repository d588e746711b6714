package replay

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/match/naive"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// fixOwner is the owner of the orders of the first slot of FIX sessions.
const fixOwner = 1 << 30

// Instrument is what a book trades.
type Instrument struct {
	Symbol                 string
	PriceDigits, QtyDigits uint8 // behind the point of prices and quantities
	match.Instrument
}

// Log executes a log. It is not safe for use by several goroutines.
type Log struct {
	matcher     *naive.Matcher
	config      match.Config
	instruments []Instrument
	lineage     uint64

	owners uint32            // given out
	owner  map[uint32]uint32 // by session slot
	slots  map[[2]uint64]uint32
	ids    map[uint32][2]uint64 // by session slot
	fixes  map[[2]uint64]uint32 // open FIX sessions, by id
	fixIDs map[uint32][2]uint64

	names map[name]uint64 // orders that rest
	named map[uint64]name

	guard *guard

	e       *order.Entry
	payload []byte
	out     []match.Record
	told    string // the first thing that is wrong with the entry
}

// name of an order that rests.
type name struct {
	owner   uint32
	clOrdID string
}

// NewLog begins before the first entry of a log.
func NewLog() *Log {
	return &Log{owner: map[uint32]uint32{}, slots: map[[2]uint64]uint32{}, ids: map[uint32][2]uint64{}, fixes: map[[2]uint64]uint32{}, fixIDs: map[uint32][2]uint64{},
		names: map[name]uint64{}, named: map[uint64]name{}}
}

// ErrBeginning is an entry of books whose beginning was not seen.
var ErrBeginning = errors.New("the log does not begin with the config of its books: its beginning is freed")

// Matches reports whether there are books.
func (l *Log) Matches() bool { return l.matcher != nil }

// Instruments are those defined, by number of their book.
func (l *Log) Instruments() []Instrument { return l.instruments }

// Pending reports whether something that was begun is still to be done, by an entry of kind continue.
func (l *Log) Pending() bool { return l.matcher != nil && l.matcher.Pending() }

// Resting returns the orders in the books, sorted.
func (l *Log) Resting() []uint64 {
	if l.matcher == nil {
		return nil
	}
	return l.matcher.Resting()
}

// Entry executes the next entry, which order.DecodeEntry accepted, and returns what it has to have
// done; valid until the next. The error says what is wrong with the entry itself: an instruction
// that is not what the message asks for, an operation on a book that there is not.
func (l *Log) Entry(e *order.Entry, payload []byte) ([]match.Record, error) {
	l.e, l.payload, l.out, l.told = e, payload, nil, ""
	if l.guard != nil || e.Kind == order.KindGuard {
		l.follow()
	}
	switch e.Kind {
	case order.KindSessionOpen:
		l.opened()
	case order.KindExecute:
		if l.matcher == nil {
			return nil, ErrBeginning
		}
		l.execute()
	case order.KindFix:
		l.fix()
	case order.KindMarket:
		l.market()
	case order.KindContinue:
		if l.matcher == nil {
			return nil, ErrBeginning
		}
		l.do(match.Op{Kind: match.Continue, Time: e.TimeNs})
	case order.KindNoop:
		lineage := binary.LittleEndian.Uint64(payload)
		if l.lineage != 0 && lineage != l.lineage {
			for n := range l.instruments {
				l.do(match.Op{Kind: match.SetState, Time: e.TimeNs, Book: uint16(n), State: match.Halted})
			}
		}
		l.lineage = lineage
	case order.KindGuard:
		l.kill()
	}
	if l.told != "" {
		return l.out, fmt.Errorf("entry %d: %s", e.Seq, l.told)
	}
	return l.out, nil
}

func (l *Log) wrong(format string, args ...any) {
	if l.told == "" {
		l.told = fmt.Sprintf(format, args...)
	}
}

func (l *Log) do(op match.Op) {
	if l.matcher == nil {
		l.wrong("it is of books, and there are none")
		return
	}
	did := l.matcher.Apply(op)
	for i := range did {
		r := &did[i]
		if r.Kind == match.Cancelled || r.Kind == match.Filled && r.Leaves == 0 {
			l.forget(r.Order)
		}
	}
	l.out = append(l.out, did...)
}

func (l *Log) forget(id uint64) {
	delete(l.names, l.named[id])
	delete(l.named, id)
}

func (l *Log) opened() {
	slot := l.e.Session
	l.owners++
	l.owner[slot] = l.owners
	if before, open := l.ids[slot]; open {
		delete(l.slots, before)
	}
	id := [2]uint64{binary.LittleEndian.Uint64(l.payload), binary.LittleEndian.Uint64(l.payload[8:])}
	l.ids[slot], l.slots[id] = id, slot
}

// ownerOf returns whose the order of the entry is.
func (l *Log) ownerOf() uint32 {
	if l.e.Flags&order.FlagFix != 0 {
		return fixOwner | l.e.Session
	}
	return l.owner[l.e.Session]
}

func (l *Log) execute() {
	i := order.Instructed(l.payload)
	if owner := l.ownerOf(); i.Owner != owner {
		l.wrong("the owner is %d, that of session %d is %d", i.Owner, l.e.Session, owner)
	}
	if int(i.Book) >= len(l.instruments) {
		l.wrong("book %d, there are %d", i.Book, len(l.instruments))
		return
	}
	message := l.payload[order.InstructionSize:]
	m := readMessage(message)
	if why := l.means(&i, m); why != "" {
		l.wrong("%s", why)
	}
	op := match.Op{Time: l.e.TimeNs, ID: l.e.Seq, Orig: i.Orig, Owner: i.Owner, Group: i.Group, Book: i.Book, Price: i.Price, Stop: i.Stop, Qty: i.Qty, Display: i.Display,
		Side: match.Side(i.Side), Type: match.Type(i.Type), TIF: match.TIF(i.TIF), SMP: match.SMP(i.SMP), Post: i.Flags&order.InstructPost != 0}
	if l.guard != nil {
		op.Party = l.guard.entrant
	}
	is := name{i.Owner, string(m["11"])}
	switch i.Op {
	case order.InstructEnter:
		op.Kind = match.Enter
		if l.do(op); l.matcher.Rests(op.ID) {
			l.names[is], l.named[op.ID] = op.ID, is
		}
	case order.InstructCancel:
		op.Kind = match.Cancel
		l.do(op)
	case order.InstructReplace:
		op.Kind = match.Replace
		l.do(op)
		for k := range l.out {
			if l.out[k].Kind != match.Replaced {
				continue
			}
			if l.forget(op.Orig); l.matcher.Rests(op.ID) {
				l.names[is], l.named[op.ID] = op.ID, is
			}
		}
	default:
		l.wrong("instruction %d", i.Op)
	}
}

func (l *Log) market() {
	m := order.MarketOf(l.payload)
	v := &m.Values
	switch {
	case m.Op == order.MarketConfig:
		if l.matcher != nil {
			l.wrong("a second config of the books")
			return
		}
		l.config = match.Config{Orders: int(v[0]), Pages: int(v[1]), Books: int(v[2]), Work: int(v[3])}
		l.matcher = naive.New(l.config)
	case m.Op == order.MarketDefine:
		l.define(&m)
	case l.matcher == nil:
		l.wrong("%v", ErrBeginning)
	case m.Op == order.MarketCalendar, m.Op == order.MarketScheduled && m.Kind == 0:
	default:
		l.do(match.Op{Kind: match.OpKind(m.Kind), Time: l.e.TimeNs, ID: l.e.Seq, Book: m.Book, Side: match.Side(m.Side), State: match.State(m.State),
			Price: int64(v[0]), Stop: int64(v[1]), Until: int64(v[2]), Owner: uint32(v[3])})
	}
}

func (l *Log) define(m *order.Market) {
	v := &m.Values
	i := Instrument{Symbol: string(m.Symbol), PriceDigits: m.PriceDigits, QtyDigits: m.QtyDigits,
		Instrument: match.Instrument{Tick: int64(v[0]), Lot: int64(v[1]), Low: int64(v[2]), High: int64(v[3]), Ref: int64(v[4])}}
	if l.matcher == nil || int(m.Book) != len(l.instruments) || i.Check() != nil {
		l.wrong("instrument %q is book %d, of %d, or out of its bounds", i.Symbol, m.Book, len(l.instruments))
		return
	}
	l.matcher.Define(m.Book, i.Instrument)
	l.instruments = append(l.instruments, i)
	if s := match.State(m.State); s != match.Closed {
		l.do(match.Op{Kind: match.SetState, Time: l.e.TimeNs, Book: m.Book, State: s})
	}
}

// fix follows which FIX sessions are open, and takes the orders of one out that asks for it, or
// those of sessions that are gone.
func (l *Log) fix() {
	if order.IsLapse(l.payload) {
		l.lapse()
		return
	}
	if m, slot, _, ok := order.MassCancelOf(l.payload); ok {
		l.do(match.Op{Kind: match.MassCancel, Time: l.e.TimeNs, ID: l.e.Seq, Owner: fixOwner | slot, Book: m.Book, Side: match.Side(m.Side)})
		return
	}
	for rest := l.payload; len(rest) > 0; {
		var r order.FixRecord
		rest = order.NextFix(rest, &r)
		switch r.Op {
		case order.FixOpen:
			if _, open := l.fixIDs[r.Slot]; !open {
				id := r.Opening().ID
				l.fixes[id], l.fixIDs[r.Slot] = r.Slot, id
			}
		case order.FixRemove:
			delete(l.fixes, l.fixIDs[r.Slot])
			delete(l.fixIDs, r.Slot)
		}
	}
}

// lapse takes the orders of the sessions out that the entry names.
func (l *Log) lapse() {
	op := match.Op{Kind: match.MassCancel, Lapse: true, Time: l.e.TimeNs, ID: l.e.Seq, Owner: fixOwner, Book: match.All}
	for rest := l.payload; len(rest) > 0; {
		var r order.FixRecord
		rest = order.NextFix(rest, &r)
		if n := int(r.Slot/64) + 1; n > len(op.Parties) {
			op.Parties = append(op.Parties, make([]uint64, n-len(op.Parties))...)
		}
		op.Parties[r.Slot/64] |= 1 << (r.Slot % 64)
	}
	l.do(op)
}
