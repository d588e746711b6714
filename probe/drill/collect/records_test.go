package collect

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// audited are entries of orders and the records that an audit trail has of them.
func audited(n int) (entries []client.LogEntry, records []client.Record) {
	hash := make([]byte, sha256.Size)
	for seq := uint64(1); seq <= uint64(n); seq++ {
		message := bytes.Repeat([]byte{'x'}, int(10+seq))
		e := order.Entry{Kind: order.KindOrder, Seq: seq, TimeNs: int64(1000 * seq), Size: uint32(order.HeaderSize + len(message))}
		b := make([]byte, order.HeaderSize, e.Size)
		e.Put(b)
		entries = append(entries, client.LogEntry{Entry: e, Bytes: append(b, message...)})
		r := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, seq), 1000*seq)
		sum := sha256.Sum256(append(append(append([]byte{}, hash...), r...), message...))
		hash = sum[:]
		records = append(records, client.Record{Entry: seq, Function: "audit", Bytes: append(r, hash...)})
	}
	return entries, records
}

// links are how the records hang together that a copy holds from the entry on.
func links(entries []client.LogEntry, records []client.Record, from int) (list []history.Link) {
	r := recordReader{audits: map[string]bool{"audit": true}, trails: map[string]*trail{}, names: map[string]string{}}
	for _, rec := range records[from:] {
		_ = r.record(rec)
	}
	for i := range entries[from:] {
		r.trails["audit"].entry(&r.x, &entries[from+i])
	}
	for _, rec := range r.x.Records {
		list = append(list, rec.Link)
	}
	return list
}

func TestTrail(t *testing.T) {
	const l, a, b, none = history.Linked, history.Anchor, history.Broken, history.NoLink
	for name, c := range map[string]struct {
		from   int
		change func(entries []client.LogEntry, records []client.Record)
		want   []history.Link
	}{
		"whole":              {0, func([]client.LogEntry, []client.Record) {}, []history.Link{l, l, l, l, l}},
		"from the third":     {2, func([]client.LogEntry, []client.Record) {}, []history.Link{a, l, l}},
		"another message":    {0, func(e []client.LogEntry, _ []client.Record) { e[2].Bytes[order.HeaderSize] ^= 1 }, []history.Link{l, l, b, l, l}},
		"another hash":       {0, func(_ []client.LogEntry, r []client.Record) { r[2].Bytes[20] ^= 1 }, []history.Link{l, l, b, b, l}},
		"another entry":      {0, func(_ []client.LogEntry, r []client.Record) { r[2].Bytes[0] ^= 1 }, []history.Link{l, l, b, l, l}},
		"another time":       {0, func(_ []client.LogEntry, r []client.Record) { r[2].Bytes[8] ^= 1 }, []history.Link{l, l, b, l, l}},
		"too short":          {0, func(_ []client.LogEntry, r []client.Record) { r[2].Bytes = r[2].Bytes[:40] }, []history.Link{l, l, b, a, l}},
		"a call that failed": {0, func(_ []client.LogEntry, r []client.Record) { r[2].Fault, r[2].Bytes = "trap", nil }, []history.Link{l, l, none, a, l}},
		"begun anew": {0, func(e []client.LogEntry, r []client.Record) {
			again := make([]byte, sha256.Size)
			for i := 3; i < 5; i++ {
				sum := sha256.Sum256(append(append(again, r[i].Bytes[:16]...), order.Message(e[i].Bytes)...))
				again = sum[:]
				copy(r[i].Bytes[16:], again)
			}
		}, []history.Link{l, l, l, a, l}},
		"begun anew behind a call that failed": {0, func(e []client.LogEntry, r []client.Record) {
			r[2].Fault, r[2].Bytes = "trap", nil
			sum := sha256.Sum256(append(append(make([]byte, sha256.Size), r[3].Bytes[:16]...), order.Message(e[3].Bytes)...))
			copy(r[3].Bytes[16:], sum[:])
		}, []history.Link{l, l, none, a, b}},
		"an entry of no kind": {0, func(e []client.LogEntry, _ []client.Record) { e[2].Kind = order.KindCursor }, []history.Link{l, l, b, l, l}},
	} {
		entries, records := audited(5)
		c.change(entries, records)
		if got := links(entries, records, c.from); string(asBytes(got)) != string(asBytes(c.want)) {
			t.Errorf("%s: links %v, want %v", name, got, c.want)
		}
	}
}

func asBytes(list []history.Link) (b []byte) {
	for _, l := range list {
		b = append(b, byte(l))
	}
	return b
}

// TestChanges: a log tells from which entry on it has which functions in force.
func TestChanges(t *testing.T) {
	entry := func(seq uint64, kind order.Kind, c order.FunctionsChange) *client.LogEntry {
		payload := c.Append(nil)
		e := order.Entry{Kind: kind, Seq: seq, Size: uint32(order.HeaderSize + len(payload))}
		b := make([]byte, order.HeaderSize, e.Size)
		e.Put(b)
		return &client.LogEntry{Entry: e, Bytes: append(b, payload...)}
	}
	var r recordReader
	audit := order.Function{Name: "audit", SHA256: [32]byte{1}, Fuel: 1, Pages: 1}
	for _, e := range []*client.LogEntry{
		entry(3, order.KindFunctions, order.FunctionsChange{Op: order.FunctionsBegin}), // of an offer that was not read
		entry(4, order.KindFunctions, order.FunctionsChange{Op: order.FunctionsOffer, Offer: []order.Function{audit}}),
		entry(5, order.KindNoop, order.FunctionsChange{}),
		entry(6, order.KindFunctions, order.FunctionsChange{Op: order.FunctionsBegin}),
		entry(7, order.KindFunctions, order.FunctionsChange{Op: order.FunctionsOffer}),
		entry(8, order.KindFunctions, order.FunctionsChange{Op: order.FunctionsBegin}),
	} {
		if err := r.change(e); err != nil {
			t.Fatal(err)
		}
	}
	want := []history.Begun{{Entry: 3}, {Entry: 6, Post: []history.PostFunction{{Name: "audit", SHA256: "01" + strings.Repeat("00", 31)}}}, {Entry: 8}}
	if !reflect.DeepEqual(r.x.Begun, want) {
		t.Errorf("%+v, want %+v", r.x.Begun, want)
	}
	if err := r.change(entry(9, order.KindFunctions, order.FunctionsChange{Op: 9})); err == nil {
		t.Error("an entry that no primary makes is passed over")
	}
}
