package match

import (
	"fmt"
	"math"
)

// Bounds of an instrument.
const (
	MaxTicks = 1 << 22   // prices of a book
	MaxLots  = 1<<32 - 1 // of an order
)

// Instrument is what a book trades.
type Instrument struct {
	Tick      int64 // the price increment
	Lot       int64 // the quantity increment
	Low, High int64 // the lowest and highest price there can ever be, multiples of Tick
	Ref       int64 // the reference price of an auction before the first trade
}

// State is the phase of a book.
type State uint8

// States.
const (
	Closed     State = iota // cancels only
	Call                    // orders are collected for an auction
	Uncrossing              // an auction is being executed: nothing is accepted, not even a cancel
	Open                    // continuous trading
	Halted                  // cancels only, until SetState or the end that it was given
)

// book begins with what every order needs.
type book struct {
	Instrument
	bandLo, bandHi int64  // prices that orders may have
	span           uint32 // number of prices, 0 if there is no such book
	state          State
	crossed        bool      // may hold bids above asks
	triggers       bool      // trades from lo to hi have not been compared with stops yet
	traded         bool      // last is a price
	ladders        [4]ladder // by place
	best           [2]best
	resume         State // after a halt
	until          int64
	last, lo, hi   uint32   // prices as number of ticks above Low
	market         [2]level // market orders in a call phase
	auction        auction
	_              [8]byte // whole cache lines
}

// best is what BestChanged last reported.
type best struct {
	key, count uint32
	shown      uint64
}

// Places where an order of a book can be: the ladder, by side, and two queues.
const (
	placeBid = iota
	placeAsk
	placeStopBuy
	placeStopSell
	placeMarket // +1 for sell
	places      = placeMarket + 2
)

// Define adds a book, closed. It allocates BookBytes.
func (e *Engine) Define(n uint16, i Instrument) error {
	switch {
	case int(n) >= len(e.books):
		return fmt.Errorf("book %d, allowed: below %d", n, len(e.books))
	case e.books[n].span != 0:
		return fmt.Errorf("book %d: defined already", n)
	}
	if err := i.Check(); err != nil {
		return fmt.Errorf("book %d: %w", n, err)
	}
	b := &e.books[n]
	*b = book{Instrument: i, span: uint32((i.High-i.Low)/i.Tick) + 1, bandLo: i.Low, bandHi: i.High}
	b.best = [2]best{{key: none}, {key: none}}
	for p := range b.ladders {
		b.ladders[p] = makeLadder(b.span)
	}
	return nil
}

// Check reports what a book cannot trade.
func (i *Instrument) Check() error {
	switch {
	case i.Tick <= 0 || i.Lot <= 0 || i.Lot > math.MaxInt64/MaxLots:
		return fmt.Errorf("tick %d, lot %d, allowed: positive, lot at most %d", i.Tick, i.Lot, int64(math.MaxInt64/MaxLots))
	case i.Low%i.Tick != 0 || i.High%i.Tick != 0 || i.Low > i.High || i.Low < -math.MaxInt64/4 || i.High > math.MaxInt64/4 ||
		(i.High-i.Low)/i.Tick >= MaxTicks:
		return fmt.Errorf("prices %d..%d, allowed: multiples of the tick %d, at most %d of them", i.Low, i.High, i.Tick, MaxTicks)
	case i.Ref%i.Tick != 0 || i.Ref < i.Low || i.Ref > i.High:
		return fmt.Errorf("reference price %d, allowed: a multiple of the tick in %d..%d", i.Ref, i.Low, i.High)
	}
	return nil
}

// BookBytes is the memory that Define allocates for a book of so many ticks.
func BookBytes(ticks uint32) int64 { return 4 * ladderBytes(ticks) }

// price returns the price that is so many ticks above the lowest.
func (b *book) price(ticks uint32) int64 {
	if mutant(mutFloatPrice) {
		return int64(float32(b.Low) + float32(ticks)*float32(b.Tick))
	}
	return b.Low + int64(ticks)*b.Tick
}

// mirror turns a number of ticks into the key of bids and stop sells, and back.
func (b *book) mirror(ticks uint32) uint32 { return b.span - 1 - ticks }

// ticks returns the number of ticks of a key.
func (b *book) ticks(place uint8, key uint32) uint32 {
	mirrored := b.mirror(key)
	if (place>>1^place)&1 == 0 { // of bids and of stop sells
		key = mirrored
	}
	return key
}

// Defined reports whether a book trades this instrument.
func (e *Engine) Defined(n uint16, i Instrument) bool {
	return int(n) < len(e.books) && e.books[n].span != 0 && e.books[n].Instrument == i
}
