package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Field of a row: a FIX tag, or one of the constants from Seq on.
type Field uint32

// Fields that every view has.
const (
	Account      Field = 1
	ClOrdID      Field = 11
	MsgType      Field = 35 // D, F or G
	OrderQty     Field = 38
	OrdType      Field = 40
	OrigClOrdID  Field = 41
	Price        Field = 44
	Side         Field = 54
	Symbol       Field = 55
	TimeInForce  Field = 59
	TransactTime Field = 60

	Seq      Field = 1 << 30 // of the entry
	Session  Field = 1<<30 + 1
	Received Field = 1<<30 + 2 // by the primary
	State    Field = 1<<30 + 3 // new, replaced or cancelled; absent of a cancel
)

// Kind of the values of a field.
type Kind uint8

// Kinds. A row without the field has Null.
const (
	Null Kind = iota
	Int       // not negative
	Decimal
	Time
	Text
)

var kindNames = [...]string{Null: "null", Int: "integer", Decimal: "decimal", Time: "time", Text: "text"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// Def describes a field of a view.
type Def struct {
	Field Field
	Name  string
	Kind  Kind
	store storage
	off   uintptr // of the column in a chunk
	base  uintptr // of the bases of a time column's blocks
	dict  *dict   // of a dictionary column
	zone  int     // index of its zones, -1 for none
	post  int     // index of its postings, -1 for none
	run   int     // index of its sorted runs, -1 for none
}

// storage is how a column holds its values.
type storage uint8

const (
	inRow    storage = iota // the row's number itself
	inLog                   // text of the entry, found by a hash index
	inByte                  // one character, 0 for none
	inCode                  // number in a dictionary, 0 for none
	inFixed                 // int64 in units of 1e-8
	inTime                  // int32 from the base of its block of 64 rows
	inSlot                  // uint16
	inStates                // by heir
)

// Unique reports whether the field is read from the log, because rows seldom share values.
func (d *Def) Unique() bool { return d.store == inLog }

// Indexed reports whether rows of one value are found without a scan.
func (d *Def) Indexed() bool { return d.post >= 0 || d.store == inLog }

// Ordered reports whether rows of a range are found without a scan.
func (d *Def) Ordered() bool { return d.run >= 0 }

// Extra is a further tag that a view has a column for.
type Extra struct {
	Tag  uint32
	Name string // Tag5001 when empty
	Kind Kind   // Text, Decimal or Time
}

// Names of states.
const (
	StateNew       = "new"
	StateReplaced  = "replaced"
	StateCancelled = "cancelled"
)

// Places among the standard fields.
const (
	defSymbol  = 3
	defAccount = 5
)

// Zones of the standard fields, which come before those of further tags.
const (
	zonePrice = iota
	zoneQty
	zoneTransact
	zoneReceived
)

// standard are the fields of every view, in the order of columns.
var standard = []Def{
	{Field: Seq, Name: "Seq", Kind: Int, store: inRow},
	{Field: ClOrdID, Name: "ClOrdID", Kind: Text, store: inLog},
	{Field: OrigClOrdID, Name: "OrigClOrdID", Kind: Text, store: inLog},
	{Field: Symbol, Name: "Symbol", Kind: Text, store: inCode, off: offSymbol},
	{Field: Side, Name: "Side", Kind: Text, store: inByte, off: offSide},
	{Field: Account, Name: "Account", Kind: Text, store: inCode, off: offAccount},
	{Field: Price, Name: "Price", Kind: Decimal, store: inFixed, off: offPrice},
	{Field: OrderQty, Name: "OrderQty", Kind: Decimal, store: inFixed, off: offQty},
	{Field: OrdType, Name: "OrdType", Kind: Text, store: inByte, off: offOrdType},
	{Field: TimeInForce, Name: "TimeInForce", Kind: Text, store: inByte, off: offTIF},
	{Field: TransactTime, Name: "TransactTime", Kind: Time, store: inTime, off: offTransact, base: offTransactBase},
	{Field: Session, Name: "Session", Kind: Int, store: inSlot, off: offSession},
	{Field: Received, Name: "Received", Kind: Time, store: inTime, off: offReceived, base: offReceivedBase},
	{Field: MsgType, Name: "MsgType", Kind: Text, store: inByte, off: offMsgType},
	{Field: State, Name: "State", Kind: Text, store: inStates},
}

// Standard are the fields that every view has.
func Standard() []Def { return slices.Clone(standard) }

// known reports whether a field is a standard one.
func known(f Field) bool {
	for i := range standard {
		if standard[i].Field == f {
			return true
		}
	}
	return false
}

var extraKinds = map[string]Kind{"text": Text, "decimal": Decimal, "time": Time}

// ParseExtra reads TAG:KIND or TAG:KIND:NAME.
func ParseExtra(text string) (x Extra, err error) {
	tag, rest, _ := strings.Cut(text, ":")
	kind, name, _ := strings.Cut(rest, ":")
	n, err := strconv.ParseUint(tag, 10, 32)
	if k, ok := extraKinds[kind]; err == nil && ok {
		return Extra{Tag: uint32(n), Kind: k, Name: name}, nil
	}
	return x, fmt.Errorf("value %q, allowed: TAG:KIND or TAG:KIND:NAME, KIND one of text, decimal, time, such as 5001:text:Desk", text)
}

func (x *Extra) check() error {
	switch {
	case x.Tag == 0 || x.Tag >= 1<<30 || known(Field(x.Tag)):
		return fmt.Errorf("view: further tag is %d, allowed: 1 to %d, and none of those every view has", x.Tag, 1<<30-1)
	case x.Kind != Text && x.Kind != Decimal && x.Kind != Time:
		return fmt.Errorf("view: kind of tag %d is %s, allowed: text, decimal, time", x.Tag, x.Kind)
	case strings.ContainsFunc(x.Name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}):
		return fmt.Errorf("view: name of tag %d is %q, allowed: letters, digits and _", x.Tag, x.Name)
	}
	return nil
}
