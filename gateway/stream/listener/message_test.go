package listener

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// entry is a log entry of a message, as a node makes it.
func entry(t testing.TB, seq uint64, fields ...string) client.LogEntry {
	t.Helper()
	body := strings.Join(fields, "\x01") + "\x01"
	m := fmt.Appendf(nil, "8=%s\x019=%d\x01%s", []string{"FIX.4.4", "FIXT.1.1"}[seq%2], len(body), body)
	m = fmt.Appendf(m, "10=%03d\x01", order.CheckSum(m))
	var o order.Order
	if err := order.Parse(m, &o); err != nil {
		t.Fatalf("%q: %v", m, err)
	}
	e := client.LogEntry{Entry: order.Entry{Size: uint32(order.HeaderSize + len(m)), Kind: order.KindOrder, Seq: seq, Epoch: 3, Session: 1, ClientSeq: seq, TimeNs: 1_700_000_000_123_456_789, Fields: o.Fields}}
	e.Bytes = make([]byte, order.HeaderSize, order.Padded(order.HeaderSize+len(m)))
	e.Entry.Put(e.Bytes)
	e.Bytes = append(e.Bytes, m...)
	return e
}

// order44 is a valid order with some fields changed or added; an empty value leaves one out.
func order44(change map[string]string) (fields []string) {
	have := [][2]string{{"35", "D"}, {"49", "A"}, {"56", "B"}, {"34", "1"}, {"52", "20261123-09:30:00"}, {"11", "ID-1"}, {"1", "A17"}, {"55", "ACME"}, {"54", "1"}, {"60", "20261123-09:30:00"},
		{"38", "100"}, {"40", "2"}, {"44", "125.25"}, {"59", "0"}}
	for _, f := range have {
		v, changed := change[f[0]]
		if !changed {
			v = f[1]
		}
		delete(change, f[0])
		if v != "" {
			fields = append(fields, f[0]+"="+v)
		}
	}
	for tag, v := range change {
		fields = append(fields, tag+"="+v)
	}
	return fields
}

func TestMessages(t *testing.T) {
	long := strings.Repeat(".", order.MaxAccount)
	for _, c := range []struct {
		change map[string]string
		topic  string
		want   map[string]any
	}{
		{map[string]string{}, "orders.A17.ACME.buy", map[string]any{"kind": "new", "clOrdID": "ID-1", "account": "A17", "symbol": "ACME", "side": "buy", "qty": "100", "price": "125.25", "ordType": "2", "tif": "0"}},
		{map[string]string{"1": "", "55": "BRK.B >", "54": "5"}, "orders.%.BRK%2EB%20%3E.sell-short", map[string]any{"symbol": "BRK.B >", "side": "sell-short", "account": nil}},
		{map[string]string{"1": `a"\b`, "40": "1", "44": ""}, "orders.a%22%5Cb.ACME.buy", map[string]any{"account": `a"\b`, "price": nil}},
		{map[string]string{"35": "F", "41": "ID-0", "40": "", "44": "", "59": ""}, "orders.A17.ACME.buy", map[string]any{"kind": "cancel", "origClOrdID": "ID-0", "ordType": nil}},
		{map[string]string{"35": "G", "41": "ID-0", "54": "B"}, "orders.A17.ACME.B", map[string]any{"kind": "replace", "side": "B"}},
		{map[string]string{"1": long}, "", map[string]any{"account": long}},
	} {
		e := entry(t, 7, order44(c.change)...)
		var b batch
		b.fill(&client.FollowBatch{Entries: []client.LogEntry{e}, Through: client.Position{Seq: 9}}, 2)
		// What the batch was made of is used again by the follower.
		clear(e.Bytes)
		m := b.messages[0]
		if c.topic != "" && string(m.Topic) != c.topic {
			t.Errorf("topic is %s, want %s", m.Topic, c.topic)
		}
		if err := topics.CheckTopic(m.Topic); err != nil {
			t.Error(err)
		}
		var got map[string]any
		if err := json.Unmarshal(m.Payload, &got); err != nil {
			t.Errorf("%s: %v", m.Payload, err)
		}
		c.want["received"], c.want["epoch"] = "2023-11-14T22:13:20.123456789Z", 3.0
		for name, want := range c.want {
			if got[name] != want {
				t.Errorf("%s is %v, want %v", name, got[name], want)
			}
		}
		if len(m.Fields) != len(OrderFields) || m.Partition != 2 || m.At.Seq != 7 || m.Fields[7].Num != time.Unix(1_700_000_000, 123_456_789).UnixNano() ||
			string(m.Fields[0].Bytes) != fmt.Sprint(orEmpty(got["account"])) || m.Fields[0].Set != (got["account"] != nil) {
			t.Errorf("message %+v", m)
		}
		f, err := topics.ParseFilter(OrderFields, []topics.Term{{Field: "symbol", Equal: new(fmt.Sprint(got["symbol"]))}, {Field: "received", Min: new("2023-11-14T22:13:20.123456789Z"), Max: new("2023-11-14T22:13:20.123456789Z")}})
		if err != nil || !f.Matches(m.Fields) {
			t.Errorf("the filter does not match: %v", err)
		}
	}
}

func orEmpty(v any) any {
	if v == nil {
		return ""
	}
	return v
}

// Whatever bytes an order has, its message is a valid one.
func FuzzMessage(f *testing.F) {
	for _, change := range []map[string]string{{}, {"1": ""}, {"35": "F", "41": "x"}} {
		f.Add([]byte(strings.Join(order44(change), "\x01") + "\x01"))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m := fmt.Appendf(nil, "8=FIX.4.2\x019=%d\x01%s", len(body), body)
		m = fmt.Appendf(m, "10=%03d\x01", order.CheckSum(m))
		var o order.Order
		if order.Parse(m, &o) != nil {
			t.Skip()
		}
		e := client.LogEntry{Entry: order.Entry{Kind: order.KindOrder, Seq: 1, Fields: o.Fields}, Bytes: append(make([]byte, order.HeaderSize), m...)}
		var b batch
		b.fill(&client.FollowBatch{Entries: []client.LogEntry{e}}, 0)
		if err := topics.CheckTopic(b.messages[0].Topic); err != nil {
			t.Error(err)
		}
		if !json.Valid(b.messages[0].Payload) || bytes.ContainsAny(b.messages[0].Payload, "\n\x00") {
			t.Errorf("%q", b.messages[0].Payload)
		}
	})
}
