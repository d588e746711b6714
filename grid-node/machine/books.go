package machine

import (
	"fmt"
	"runtime"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// MaxBooks bounds the instruments of a partition.
const MaxBooks = 4096

// MaxResting bounds the orders that rest in its books.
const MaxResting = 1 << 24

// Books is the part of a partition that matches. It executes an entry when it is applied,
// on every copy, and again when it is freed. A partition that stores orders has none.
//
// Before the entry with the config there is no engine, and no instrument.
type Books struct {
	engine      *match.Engine
	config      match.Config
	instruments []Instrument
	symbols     map[string]uint16
	owners      owners
	resting     resting
	sum         uint64         // of the instruments
	out         []match.Record // of the last entry
	reports     []FixReport    // those of FIX sessions among them
	party       uint32         // who answers for the order of the entry, 0 if that is not known
	value       [2]uint64      // of the fills of the order of the last entry
	states      []bookState    // by number of the book, see EachState
	calendar    calendar       // what of it was done
	cursors     []match.Cursor // where parts of a snapshot begin, those known of the present state
	restoring   *restoring     // nil unless a snapshot is being restored
	twin        *Books         // of a restore: what Clone returns
	tap         *match.Tap     // no part of the state; nil: no book is watched
}

// Instrument is what a book trades, and how its numbers are written.
type Instrument struct {
	match.Instrument
	Symbol                 string
	PriceDigits, QtyDigits uint8       // behind the point
	State                  match.State // that the book begins in: Closed, Call or Open
}

// Match makes the machine, after Begin, that of a partition that matches.
func (m *Machine) Match() { m.Books = newBooks() }

func newBooks() *Books { return &Books{symbols: map[string]uint16{}} }

// Ready reports whether the engine has its config.
func (b *Books) Ready() bool { return b.engine != nil }

// Position returns how many records were made and their hash.
func (b *Books) Position() match.Position {
	if b.engine == nil {
		return match.Position{}
	}
	return b.engine.Position()
}

// Records returns what the last entry did, in order. They are valid until the next.
func (b *Books) Records() []match.Record { return b.out }

// Full reports whether as many mass cancels are pending as there may be.
func (b *Books) Full() bool { return b.engine != nil && b.engine.Full() }

// LapsesFull reports whether as many lapses are pending as there may be, or there are no books.
func (b *Books) LapsesFull() bool { return b.engine == nil || b.engine.LapsesFull() }

// Pending reports whether an entry of kind continue has something to do.
func (b *Books) Pending() bool { return b.engine != nil && b.engine.Pending() }

// Resting returns how many orders rest.
func (b *Books) Resting() int { return b.resting.n }

// Most returns how many can.
func (b *Books) Most() int { return b.config.Orders }

// Unnamed returns how many of them have no known sender: a kill of a trader, desk, algorithm or
// client does not include them.
func (b *Books) Unnamed() int {
	if b.engine == nil {
		return 0
	}
	return b.engine.Unnamed()
}

// MostRecords is how many records an entry can make.
func (b *Books) MostRecords() int {
	if b.engine == nil {
		return 0
	}
	return b.engine.MaxRecords()
}

// Book returns the number of the book of a symbol.
func (b *Books) Book(symbol string) (uint16, bool) {
	n, ok := b.symbols[symbol]
	return n, ok
}

// Instruments are those defined, by number of their book. They must not be changed.
func (b *Books) Instruments() []Instrument { return b.instruments }

// Find returns the entry of the order that rests under a ClOrdID: of any session of clients,
// or of this owner if that is a FIX session.
func (b *Books) Find(clOrdID []byte, owner uint32) (id uint64, found bool) {
	if at := b.resting.named(clOrdID, owner); at != 0 {
		return b.resting.rows[at].id, true
	}
	return 0, false
}

// First returns the entry that an order in the books began with.
func (b *Books) First(id uint64) uint64 { return b.resting.firstOf(id) }

// Value returns price x quantity of the fills of an order of a FIX session in the books, in
// units, high word first.
func (b *Books) Value(id uint64) [2]uint64 { return b.resting.valueOf(id) }

// Order returns what the books hold of an order.
func (b *Books) Order(id uint64) (match.Order, bool) {
	if b.engine == nil {
		return match.Order{}, false
	}
	return b.engine.Find(id)
}

// Phase returns the state of a book.
func (b *Books) Phase(book uint16) match.Phase {
	p, _ := b.engine.Phase(book)
	return p
}

// Depth appends the best levels of a side of a book, at most so many.
func (b *Books) Depth(book uint16, side match.Side, most int, out []match.Level) []match.Level {
	return b.engine.Depth(book, side, most, out)
}

// OwnerOf returns the owner that the orders of a session slot have, 0 for a slot that was
// never opened.
func (b *Books) OwnerOf(slot uint32) uint32 { return b.owners.of(slot) }

// SlotOf returns the session slot of an owner, while its session is open.
func (b *Books) SlotOf(owner uint32) (slot uint32, open bool) {
	slot, open = b.owners.slots[owner]
	return slot, open
}

func (b *Books) check(e *order.Entry, payload []byte) error {
	fail := func(field string, v uint64, allowed string) error {
		return fmt.Errorf("entry %d: %s is %d, allowed: %s", e.Seq, field, v, allowed)
	}
	switch e.Kind {
	case order.KindOrder:
		return fail("kind", uint64(e.Kind), "8 in a partition that matches")
	case order.KindExecute:
		i := order.Instructed(payload)
		switch {
		case int(i.Book) >= len(b.instruments):
			return fail("book", uint64(i.Book), "one that is defined")
		case i.Owner != b.ownerOf(e):
			return fail("owner", uint64(i.Owner), fmt.Sprint(b.ownerOf(e), ", that of its session"))
		}
	case order.KindContinue:
		if !b.Pending() {
			return fail("kind", uint64(e.Kind), "10 while something is pending in the books")
		}
	case order.KindMarket:
		m := order.MarketOf(payload)
		if (m.Op == order.MarketConfig) == b.Ready() {
			return fail("op", uint64(m.Op), "1 first, and once")
		}
		switch m.Op {
		case order.MarketConfig:
			_, err := configOf(&m)
			return err
		case order.MarketDefine:
			return b.checkInstrument(e.Seq, &m)
		case order.MarketCalendar, order.MarketScheduled:
			return b.checkScheduled(e, &m)
		}
		if op := match.OpKind(m.Kind); op < match.MassCancel || op > match.SetBand {
			return fail("market operation", uint64(m.Kind), "4..7")
		}
	}
	return nil
}

// configOf returns the bounds of an engine.
func configOf(m *order.Market) (match.Config, error) {
	v := &m.Values
	if v[0] == 0 || v[0] > MaxResting || v[1] == 0 || v[1] > MaxResting || v[2] == 0 || v[2] > MaxBooks || v[3] == 0 || v[3] > 1<<16 {
		return match.Config{}, fmt.Errorf("books: orders %d, pages %d, books %d, work %d, allowed: 1..%d, 1..%d, 1..%d, 1..%d",
			v[0], v[1], v[2], v[3], MaxResting, MaxResting, MaxBooks, 1<<16)
	}
	return match.Config{Orders: int(v[0]), Pages: int(v[1]), Books: int(v[2]), Work: int(v[3]), Seed: v[4]}, nil
}

func instrumentOf(m *order.Market) Instrument {
	v := &m.Values
	return Instrument{
		Instrument: match.Instrument{Tick: int64(v[0]), Lot: int64(v[1]), Low: int64(v[2]), High: int64(v[3]), Ref: int64(v[4])},
		Symbol:     string(m.Symbol), PriceDigits: m.PriceDigits, QtyDigits: m.QtyDigits, State: match.State(m.State),
	}
}

// Market returns the payload of the entry that defines the instrument as a book.
func (i *Instrument) Market(book uint16) order.Market {
	return order.Market{Op: order.MarketDefine, Book: book, State: uint8(i.State), PriceDigits: i.PriceDigits, QtyDigits: i.QtyDigits,
		Values: [5]uint64{uint64(i.Tick), uint64(i.Lot), uint64(i.Low), uint64(i.High), uint64(i.Ref)}, Symbol: []byte(i.Symbol)}
}

// Validate checks an instrument as the books do.
func (i *Instrument) Validate() error {
	if i.PriceDigits > 12 || i.QtyDigits > 12 || i.Symbol == "" || len(i.Symbol) > order.MaxSymbol {
		return fmt.Errorf("instrument %q: %d and %d digits behind the point, allowed: up to 12, and a symbol of 1..%d characters", i.Symbol, i.PriceDigits, i.QtyDigits, order.MaxSymbol)
	}
	switch i.State {
	case match.Closed, match.Call, match.Open:
	default:
		return fmt.Errorf("instrument %q: state %d, allowed: 0 closed, 1 call, 3 open", i.Symbol, i.State)
	}
	if err := i.Check(); err != nil {
		return fmt.Errorf("instrument %q: %w", i.Symbol, err)
	}
	return nil
}

func (b *Books) checkInstrument(seq uint64, m *order.Market) error {
	i := instrumentOf(m)
	if _, known := b.symbols[i.Symbol]; known || int(m.Book) != len(b.instruments) || len(b.instruments) == b.config.Books {
		return fmt.Errorf("entry %d: instrument %q is book %d, allowed: a symbol that is not defined, as book %d of %d", seq, i.Symbol, m.Book, len(b.instruments), b.config.Books)
	}
	if err := i.Validate(); err != nil {
		return fmt.Errorf("entry %d: %w", seq, err)
	}
	return nil
}

// configure makes the engine.
func (b *Books) configure(c match.Config) error {
	c.Tables = 2 // of resting
	e, err := match.New(c)
	if err != nil {
		return err
	}
	runtime.SetFinalizer(e, (*match.Engine).Close) // its slabs are outside the Go heap
	b.engine, b.config = e, c
	b.resting.init(c.Orders, c.Seed, e)
	b.out = make([]match.Record, 0, e.MaxRecords())
	return nil
}

// define adds an instrument: its book, closed.
func (b *Books) define(i Instrument) error {
	n := uint16(len(b.instruments))
	if err := b.engine.Define(n, i.Instrument); err != nil {
		return err
	}
	b.instruments = append(b.instruments, i)
	b.states = append(b.states, bookState{since: b.engine.Now()})
	b.symbols[i.Symbol] = n
	b.sum += i.sum(n)
	return nil
}

// Spoil is for the simulator: it makes books that their log does not make.
func (b *Books) Spoil() {
	b.out = b.engine.Apply(&match.Op{Kind: match.Cancel, ID: 1, Orig: 1 << 63}, b.out[:0])
}
