package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// BookState is the state of a book.
type BookState uint8

// States, as docs/exchange.md explains them.
const (
	BookClosed     BookState = 0
	BookCall       BookState = 1
	BookUncrossing BookState = 2
	BookOpen       BookState = 3
	BookHalted     BookState = 4
)

var bookStates = [...]string{"closed", "call", "uncrossing", "open", "halted"}

func (s BookState) String() string {
	if int(s) < len(bookStates) {
		return bookStates[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// MostLevels is how many levels of a side a Book can have.
const MostLevels = wire.MostLevels

// BookLevel is what is shown of the orders of a price, in the units of the instrument.
type BookLevel = wire.BookLevel

// Book is a book as it is after a committed entry. Prices are multiples of
// 10^-PriceDigits, quantities of 10^-QtyDigits.
type Book struct {
	Partition              wire.PartitionID
	Symbol                 string
	Book                   uint16 // its number in the partition, which executions have
	From                   string // address of the node that answered
	Seq                    uint64 // the entry
	ExecSeq                uint64 // executions and other records up to it
	State                  BookState
	Until                  time.Time // a halt ends by itself at this time; zero: never
	Last                   int64     // price of the last trade,
	Traded                 bool      // if there was one
	Low, High              int64     // new prices have to be within
	PriceDigits, QtyDigits uint8
	Bids, Asks             []BookLevel // the best first
}

// RouteSymbol is the partition that trades a symbol, in a grid that matches.
func (c *Client) RouteSymbol(symbol string) wire.PartitionID { return c.RouteClOrdID([]byte(symbol)) }

// ReadBook reads the best levels of a book, at most depth of a side. replica is the address
// of a member of the partition of the symbol; "" means the primary. What it shows is
// committed: all copies in sync have executed it in the same way. A *RejectError with
// CodeUnknownInstrument: the partition does not trade the symbol.
func (c *Client) ReadBook(ctx context.Context, symbol string, depth int, replica string) (Book, error) {
	if depth < 1 || depth > MostLevels {
		return Book{}, fmt.Errorf("client: ReadBook: depth is %d, allowed: 1 to %d", depth, MostLevels)
	}
	if symbol == "" || len(symbol) > wire.MaxString {
		return Book{}, fmt.Errorf("client: ReadBook: symbol of %d bytes, allowed: 1 to %d", len(symbol), wire.MaxString)
	}
	partition := c.RouteSymbol(symbol)
	var m wire.BookLevels
	b := Book{Partition: partition, Symbol: symbol, From: replica}
	ask := func(ctx context.Context, addr string) error {
		return c.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
			return wire.AppendReadBook(dst, partition, &wire.ReadBook{ReqID: reqID, Depth: uint16(depth), Symbol: []byte(symbol)})
		}, func(frame []byte) error {
			if err := wire.DecodeBookLevels(frame, &m); err != nil {
				return err
			}
			b.Bids, b.Asks = nil, nil // frame is valid until this returns
			for i := range int(m.Bids) + int(m.Asks) {
				if l := wire.LevelOf(m.Levels[i*wire.BookLevelSize:]); i < int(m.Bids) {
					b.Bids = append(b.Bids, l)
				} else {
					b.Asks = append(b.Asks, l)
				}
			}
			return nil
		})
	}
	var err error
	if replica != "" {
		err = ask(ctx, replica)
	} else {
		b.From, err = c.retry(ctx, partition, false, ask)
	}
	if err != nil {
		return Book{}, fmt.Errorf("read the book of %s in %s: %w", symbol, partition, err)
	}
	b.Seq, b.ExecSeq, b.State, b.Last, b.Traded, b.Low, b.High = m.Seq, m.ExecSeq, BookState(m.State), m.Last, m.Flags&wire.BookTraded != 0, m.Low, m.High
	b.PriceDigits, b.QtyDigits, b.Book = m.PriceDigits, m.QtyDigits, m.Book
	if m.Until != 0 {
		b.Until = time.Unix(0, m.Until)
	}
	return b, nil
}

// MarketOp is what the exchange does with a book.
type MarketOp struct {
	Symbol string
	// State that the book goes to: BookClosed, BookCall, BookOpen or BookHalted. With
	// Uncross it is the state behind the auction, BookOpen or BookClosed.
	State   BookState
	Uncross bool
	// Band moves the price band and nothing else: State, Uncross, Until and Price are zero.
	Band   *PriceBand
	Until  time.Time // a halt ends by itself at this time; zero: never
	Price  int64     // the reference price of an auction, in units; 0 for the last trade's
	Reason string    // 1 to 128 printable bytes: it is in the log
}

// PriceBand is the prices that new orders and replaces may have, in units, both multiples of the tick within the prices of
// the instrument. Orders that rest outside stay.
type PriceBand struct{ Low, High int64 }

// MarketError is a book that has refused an operation of the exchange, which is in the log.
type MarketError struct {
	Symbol string
	Seq    uint64 // the entry
	State  BookState
	Reason string
}

func (e *MarketError) Error() string {
	return fmt.Sprintf("the book of %s is %s and refuses the operation (entry %d): %s", e.Symbol, e.State, e.Seq, e.Reason)
}

// Market has the exchange act on a book, and returns when that is committed: the entry, and
// the state of the book after it. A *MarketError: the book refused it. It may be applied
// twice if an answer is lost; the second time the book is in the state already. An
// *OldNodeError: the primary is of a release that moves no bands.
func (c *Client) Market(ctx context.Context, op MarketOp) (seq uint64, state BookState, err error) {
	if op.Reason == "" || len(op.Reason) > wire.MaxReason {
		return 0, 0, fmt.Errorf("client: Market: reason of %d bytes, allowed: 1 to %d", len(op.Reason), wire.MaxReason)
	}
	for _, r := range []byte(op.Reason) {
		if r < ' ' || r == 127 {
			return 0, 0, errors.New("client: Market: the reason has a control character, allowed: printable text on one line")
		}
	}
	if op.Band != nil && (op.State != 0 || op.Uncross || !op.Until.IsZero() || op.Price != 0 || op.Band.Low > op.Band.High) {
		return 0, 0, fmt.Errorf("client: Market: a band of %d to %d, allowed: the lowest price first, without State, Uncross, Until and Price", op.Band.Low, op.Band.High)
	}
	m := wire.Market{Op: wire.MarketState, State: uint8(op.State), Price: op.Price, Symbol: []byte(op.Symbol), Reason: []byte(op.Reason)}
	if op.Uncross {
		m.Op = wire.MarketUncross
	}
	if op.Band != nil {
		m.Op, m.Price, m.Top = wire.MarketBand, op.Band.Low, op.Band.High
	}
	if !op.Until.IsZero() {
		m.Until = op.Until.UnixNano()
	}
	partition := c.RouteSymbol(op.Symbol)
	var answer wire.MarketDone
	_, err = c.retry(ctx, partition, false, func(ctx context.Context, addr string) error {
		return c.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
			m.ReqID = reqID
			return wire.AppendMarket(dst, partition, &m)
		}, func(frame []byte) error { return wire.DecodeMarketDone(frame, &answer) })
	})
	if err != nil {
		return 0, 0, fmt.Errorf("change the book of %s in %s: %w", op.Symbol, partition, err)
	}
	if answer.Reason != 0 {
		return answer.Seq, BookState(answer.State), &MarketError{Symbol: op.Symbol, Seq: answer.Seq, State: BookState(answer.State), Reason: bookReason(answer.Reason)}
	}
	return answer.Seq, BookState(answer.State), nil
}

// bookReason is why a book refuses an operation of the exchange.
func bookReason(code uint8) string {
	switch code {
	case 6:
		return "invalid field or combination"
	case 10:
		return "a price that the instrument has not: its lowest and highest are fixed"
	case 11:
		return "a price that is no multiple of the instrument's tick"
	case 13:
		return "not allowed in this state of the book; one in which orders are collected opens by uncross"
	case 22:
		return "a mass cancel is pending; retry"
	}
	return fmt.Sprintf("reason %d of docs/exchange.md", code)
}

// Decimal writes a number of units with so many digits behind the point.
func Decimal(units int64, digits uint8) string {
	if digits == 0 {
		return strconv.FormatInt(units, 10)
	}
	sign := ""
	u := uint64(units)
	if units < 0 {
		sign, u = "-", -u
	}
	text := strconv.FormatUint(u, 10)
	for len(text) <= int(digits) {
		text = "0" + text
	}
	at := len(text) - int(digits)
	return sign + text[:at] + "." + text[at:]
}
