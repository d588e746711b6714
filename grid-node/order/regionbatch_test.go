package order

import (
	"reflect"
	"testing"
)

// batch has items of these keys, and of puts their own bytes as values.
func batch(op RegionKind, keys ...string) RegionOp {
	o := RegionOp{Op: op, Region: 3, Received: 9, Items: uint32(len(keys))}
	for _, k := range keys {
		o.Value = AppendItem(o.Value, op, []byte(k), []byte(k))
	}
	return o
}

func TestRegionBatch(t *testing.T) {
	puts, patches, removes := batch(RegionPutAll, "a", "bb"), batch(RegionPatchAll, "a", "bb"), batch(RegionRemoveAll, "a", "bb")
	puts.ExpireNs = 5
	patches.Offset, patches.Key, patches.Reply = 7, []byte("patch"), AppendSkipped(nil, 2)
	for _, c := range []struct {
		o       RegionOp
		skipped uint32
		want    []RegionOp
	}{
		{puts, 0, []RegionOp{{Op: RegionPut, Region: 3, ExpireNs: 5, Key: []byte("a"), Value: []byte("a")}, {Op: RegionPut, Region: 3, ExpireNs: 5, Key: []byte("bb"), Value: []byte("bb")}}},
		{patches, 2, []RegionOp{{Op: RegionPatch, Region: 3, Offset: 7, Key: []byte("a"), Value: []byte("patch")}, {Op: RegionPatch, Region: 3, Offset: 7, Key: []byte("bb"), Value: []byte("patch")}}},
		{removes, 0, []RegionOp{{Op: RegionRemove, Region: 3, Key: []byte("a")}, {Op: RegionRemove, Region: 3, Key: []byte("bb")}}},
		{RegionOp{Op: RegionClear}, 0, []RegionOp{{Op: RegionClear, Key: []byte{}, Value: []byte{}, Reply: []byte{}}}},
	} {
		payload := c.o.Append(nil)
		e := Entry{Kind: KindRegion, Seq: 3, ClientSeq: 1, Size: uint32(HeaderSize + len(payload))}
		b := make([]byte, HeaderSize)
		e.Put(b)
		if _, err := DecodeEntry(append(b, payload...), &e); err != nil {
			t.Errorf("%s: %v", c.o.Op, err)
		}
		back := RegionOf(payload)
		var got []RegionOp
		back.Each(func(one *RegionOp) { got = append(got, *one) })
		if !reflect.DeepEqual(got, c.want) || back.Skipped() != c.skipped || back.Items != c.o.Items {
			t.Errorf("%s: read %+v, %d skipped; want %+v, %d", c.o.Op, got, back.Skipped(), c.want, c.skipped)
		}
	}
}

func TestRegionBatchRefused(t *testing.T) {
	many := batch(RegionRemoveAll)
	for i := range MaxRegionItems + 1 {
		many.Value = AppendItem(many.Value, RegionRemoveAll, []byte{byte(i >> 8), byte(i)}, nil)
	}
	many.Items = MaxRegionItems + 1
	for name, c := range map[string]struct {
		field  string
		op     RegionKind
		change func(o *RegionOp)
		bytes  func(b []byte)
	}{
		"no items":                {field: "items", op: RegionPutAll, change: func(o *RegionOp) { o.Items, o.Value = 0, nil }},
		"513 items":               {field: "items", op: RegionRemoveAll, change: func(o *RegionOp) { *o = many }},
		"fewer than it says":      {field: "items", op: RegionPutAll, change: func(o *RegionOp) { o.Items = 4 }},
		"more than it says":       {field: "items", op: RegionPutAll, change: func(o *RegionOp) { o.Items = 2 }},
		"a key of no bytes":       {field: "item", op: RegionRemoveAll, bytes: func(b []byte) { b[32] = 0 }},
		"a key beyond the items":  {field: "item", op: RegionRemoveAll, bytes: func(b []byte) { b[39] = 200 }},
		"a value beyond them":     {field: "item", op: RegionPutAll, bytes: func(b []byte) { b[46] = 200 }},
		"one byte of an item":     {field: "item", op: RegionPutAll, change: func(o *RegionOp) { o.Value = append(o.Value, 1) }},
		"keys that fall":          {field: "item", op: RegionRemoveAll, change: func(o *RegionOp) { *o = batch(RegionRemoveAll, "b", "a") }},
		"a key twice":             {field: "item", op: RegionPutAll, change: func(o *RegionOp) { *o = batch(RegionPutAll, "a", "a") }},
		"a patch of removes":      {field: "key", op: RegionRemoveAll, change: func(o *RegionOp) { o.Key = []byte("x") }},
		"an offset of puts":       {field: "offset", op: RegionPutAll, change: func(o *RegionOp) { o.Offset = 1 }},
		"an offset too large":     {field: "offset", op: RegionPatchAll, change: func(o *RegionOp) { o.Offset = MaxRegionPair + 1 }},
		"removes that expire":     {field: "expireNs", op: RegionRemoveAll, change: func(o *RegionOp) { o.ExpireNs = 1 }},
		"of a function":           {field: "invoked", op: RegionPutAll, change: func(o *RegionOp) { o.Invoked = true }},
		"a reply of puts":         {field: "reply", op: RegionPutAll, change: func(o *RegionOp) { o.Reply = AppendSkipped(nil, 1) }},
		"a reply of 3 bytes":      {field: "reply", op: RegionPatchAll, change: func(o *RegionOp) { o.Reply = []byte{1, 0, 0} }},
		"a reply of none skipped": {field: "reply", op: RegionPatchAll, change: func(o *RegionOp) { o.Reply = make([]byte, 4) }},
		"a reply of 510 skipped":  {field: "reply", op: RegionPatchAll, change: func(o *RegionOp) { o.Reply = AppendSkipped(nil, 510) }},
		"region 64":               {field: "region", op: RegionPutAll, change: func(o *RegionOp) { o.Region = MaxRegions }},
		"too long":                {field: "value", op: RegionPatchAll, change: func(o *RegionOp) { o.Key = make([]byte, MaxRegionBatch-len(o.Value)+1) }},
		"of no session":           {field: "clientSeq", op: RegionPutAll},
	} {
		o := batch(c.op, "a", "bb", "c")
		if c.change != nil {
			c.change(&o)
		}
		payload := o.Append(nil)
		if c.bytes != nil {
			c.bytes(payload)
		}
		e := Entry{Kind: KindRegion, Seq: 3, ClientSeq: 1, Size: uint32(HeaderSize + len(payload))}
		if c.field == "clientSeq" {
			e.ClientSeq = 0
		}
		b := make([]byte, HeaderSize)
		e.Put(b)
		_, err := DecodeEntry(append(b, payload...), &e)
		if bad, ok := err.(*EntryError); !ok || bad.Field != c.field {
			t.Errorf("%s: error is %v, want one of field %s", name, err, c.field)
		}
	}
}
