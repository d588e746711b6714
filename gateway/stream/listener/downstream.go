package listener

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Downstream is the first token of the topics of positions of sinks: downstream.{partition}.{sink}. The sink of the nodes,
// which has no name, is the empty token.
//
// A position is an entry of the log: the sink holds every entry up to it durably. So it is the same at all gateways, and
// a client that resumes gets those that it lacks.
const Downstream = "downstream"

// DownstreamFields are what filters on positions of sinks can be about.
var DownstreamFields = []topics.Field{{Name: "sink", Type: topics.Text}, {Name: "received", Type: topics.Time}}

// downstream makes a message of a position of a sink.
func (b *batch) downstream(e *client.LogEntry, partition int) {
	payload := order.Payload(e.Bytes)
	through, sink := binary.LittleEndian.Uint64(payload), []byte(nil)
	if e.Kind == order.KindReader {
		through, sink = order.Reader(payload)
	}
	at := len(b.arena)
	b.arena = strconv.AppendInt(append(append(b.arena, Downstream...), ".p"...), int64(partition), 10)
	b.arena = topics.AppendToken(append(b.arena, '.'), sink)
	topic := b.arena[at:len(b.arena):len(b.arena)]

	at = len(b.arena)
	b.arena = append(b.arena, `{"received":"`...)
	b.arena = time.Unix(0, e.TimeNs).UTC().AppendFormat(b.arena, time.RFC3339Nano)
	b.arena = append(append(append(b.arena, `","sink":"`...), sink...), '"') // no character of a name is escaped
	if through == order.ReaderGone {
		b.arena = append(b.arena, `,"gone":true}`...)
	} else {
		b.arena = append(strconv.AppendUint(append(b.arena, `,"through":"`...), through, 10), `"}`...)
	}
	message := b.arena[at:len(b.arena):len(b.arena)]

	first := len(b.fields)
	b.fields = append(b.fields, b.text(sink), topics.IntValue(e.TimeNs))
	b.messages = append(b.messages, fanout.Message{Partition: partition, At: fanout.Position{Seq: e.Seq}, Topic: topic,
		Fields: b.fields[first:len(b.fields):len(b.fields)], Payload: message})
	b.received = append(b.received, e.TimeNs)
}
