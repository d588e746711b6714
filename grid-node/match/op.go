package match

// OpKind is what an operation does.
type OpKind uint8

// Operations.
const (
	Enter      OpKind = iota + 1 // an order enters
	Cancel                       // Orig is taken out
	Replace                      // Orig gets Price, Qty, Stop and Display, and the id ID unless that is 0
	MassCancel                   // every order that matches Owner, Group, Book (All) and Side (0) is taken out
	SetState                     // the book goes to State; a halt may end by itself at Until
	Uncross                      // ends the call phase: the auction, then State
	SetBand                      // Price..Stop are the limits of prices from here on
	Continue                     // a bounded part of what is pending
)

// Side of an order.
type Side uint8

// Sides, with the values of FIX tag 54.
const (
	Buy  Side = 1
	Sell Side = 2
)

// Type of an order.
type Type uint8

// Types. A stop has Stop, the price that triggers it, and is then one of the first two.
const (
	Limit Type = iota + 1
	Market
	StopLimit
	StopMarket
)

// TIF is how long an order lives.
type TIF uint8

// Times in force. Day also stands for longer ones: the engine does not end days.
const (
	Day TIF = iota
	IOC     // what is not filled at once is cancelled
	FOK     // filled at once and in full, or not at all
)

// SMP is what happens when an order meets another of its Group, with the values of FIX tag
// 2964; 0 is CancelNewest.
type SMP uint8

// Instructions for self-match prevention. That of the incoming order counts.
const (
	CancelNewest SMP = iota + 1 // the incoming order
	CancelOldest                // the resting order
	CancelBoth
)

// All is a Book of MassCancel: all of them.
const All = 1<<16 - 1

// Op is an operation. Prices and quantities are in the units of the instrument's tick and
// lot, not in ticks and lots.
type Op struct {
	Time    int64    // of the log entry; the engine's time never goes back
	ID      uint64   // of a new order; of a mass cancel, for its records
	Orig    uint64   // the order that Cancel and Replace mean
	Price   int64    // limit; of Uncross the reference price, 0 for the last trade
	Stop    int64    // trigger price
	Qty     int64    // total quantity, of a Replace including what is filled
	Display int64    // what an iceberg shows, 0 or Qty for everything
	Until   int64    // a halt ends at the first operation on the book from this time on, 0 for never
	Parties []uint64 // of a mass cancel, a bit for each party that it includes; nil: all orders, those without a party too. The engine keeps it
	Owner   uint32   // who enters, and whose orders may be cancelled; 0 in Cancel and Replace: anybody's
	Party   uint32   // who answers for the order from here on, 0 if that is not known
	Group   uint32   // FIX tag 2362, 0 for none
	Book    uint16
	Kind    OpKind
	Side    Side
	Type    Type
	TIF     TIF
	SMP     SMP
	State   State
	Post    bool // rejected if it would trade on entry
	Kill    bool // a mass cancel by the kill switch: it has places of its own, and its reason is Killed
	// Lapse is a mass cancel for owners whose connections have ended: those that have a bit in
	// Parties, counted from Owner. It has places of its own, and its reason is Disconnected.
	Lapse bool
}
