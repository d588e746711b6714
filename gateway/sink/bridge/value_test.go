package bridge

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

func example() []byte {
	records := []wire.Record{{Entry: 7, Function: "count", Bytes: []byte("seven")}, {Entry: 9, Function: "audit", Fault: 2}}
	b := appendHead(nil, client.Position{Seq: 9, Hash: 0xabc, Lineage: 3}, 42, len(records))
	for i := range records {
		b = wire.AppendRecord(b, &records[i])
	}
	return b
}

func TestValue(t *testing.T) {
	v, err := Parse(example())
	want := Value{Through: client.Position{Seq: 9, Hash: 0xabc, Lineage: 3}, writer: 42,
		Records: []wire.Record{{Entry: 7, Function: "count", Bytes: []byte("seven")}, {Entry: 9, Function: "audit", Fault: 2, Bytes: []byte{}}}}
	if err != nil || !reflect.DeepEqual(v, want) {
		t.Errorf("%+v (%v), want %+v", v, err, want)
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "cut": example()[:60], "another version": append([]byte{2}, example()[1:]...), "a record less": example()[:headSize+32],
	} {
		if v, err := Parse(b); err == nil {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// FuzzParse: what is no value is refused, and what is one has all that its bytes say.
func FuzzParse(f *testing.F) {
	f.Add(example())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Parse(b)
		if err != nil {
			return
		}
		again := appendHead(nil, v.Through, v.writer, len(v.Records))
		for i := range v.Records {
			again = wire.AppendRecord(again, &v.Records[i])
		}
		if len(again) != len(b) || !bytes.Equal(again[:headSize], b[:headSize]) {
			t.Errorf("%x is read as %+v", b, v)
		}
	})
}
