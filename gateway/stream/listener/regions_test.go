package listener

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// change is an entry of a region as a node makes it.
func change(t testing.TB, seq uint64, o order.RegionOp) client.LogEntry {
	t.Helper()
	payload := o.Append(nil)
	e := order.Entry{Size: uint32(order.HeaderSize + len(payload)), Kind: order.KindRegion, Seq: seq, Epoch: 3, TimeNs: 1_700_000_000_123_456_789}
	if o.Op >= order.RegionPut {
		e.Session, e.ClientSeq = 1, seq
	}
	b := make([]byte, order.HeaderSize, order.Padded(order.HeaderSize+len(payload)))
	e.Put(b)
	b = append(b, payload...)
	b = b[:cap(b)]
	var k client.LogEntry
	var err error
	if k.Bytes, _, err = order.NextEntry(b, &k.Entry); err != nil {
		t.Fatal(err)
	}
	return k
}

// ofRegions is a batch of a partition that has regions positions and secret, of which the first is streamed.
func ofRegions(ring int) *batch {
	b := &batch{names: &regionNames{}, streams: (&Config{Regions: []string{"positions"}}).streams, mostOfPair: mostOfPair(ring)}
	b.names.list.Store(&[]string{"positions", "secret"})
	return b
}

func TestRegionMessages(t *testing.T) {
	b := ofRegions(fanout.DefaultRingBytes)
	seq := uint64(6)
	for _, c := range []struct {
		op      order.RegionOp
		topic   string // empty: there is no message
		want    string
		partial bool
	}{
		{order.RegionOp{Op: order.RegionPut, Key: []byte("ACC-1/IBM"), Value: []byte("{\"qty\": 100,\"note\": \"<ü>\"}"), ExpireNs: 1_700_000_060_000_000_000}, "region.positions.ACC-1/IBM",
			`"kind":"put","region":"positions","key":"ACC-1/IBM","value":{"qty": 100,"note": "<ü>"},"expires":"2023-11-14T22:14:20Z"`, false},
		{order.RegionOp{Op: order.RegionPut, Key: []byte(`a.b "\>`), Value: []byte("100.50")}, "region.positions.a%2Eb%20%22%5C%3E", `"kind":"put","region":"positions","key":"a.b \"\\>","value":100.50`, false},
		{order.RegionOp{Op: order.RegionPut, Key: []byte("\xff\n"), Value: []byte("\"\xff\"")}, "region.positions.%FF%0A", `"kind":"put","region":"positions","keyBase64":"/wo=","base64":"Iv8i"`, false},
		{order.RegionOp{Op: order.RegionPut, Key: []byte("k")}, "region.positions.k", `"kind":"put","region":"positions","key":"k","base64":""`, false},
		{order.RegionOp{Op: order.RegionPut, Key: []byte("k"), Value: []byte("[1,\n2]")}, "region.positions.k", `"kind":"put","region":"positions","key":"k","base64":"WzEsCjJd"`, false},
		{order.RegionOp{Op: order.RegionPut, Key: []byte("k"), Value: []byte("1 ")}, "region.positions.k", `"kind":"put","region":"positions","key":"k","base64":"MSA="`, false},
		{order.RegionOp{Op: order.RegionPatch, Key: []byte("k"), Offset: 7, Value: []byte("12")}, "region.positions.k", `"kind":"patch","region":"positions","key":"k","offset":7,"base64":"MTI="`, true},
		{order.RegionOp{Op: order.RegionRemove, Key: []byte("k")}, "region.positions.k", `"kind":"remove","region":"positions","key":"k"`, false},
		{order.RegionOp{Op: order.RegionTake, Key: []byte("k")}, "region.positions.k", `"kind":"take","region":"positions","key":"k"`, false},
		{order.RegionOp{Op: order.RegionClear}, "region.positions.%", `"kind":"clear","region":"positions"`, true},
		{order.RegionOp{Op: order.RegionPut, Invoked: true, Key: []byte("k"), Value: []byte("1"), Reply: []byte("only for the caller")}, "region.positions.k", `"kind":"put","region":"positions","key":"k","value":1`, false},
		{order.RegionOp{Op: order.RegionKeep, Invoked: true, Key: []byte("k")}, "", "", false},
		{order.RegionOp{Op: order.RegionTick}, "", "", false},
		{order.RegionOp{Op: order.RegionDefine, Region: 1, Key: []byte("secret"), Value: make([]byte, 16)}, "", "", false},
		{order.RegionOp{Op: order.RegionPut, Region: 1, Key: []byte("k"), Value: []byte("1")}, "", "", false},
		{order.RegionOp{Op: order.RegionClear, Region: 1}, "", "", false},
	} {
		seq++
		e := change(t, seq, c.op)
		b.fill(&client.FollowBatch{Entries: []client.LogEntry{e}, Through: client.Position{Seq: seq}}, 2)
		clear(e.Bytes) // the follower uses it again
		if c.topic == "" {
			if len(b.messages) != 0 || b.through.Seq != seq {
				t.Errorf("%s of region %d: %s", c.op.Op, c.op.Region, b.messages[0].Payload)
			}
			continue
		}
		m := b.messages[0]
		want := `{"received":"2023-11-14T22:13:20.123456789Z",` + c.want + `,"epoch":3}`
		if string(m.Topic) != c.topic || string(m.Payload) != want || m.Partition != 2 || m.At != (fanout.Position{Seq: seq}) || m.Partial != c.partial || !json.Valid(m.Payload) {
			t.Errorf("message %s at %s (partial %v):\n%s\nwant %s\n%s", m.Topic, m.At, m.Partial, m.Payload, c.topic, want)
		}
		if err := topics.CheckTopic(m.Topic); err != nil {
			t.Error(err)
		}
		equal, key := c.op.Op.String(), "positions"
		f, err := topics.ParseFilter(RegionFields, []topics.Term{{Field: "kind", Equal: &equal}, {Field: "region", Equal: &key}})
		if err != nil || len(m.Fields) != len(RegionFields) || !f.Matches(m.Fields) || m.Fields[1].Set != (len(c.op.Key) > 0) {
			t.Errorf("fields %+v (%v)", m.Fields, err)
		}
	}
	if b.orders() != 0 {
		t.Error("changes of regions count as orders")
	}
	e := change(t, seq+1, order.RegionOp{Op: order.RegionPut, Key: []byte("k")})
	none := &batch{}
	if none.fill(&client.FollowBatch{Entries: []client.LogEntry{e}}, 0); len(none.messages) != 0 {
		t.Error("a gateway that streams no regions makes a message of one")
	}
}

// A batch has a message for each of its changes, at places of their own.
func TestRegionBatchMessages(t *testing.T) {
	b := ofRegions(fanout.DefaultRingBytes)
	var puts, keys []byte
	for _, k := range []string{"a", "b", "c"} {
		puts = order.AppendItem(puts, order.RegionPutAll, []byte(k), []byte("1"))
		keys = order.AppendItem(keys, order.RegionRemoveAll, []byte(k), nil)
	}
	for _, c := range []struct {
		op      order.RegionOp
		want    string
		partial bool
	}{
		{order.RegionOp{Op: order.RegionPutAll, Items: 3, Value: puts}, `"kind":"put","region":"positions","key":"b","value":1`, false},
		{order.RegionOp{Op: order.RegionPatchAll, Items: 3, Key: []byte("12"), Offset: 7, Value: keys, Reply: []byte{1, 0, 0, 0}}, `"kind":"patch","region":"positions","key":"b","offset":7,"base64":"MTI="`, true},
		{order.RegionOp{Op: order.RegionRemoveAll, Items: 3, Value: keys}, `"kind":"remove","region":"positions","key":"b"`, false},
		{order.RegionOp{Op: order.RegionRemoveAll, Region: 1, Items: 3, Value: keys}, "", false},
	} {
		e := change(t, 9, c.op)
		b.fill(&client.FollowBatch{Entries: []client.LogEntry{e}, Through: client.Position{Seq: 9}}, 2)
		if c.want == "" {
			if len(b.messages) > 0 {
				t.Errorf("%s of a region that is not streamed: %d messages", c.op.Op, len(b.messages))
			}
			continue
		}
		if len(b.messages) != 3 || len(b.received) != 3 {
			t.Fatalf("%s: %d messages, want 3", c.op.Op, len(b.messages))
		}
		for i, m := range b.messages {
			if m.At != (fanout.Position{Seq: 9, Index: uint32(i)}) || string(m.Topic) != "region.positions."+string(rune('a'+i)) || m.Partial != c.partial {
				t.Errorf("%s: message %d is %s at %s, partial %v", c.op.Op, i, m.Topic, m.At, m.Partial)
			}
		}
		if got := string(b.messages[1].Payload); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.op.Op, got, c.want)
		}
	}
}

// Keys of any length and bytes have topics of their own, and messages that fit their ring, with key and value or without.
func TestRegionKeysOfAnyLength(t *testing.T) {
	seen := map[string]string{}
	for _, c := range []struct {
		key, value []byte
		tokens     int
	}{
		{bytes.Repeat([]byte("a"), 192), nil, 3},
		{bytes.Repeat([]byte("a"), 193), nil, 4},
		{bytes.Repeat([]byte("."), 64), nil, 3},
		{bytes.Repeat([]byte("."), 65), nil, 4},
		{append(bytes.Repeat([]byte("a"), 300), 'x'), nil, 4},
		{append(bytes.Repeat([]byte("a"), 300), 'y'), nil, 4},
		{bytes.Repeat([]byte(`"`), order.MaxRegionPair), nil, 4},
		{bytes.Repeat([]byte{0}, order.MaxRegionPair), nil, 4},
		{[]byte("v"), bytes.Repeat([]byte{1}, order.MaxRegionPair-1), 3},
		{[]byte("w"), []byte(`"` + strings.Repeat("<", order.MaxRegionPair-3) + `"`), 3},
	} {
		e := change(t, 1, order.RegionOp{Op: order.RegionPut, Key: c.key, Value: c.value})
		for _, ring := range []int{1 << 10, 1 << 20, fanout.DefaultRingBytes} {
			b := ofRegions(ring)
			b.fill(&client.FollowBatch{Entries: []client.LogEntry{e}}, 0)
			m := &b.messages[0]
			name := fmt.Sprintf("key of %d bytes %.8q, value of %d, ring of %d", len(c.key), c.key, len(c.value), ring)
			if err := topics.CheckTopic(m.Topic); err != nil || strings.Count(string(m.Topic), ".")+1 != c.tokens {
				t.Errorf("%s: topic %s, want %d tokens: %v", name, m.Topic, c.tokens, err)
			}
			if other, same := seen[string(m.Topic)]; same && other != string(c.key) {
				t.Errorf("%s has the topic of another one: %s", name, m.Topic)
			}
			seen[string(m.Topic)] = string(c.key)
			var got struct {
				Key               *string
				Value             json.RawMessage
				KeyBase64, Base64 []byte
				Omitted           int
			}
			if err := json.Unmarshal(m.Payload, &got); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			whole := ring == fanout.DefaultRingBytes || ring == 1<<20 && len(c.key)+len(c.value) < 10_000
			key, value := got.KeyBase64, got.Base64
			if got.Key != nil {
				key = []byte(*got.Key)
			}
			if got.Value != nil {
				value = got.Value
			}
			if whole != (got.Omitted == 0) || whole && (!bytes.Equal(key, c.key) || !bytes.Equal(value, c.value)) || !whole && got.Omitted != len(c.key)+len(c.value) {
				t.Errorf("%s: %.200s", name, m.Payload)
			}
			if ring == 1<<10 {
				continue
			}
			fits(t, name, ring, m)
		}
	}
}

// fits publishes a message for clients of both subprotocols.
func fits(t *testing.T, name string, ring int, m *fanout.Message) {
	t.Helper()
	h, err := fanout.New(fanout.Config{Lineage: 1, Partitions: 1, RingBytes: ring, Encodings: []fanout.Encoding{longest{}, longest{}}})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := topics.ParsePattern("region.>")
	for i := range 2 {
		if _, err := h.Open(&reads{}, i).Subscribe(fanout.Subscription{Number: 1, Pattern: p}); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Publish(m); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// longest frames a message with as much as a subprotocol adds at most.
type longest struct{}

func (longest) Append(dst []byte, m *fanout.Message) ([]byte, int) {
	return append(append(append(dst, make([]byte, 160)...), m.Topic...), m.Payload...), 1
}

// Whatever bytes a key and a value have, the message is a valid one, and has them.
func FuzzRegionMessage(f *testing.F) {
	f.Add([]byte("ACC-1/IBM"), []byte(`{"qty": 100}`))
	f.Add([]byte{0, 0xff, '.'}, []byte{})
	f.Add(bytes.Repeat([]byte("\""), 200), []byte("\"\xe2\x80\xa8\""))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if len(key) == 0 || len(key)+len(value) > order.MaxRegionPair {
			t.Skip()
		}
		b := ofRegions(fanout.DefaultRingBytes)
		b.fill(&client.FollowBatch{Entries: []client.LogEntry{change(t, 1, order.RegionOp{Op: order.RegionPut, Key: key, Value: value})}}, 0)
		m := &b.messages[0]
		if err := topics.CheckTopic(m.Topic); err != nil || bytes.ContainsAny(m.Payload, "\r\n") {
			t.Errorf("%s %q: %v", m.Topic, m.Payload, err)
		}
		var got struct {
			Key               string
			Value             json.RawMessage
			KeyBase64, Base64 []byte
		}
		if err := json.Unmarshal(m.Payload, &got); err != nil || got.Key+string(got.KeyBase64) != string(key) || string(got.Value)+string(got.Base64) != string(value) {
			t.Errorf("%q %q: %q, %v", key, value, m.Payload, err)
		}
	})
}

// A filter on a key means the whole key, however long it is.
func TestRegionFilters(t *testing.T) {
	long := strings.Repeat("k", topics.MaxValue)
	match := func(key string, term topics.Term) bool {
		t.Helper()
		term.Field = "key"
		f, err := topics.ParseFilter(RegionFields, []topics.Term{term})
		if err != nil {
			t.Fatal(err)
		}
		b := ofRegions(fanout.DefaultRingBytes)
		b.fill(&client.FollowBatch{Entries: []client.LogEntry{change(t, 1, order.RegionOp{Op: order.RegionRemove, Key: []byte(key)})}}, 0)
		return f.Matches(b.messages[0].Fields)
	}
	prefix := "k"
	for key, want := range map[string]bool{long: true, long + "k": false, long + strings.Repeat("k", 1000): false} {
		if match(key, topics.Term{Equal: &long}) != want {
			t.Errorf("equal to %d bytes: a key of %d matches: %v", len(long), len(key), !want)
		}
		if !match(key, topics.Term{Prefix: &prefix}) {
			t.Errorf("a key of %d bytes has not its prefix", len(key))
		}
	}
}

func TestCheckRegions(t *testing.T) {
	for text, want := range map[string]string{"": "", "a,b_2": "", "*": "", "*,a": "* alone", "A": "a letter first", "a.b": "a letter first", ",": "a letter first"} {
		var list []string
		if text != "" {
			list = strings.Split(text, ",")
		}
		if err := CheckRegions(list); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Who is let in by permissions of the grid alone reads regions with Watch and Read, as there.
func TestPermissionsForRegions(t *testing.T) {
	file := files(t)
	rules := func(permissions string) string {
		return `{"rules": [{"subjects": [{"kind": "User", "name": "desk"}], "permissions": [` + permissions + `]}]}`
	}
	a, err := OpenAccess(Files{Rules: file("rules.json", rules(`"Watch"`))})
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{Subject: pkix.Name{CommonName: "desk"}}
	admit := func() (regions bool) {
		g, err := a.admit(&http.Request{}, cert)
		if err != nil || !a.keeps(g) {
			t.Fatal(g, err)
		}
		p, _ := topics.ParsePattern("region.positions.>")
		for _, allowed := range g.Topics {
			regions = regions || allowed.Covers(p)
		}
		return regions
	}
	if admit() {
		t.Error("with Watch alone a client reads regions")
	}
	g, err := a.admit(&http.Request{}, cert)
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan struct{}, 8)
	go a.rules.Watch(t.Context(), time.Millisecond, func() { changed <- struct{}{} })
	file("rules.json", rules(`"Watch", "Read"`))
	for end := time.After(20 * time.Second); a.keeps(g); {
		select {
		case <-changed:
		case <-end:
			t.Fatal("the change of the rules is not noticed")
		}
	}
	if !admit() {
		t.Error("with Watch and Read a client does not read regions")
	}
}
