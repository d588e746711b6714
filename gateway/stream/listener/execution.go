package listener

import (
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/match"
)

// Executions is the first token of the topics of executions: executions.{account}.{symbol}.{side}.
const Executions = "executions"

// ExecutionFields are what filters on executions can be about.
var ExecutionFields = []topics.Field{{Name: "account", Type: topics.Text}, {Name: "symbol", Type: topics.Text}, {Name: "side", Type: topics.Text},
	{Name: "kind", Type: topics.Text}, {Name: "clOrdID", Type: topics.Text}, {Name: "qty", Type: topics.Decimal}, {Name: "price", Type: topics.Decimal},
	{Name: "received", Type: topics.Time}}

// executed makes messages of the executions of entries up to one, and returns the others. An execution is behind the order
// of its entry.
func (b *batch) executed(list []client.Executed, through uint64, partition int) []client.Executed {
	for len(list) > 0 && list[0].Entry <= through {
		b.execution(&list[0], partition)
		b.touches(list[0].Symbol, list[0].Entry)
		list = list[1:]
	}
	return list
}

// execution makes a message of one side of what happened: it has nothing of the other side but price and quantity.
func (b *batch) execution(e *client.Executed, partition int) {
	side := ""
	if e.Side != 0 {
		side = sides['0'+e.Side]
	}
	price, qty := "", client.Decimal(e.Qty, e.QtyDigits)
	if e.Price != 0 || e.Kind == client.ExecFilled {
		price = client.Decimal(e.Price, e.PriceDigits)
	}
	if e.Qty == 0 {
		qty = ""
	}

	at := len(b.arena)
	b.arena = append(b.arena, Executions...)
	for _, token := range []string{e.Account, e.Symbol, side} {
		b.arena = topics.AppendToken(append(b.arena, '.'), []byte(token))
	}
	topic := b.arena[at:len(b.arena):len(b.arena)]

	at = len(b.arena)
	b.arena = append(append(append(b.arena, `{"id":"`...), e.ID()...), `","received":"`...)
	b.arena = append(e.Received.UTC().AppendFormat(b.arena, time.RFC3339Nano), '"')
	text := func(name, v string) {
		if v != "" {
			b.arena = appendString(append(append(append(b.arena, `,"`...), name...), `":`...), []byte(v))
		}
	}
	text("kind", e.Kind.String())
	text("account", e.Account)
	text("symbol", e.Symbol)
	text("side", side)
	text("clOrdID", e.ClOrdID)
	if e.Order != 0 {
		text("order", e.Partition.String()+"/"+strconv.FormatUint(e.Order, 10))
	}
	if e.Kind == client.ExecReplaced {
		text("replacedBy", e.Partition.String()+"/"+strconv.FormatUint(e.Other, 10))
	}
	text("price", price)
	text("qty", qty)
	if e.Leaves != 0 || e.Cum != 0 || e.Kind == client.ExecFilled {
		text("leaves", client.Decimal(e.Leaves, e.QtyDigits))
		text("cum", client.Decimal(e.Cum, e.QtyDigits))
	}
	if e.Reason != 0 {
		text("reason", match.Reason(e.Reason).String())
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"passive", e.Passive}, {"auction", e.Auction}, {"orderFreed", e.Unknown}} {
		if flag.set {
			b.arena = append(append(append(b.arena, `,"`...), flag.name...), `":true`...)
		}
	}
	b.arena = append(b.arena, '}')
	payload := b.arena[at:len(b.arena):len(b.arena)]

	first := len(b.fields)
	b.fields = append(b.fields, b.text([]byte(e.Account)), b.text([]byte(e.Symbol)), b.text([]byte(side)), b.text([]byte(e.Kind.String())), b.text([]byte(e.ClOrdID)),
		decimal([]byte(qty)), decimal([]byte(price)), topics.IntValue(e.Received.UnixNano()))
	b.messages = append(b.messages, fanout.Message{Partition: partition, At: fanout.Position{Seq: e.Entry, Index: e.N}, Topic: topic,
		Fields: b.fields[first:len(b.fields):len(b.fields)], Payload: payload})
	b.received = append(b.received, e.Received.UnixNano())
}
