package limits

// Kind of an operation on an order.
type Kind uint8

// Operations. The first three are messages of a client, which the limits may refuse; the
// others are what the book did.
const (
	Enter   Kind = iota + 1 // a new order
	Replace                 // Orig is to get Price and Qty; it does when Revised follows
	Cancel                  // Orig is to be taken out; it is when Done follows
	Revised                 // the book did Replace: Orig has Price, Qty, and the id ID unless that is 0
	Filled                  // ID traded Qty at Price
	Done                    // ID left the book, or was refused by it
)

// Amend is a replace where nothing is known of the order that it means: Symbol, Side, Price
// and Qty are what that is to become. It uses no credit.
const Amend Kind = 16

// Side of an order.
type Side uint8

// Sides, with the values of FIX tag 54.
const (
	Buy  Side = 1
	Sell Side = 2
)

// Op is an operation on an order. Prices and quantities are in the units of the book.
type Op struct {
	Time    int64  // of the log entry, 0 for that of the operation before; see doc.go
	ID      uint64 // of the order
	Orig    uint64 // the order that Replace, Cancel and Revised mean
	Price   int64  // limit, unless Market; of Filled the price of the trade
	Trigger int64  // of a stop
	Qty     int64  // total quantity, of a replace including what is filled; of Filled what was traded
	Party   uint32 // who sends Enter, Replace and Cancel
	Symbol  uint16 // of Enter
	Kind    Kind
	Side    Side // of Enter
	Market  bool // without a limit: it gets the end of the collar, see Cap
	Stop    bool // Trigger counts
	Unkept  bool // of Enter: there is no book, so it uses no credit and is over with its answer
	Free    bool // without a collar and a largest value, an order without a limit passes: no customer has a credit threshold
}

// ChangeKind is what a person changes.
type ChangeKind uint8

// Changes. N is the number of what is changed.
const (
	SetProfile ChangeKind = iota + 1 // profile N has Rules
	Authorise                        // trader Other may enter orders under profile N, or not any more (Off)
	Restrict                         // symbol Other may not be traded under profile N, or may again (Off)
	SetSymbol                        // symbol N has Multiplier and the reference price Price
	SetSession                       // session N has the message rate of profile Profile
	SetClient                        // orders of client N are under profile Profile
	SetParty                         // party N, which is not defined, is Party
	SetCredit                        // the credit of client N (0: of all in total) becomes Amount
	Give                             // Amount of the credit of client N here goes to partition Other
	Take                             // Amount for client N arrives from partition Other, as its gift Gift
	Kill                             // Scope N may not enter or replace orders, for the reason Why
	Unkill                           // it may again
	Enable                           // algorithm N, halted by its repeated executions, may continue
	NewDay                           // executions so far use no credit any more
)

// Scope of a kill.
type Scope uint8

// Scopes.
const (
	Session Scope = iota
	Trader
	Desk
	Algorithm
	Client
	All
)

// Change is what a person changes. It is refused without Who.
type Change struct {
	Time       int64
	Amount     int64
	Price      int64
	Gift       uint64
	Multiplier uint32 // value is price x quantity x Multiplier
	N, Other   uint32
	Profile    uint32
	Who        uint32 // number of a person, not 0
	Kind       ChangeKind
	Scope      Scope
	Off        bool
	Why        Text
	Party      Party
	Rules      Rules
}

// Text is a reason for the record, padded with zero bytes.
type Text [48]byte

// Rules are the limits of a profile. 0 is no limit, but there is no order without credit.
type Rules struct {
	CollarReference uint32 // 1/10000 of the reference price that a price may be away from it
	CollarLast      uint32 // the same for the last trade's price
	CollarLeast     int64  // price units that a price may be away in any case
	MaxVolume       int64  // quantity of an order
	MaxValue        int64  // price x quantity x multiplier of an order
	Rate            uint32 // messages per second and session
	Burst           uint32 // messages at once, after none for Burst/Rate seconds
	Reserve         uint32 // of Burst, for cancels alone
	Repeats         uint32 // orders of an algorithm with an execution, until it is halted
	RepeatWindow    int64  // nanoseconds in which Repeats count, 0 for all since it was enabled
	DuplicateWindow int64  // nanoseconds in which an equal order of the same party is refused
	Officers        [4]uint32
}

// Bounds of rules.
const (
	maxCollar = 10_000
	maxRate   = 1 << 24
	maxBurst  = 1 << 20
	maxWindow = 24 * 3600 * second
	second    = 1_000_000_000
)

// Party is who sends an order. Trader, Desk and Algorithm may be 0, none.
type Party struct{ Session, Trader, Desk, Algorithm, Client uint32 }
