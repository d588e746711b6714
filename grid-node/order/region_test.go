package order

import (
	"reflect"
	"testing"
)

func TestRegionOp(t *testing.T) {
	for _, o := range []RegionOp{
		{Op: RegionPatch, Region: 3, Offset: 7, Received: 9, Key: []byte("key"), Value: []byte("value"), Reply: []byte{}},
		{Op: RegionPut, Invoked: true, Region: 3, Received: 9, Key: []byte("key"), Value: []byte("value"), Reply: []byte("reply")},
		{Op: RegionKeep, Invoked: true, Key: []byte("key"), Value: []byte{}, Reply: []byte{}},
	} {
		if got := RegionOf(o.Append(nil)); !reflect.DeepEqual(got, o) {
			t.Errorf("read %+v, written %+v", got, o)
		}
	}
}

func TestRegionEntryRefused(t *testing.T) {
	put := RegionOp{Op: RegionPut, Key: []byte("k"), Value: []byte("v")}
	for name, c := range map[string]struct {
		field     string
		clientSeq uint64
		change    func(o *RegionOp)
		bytes     func(b []byte)
	}{
		"op 0":                    {field: "op", clientSeq: 1, change: func(o *RegionOp) { o.Op = 0 }},
		"op 13":                   {field: "op", clientSeq: 1, change: func(o *RegionOp) { o.Op = 13 }},
		"patch of a function":     {field: "invoked", clientSeq: 1, change: func(o *RegionOp) { o.Op, o.Invoked = RegionPatch, true }},
		"keep of no function":     {field: "invoked", clientSeq: 1, change: func(o *RegionOp) { *o = RegionOp{Op: RegionKeep, Key: o.Key} }},
		"invoked is 2":            {field: "invoked", clientSeq: 1, bytes: func(b []byte) { b[1] = 2 }},
		"reply of no function":    {field: "reply", clientSeq: 1, change: func(o *RegionOp) { o.Reply = []byte("r") }},
		"reply of 4097 bytes":     {field: "reply", clientSeq: 1, change: func(o *RegionOp) { o.Invoked, o.Reply = true, make([]byte, MaxReply+1) }},
		"reply beyond the value":  {field: "size", clientSeq: 1, bytes: func(b []byte) { b[1], b[26] = 1, 99 }},
		"put without a clientSeq": {field: "clientSeq", change: func(*RegionOp) {}},
		"tick with a clientSeq":   {field: "clientSeq", clientSeq: 1, change: func(o *RegionOp) { *o = RegionOp{Op: RegionTick} }},
		"region 64":               {field: "region", clientSeq: 1, change: func(o *RegionOp) { o.Region = 64 }},
		"before 1970":             {field: "expireNs", clientSeq: 1, change: func(o *RegionOp) { o.ExpireNs = -1 }},
		"take that expires":       {field: "expireNs", clientSeq: 1, change: func(o *RegionOp) { *o = RegionOp{Op: RegionTake, Key: o.Key, ExpireNs: 1} }},
		"put with an offset":      {field: "offset", clientSeq: 1, change: func(o *RegionOp) { o.Offset = 1 }},
		"put without a key":       {field: "key", clientSeq: 1, change: func(o *RegionOp) { o.Key = nil }},
		"clear of a key":          {field: "key", clientSeq: 1, change: func(o *RegionOp) { *o = RegionOp{Op: RegionClear, Key: o.Key} }},
		"remove with a value":     {field: "value", clientSeq: 1, change: func(o *RegionOp) { o.Op = RegionRemove }},
		"config of 1 byte":        {field: "value", change: func(o *RegionOp) { *o = RegionOp{Op: RegionConfig, Value: o.Value} }},
		"name with a capital":     {field: "key", change: func(o *RegionOp) { *o = RegionOp{Op: RegionDefine, Key: []byte("Positions"), Value: make([]byte, 16)} }},
		"name that is a number":   {field: "key", change: func(o *RegionOp) { *o = RegionOp{Op: RegionDefine, Key: []byte("1a"), Value: make([]byte, 16)} }},
		"key beyond the payload":  {field: "size", clientSeq: 1, bytes: func(b []byte) { b[24] = 99 }},
		"items of a put":          {field: "items", clientSeq: 1, bytes: func(b []byte) { b[31] = 1 }},
	} {
		o := put
		if c.change != nil {
			c.change(&o)
		}
		payload := o.Append(nil)
		if c.bytes != nil {
			c.bytes(payload)
		}
		e := Entry{Kind: KindRegion, Seq: 3, ClientSeq: c.clientSeq, Size: uint32(HeaderSize + len(payload))}
		b := make([]byte, HeaderSize)
		e.Put(b)
		_, err := DecodeEntry(append(b, payload...), &e)
		if bad, ok := err.(*EntryError); !ok || bad.Field != c.field {
			t.Errorf("%s: error is %v, want one of field %s", name, err, c.field)
		}
	}
}
