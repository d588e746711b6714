package listener

import (
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// position is an entry that says up to where a sink holds the log.
func position(seq uint64, kind order.Kind, payload []byte) client.LogEntry {
	e := client.LogEntry{Entry: order.Entry{Size: uint32(order.HeaderSize + len(payload)), Kind: kind, Seq: seq, Epoch: 3, TimeNs: 1_700_000_000_123_456_789}}
	e.Bytes = make([]byte, order.HeaderSize, order.Padded(order.HeaderSize+len(payload)))
	e.Put(e.Bytes)
	e.Bytes = append(e.Bytes, payload...)
	return e
}

// Each position of a sink is a message, with the time of its entry, and none is counted as an order.
func TestPositionsOfSinks(t *testing.T) {
	list := []client.LogEntry{
		entry(t, 7, order44(map[string]string{})...),
		position(8, order.KindReader, order.AppendReader(nil, 7, "kafka")),
		position(9, order.KindCursor, []byte{6, 0, 0, 0, 0, 0, 0, 0}),
		position(10, order.KindReader, order.AppendReader(nil, order.ReaderGone, "kafka")),
		position(11, order.KindTruncate, []byte{6, 0, 0, 0, 0, 0, 0, 0}),
	}
	var b batch
	b.fill(&client.FollowBatch{Through: client.Position{Seq: 11}, Entries: list}, 2)
	if b.orders() != 1 || len(b.messages) != 4 || len(b.received) != 4 {
		t.Fatalf("%d messages, %d of orders", len(b.messages), b.orders())
	}
	for i, want := range []struct{ topic, payload string }{
		{"downstream.p2.kafka", `{"received":"2023-11-14T22:13:20.123456789Z","sink":"kafka","through":"7"}`},
		{"downstream.p2.%", `{"received":"2023-11-14T22:13:20.123456789Z","sink":"","through":"6"}`},
		{"downstream.p2.kafka", `{"received":"2023-11-14T22:13:20.123456789Z","sink":"kafka","gone":true}`},
	} {
		m := &b.messages[i+1]
		if string(m.Topic) != want.topic || string(m.Payload) != want.payload || m.At.Seq != uint64(i+8) {
			t.Errorf("%s at %s: %s, want %s: %s", m.Topic, m.At, m.Payload, want.topic, want.payload)
		}
		if err := topics.CheckTopic(m.Topic); err != nil {
			t.Error(err)
		}
	}
	one := func(sink string) topics.Filter {
		f, err := topics.ParseFilter(DownstreamFields, []topics.Term{{Field: "sink", Equal: &sink}})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	kafka, files := one("kafka"), one("files")
	if m := &b.messages[1]; !kafka.Matches(m.Fields) || files.Matches(m.Fields) {
		t.Errorf("a filter on the name: %+v", m.Fields)
	}
}
