package listener

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Orders is the first token of the topics of orders: orders.{account}.{symbol}.{side}.
const Orders = "orders"

// OrderFields are what filters on orders can be about.
var OrderFields = []topics.Field{{Name: "account", Type: topics.Text}, {Name: "symbol", Type: topics.Text}, {Name: "side", Type: topics.Text},
	{Name: "kind", Type: topics.Text}, {Name: "clOrdID", Type: topics.Text}, {Name: "qty", Type: topics.Decimal}, {Name: "price", Type: topics.Decimal},
	{Name: "received", Type: topics.Time}}

// Tags that an entry does not index.
const (
	atMsgType = iota
	atOrig
	atOrdType
	atTimeInForce
)

func newLocator() *order.Locator { return order.NewLocator(35, 41, 40, 59) }

// sides are the words for FIX tag 54. A side without a word is its character.
var sides = map[byte]string{'1': "buy", '2': "sell", '3': "buy-minus", '4': "sell-plus", '5': "sell-short", '6': "sell-short-exempt", '7': "undisclosed", '8': "cross", '9': "cross-short"}

// kinds are the words for MsgType.
var kinds = map[string]string{"D": "new", "F": "cancel", "G": "replace"}

// batch is messages of a part of a partition's log. Its buffers are used again.
type batch struct {
	messages []fanout.Message
	received []int64 // when the primary got them, in ns since 1970
	through  client.Position
	commit   uint64
	arena    []byte
	fields   []topics.Value
	locator  *order.Locator
	// Entries that may have changed a book, and the last one that may have changed any.
	touched    []touch
	touchedAll uint64
	// What the node selected from an entry on; nil: everything, or that is not known.
	by     *selected
	byFrom uint64
	// Changes of regions: nil, no messages are made of them.
	names      *regionNames
	streams    func(region string) bool
	mostOfPair int
}

// fill makes messages of the orders of a part of the log, of positions of sinks, and of changes of regions, whose names are
// known.
func (b *batch) fill(from *client.FollowBatch, partition int) {
	b.messages, b.received, b.arena, b.fields = b.messages[:0], b.received[:0], b.arena[:0], b.fields[:0]
	b.touched, b.touchedAll = b.touched[:0], 0
	b.through, b.commit = from.Through, from.CommitSeq
	if b.locator == nil {
		b.locator = newLocator()
	}
	executions := from.Executions
	for i := range from.Entries {
		e := &from.Entries[i]
		executions = b.executed(executions, e.Seq-1, partition)
		switch {
		case e.Kind.IsOrder():
			b.add(e, partition)
		case e.Kind == order.KindRegion && b.names != nil:
			b.region(e, partition)
		case e.Kind == order.KindCursor || e.Kind == order.KindReader:
			b.downstream(e, partition)
		case changesBooks(e):
			b.touchedAll = e.Seq
		}
	}
	b.executed(executions, from.Through.Seq, partition)
}

// changesBooks reports whether an entry that is no order may change the state of a book without an execution.
func changesBooks(e *client.LogEntry) bool {
	switch e.Kind {
	case order.KindMarket, order.KindContinue, order.KindNoop:
		return true
	case order.KindFix:
		_, _, _, mass := order.MassCancelOf(order.Payload(e.Bytes))
		return mass
	}
	return false
}

// add makes a message of an order.
func (b *batch) add(e *client.LogEntry, partition int) {
	msg, f := order.Message(e.Bytes), e.Fields
	if e.Kind == order.KindExecute {
		f = f.Uninstructed()
	}
	span := b.locator.Locate(msg, f.Places())
	kind := kinds[string(span[atMsgType].Of(msg))]
	side := sides[f.Side]
	if side == "" && f.Side != 0 {
		side = string(rune(f.Side))
	}
	account, symbol, id := part(msg, f.AccountOff, f.AccountLen), part(msg, f.SymbolOff, f.SymbolLen), part(msg, f.ClOrdIDOff, f.ClOrdIDLen)
	qty, price := value(msg, f.QtyOff), value(msg, f.PriceOff)

	at := len(b.arena)
	b.arena = append(b.arena, Orders...)
	for _, token := range [][]byte{account, symbol, []byte(side)} {
		b.arena = topics.AppendToken(append(b.arena, '.'), token)
	}
	topic := b.arena[at:len(b.arena):len(b.arena)]

	at = len(b.arena)
	b.arena = append(b.arena, `{"received":"`...)
	b.arena = time.Unix(0, e.TimeNs).UTC().AppendFormat(b.arena, time.RFC3339Nano)
	b.arena = append(append(append(b.arena, `","kind":"`...), kind...), '"')
	for _, v := range []struct {
		name  string
		value []byte
	}{{"clOrdID", id}, {"origClOrdID", span[atOrig].Of(msg)}, {"account", account}, {"symbol", symbol}, {"side", []byte(side)},
		{"qty", qty}, {"price", price}, {"ordType", span[atOrdType].Of(msg)}, {"tif", span[atTimeInForce].Of(msg)}} {
		if len(v.value) > 0 {
			b.arena = appendString(append(append(append(b.arena, `,"`...), v.name...), `":`...), v.value)
		}
	}
	b.arena = append(strconv.AppendUint(append(b.arena, `,"epoch":`...), uint64(e.Epoch), 10), '}')
	payload := b.arena[at:len(b.arena):len(b.arena)]

	first := len(b.fields)
	b.fields = append(b.fields, b.text(account), b.text(symbol), b.text([]byte(side)), b.text([]byte(kind)), b.text(id), decimal(qty), decimal(price), topics.IntValue(e.TimeNs))
	b.messages = append(b.messages, fanout.Message{Partition: partition, At: fanout.Position{Seq: e.Seq}, Topic: topic,
		Fields: b.fields[first:len(b.fields):len(b.fields)], Payload: payload})
	b.received = append(b.received, e.TimeNs)
}

// text copies a value: what it is part of is gone with the next part of the log.
func (b *batch) text(v []byte) topics.Value {
	if len(v) == 0 {
		return topics.Value{}
	}
	at := len(b.arena)
	b.arena = append(b.arena, v...)
	return topics.TextValue(b.arena[at:len(b.arena):len(b.arena)])
}

func part(msg []byte, off uint16, n uint8) []byte {
	if off == 0 {
		return nil
	}
	return msg[off : int(off)+int(n)]
}

// value is the one that begins at off and ends at the next SOH.
func value(msg []byte, off uint16) []byte {
	if off == 0 {
		return nil
	}
	v, _, _ := bytes.Cut(msg[off:], []byte{1})
	return v
}

func decimal(text []byte) topics.Value {
	v, _ := topics.DecimalValue(text)
	return v
}

// Each byte of a value is a token's three at most, so every account and symbol that a grid takes fits a topic.
const (
	_ = uint(topics.MaxToken - 3*order.MaxAccount)
	_ = uint(topics.MaxToken - 3*order.MaxSymbol)
)

// appendString appends a string of JSON.
func appendString(dst, v []byte) []byte {
	for _, c := range v {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(string(v))
			if err != nil { // a string is never refused
				return append(dst, `""`...)
			}
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), v...), '"')
}
