package order

import "bytes"

// Batches of regions: puts, patches or removes of several keys in one entry, which are applied
// together. A primary leaves out of a patch or remove the keys that have no value: each item of
// an entry changes its key.
//
// Items stand one behind the other, by rising keys, each once: of puts u16 bytes of the key,
// u16 bytes of the value, key, value; of patches and removes u16 bytes of the key, key.

const (
	// MaxRegionItems is how many items a batch may have.
	MaxRegionItems = 512
	// MaxRegionBatch is the maximum size of the items, with what a patch writes, in bytes.
	MaxRegionBatch = MaxRegionPair - skippedSize

	skippedSize = 4 // of the reply
)

// Batch reports whether an operation is one of several keys.
func (k RegionKind) Batch() bool { return k >= RegionPutAll && k <= RegionRemoveAll }

// One is the operation of an item: put, patch or remove; of what is no batch itself.
func (k RegionKind) One() RegionKind {
	if k.Batch() {
		return k - RegionPutAll + RegionPut
	}
	return k
}

// Skipped returns how many keys the primary left out of a batch, which had no value.
func (o *RegionOp) Skipped() uint32 {
	if len(o.Reply) != skippedSize {
		return 0
	}
	return le.Uint32(o.Reply)
}

// SkippedIn returns what the reply of a batch says.
func SkippedIn(reply []byte) uint32 { return (&RegionOp{Reply: reply}).Skipped() }

// Each calls f for the changes of an operation by their keys: for itself if it is no batch.
// What it passes is valid during the call.
func (o *RegionOp) Each(f func(one *RegionOp)) {
	if !o.Op.Batch() {
		f(o)
		return
	}
	var one RegionOp
	for rest := o.Value; len(rest) > 0; {
		rest = o.Next(&one, rest)
		f(&one)
	}
}

// Next makes one the change of the first item of b, which is the rest of Value, and returns
// those behind it. The operation has to be a batch that was checked.
func (o *RegionOp) Next(one *RegionOp, b []byte) (rest []byte) {
	*one = RegionOp{Op: o.Op.One(), Region: o.Region, Offset: o.Offset, ExpireNs: o.ExpireNs}
	one.Key, one.Value, rest = o.item(b)
	return rest
}

// item splits the first item off, whose bounds are checked.
func (o *RegionOp) item(b []byte) (key, value, rest []byte) {
	n, at := int(le.Uint16(b)), 2
	switch o.Op {
	case RegionPutAll:
		at = 4
		end := at + n + int(le.Uint16(b[2:]))
		return b[at : at+n : at+n], b[at+n : end : end], b[end:]
	case RegionPatchAll:
		value = o.Key
	}
	return b[at : at+n : at+n], value, b[at+n:]
}

// AppendItem appends an item to those of a batch.
func AppendItem(dst []byte, k RegionKind, key, value []byte) []byte {
	dst = le.AppendUint16(dst, uint16(len(key)))
	if k != RegionPutAll {
		return append(dst, key...)
	}
	dst = le.AppendUint16(dst, uint16(len(value)))
	return append(append(dst, key...), value...)
}

// AppendSkipped appends the reply of a batch, which it has if keys were left out.
func AppendSkipped(dst []byte, n uint32) []byte {
	if n == 0 {
		return dst
	}
	return le.AppendUint32(dst, n)
}

// checkBatch checks the payload of a batch, whose lengths fit it.
func (e *Entry) checkBatch(b []byte, o *RegionOp) error {
	fail := func(field string, v uint64, allowed string) error {
		return &EntryError{Seq: e.Seq, Field: field, Value: v, Allowed: allowed}
	}
	switch {
	case b[1] != 0:
		return fail("invoked", uint64(b[1]), "0 of a batch")
	case e.ClientSeq == 0:
		return fail("clientSeq", 0, "1 or more of a batch")
	case o.Region >= MaxRegions:
		return fail("region", uint64(o.Region), "0..63")
	case o.ExpireNs < 0 || o.ExpireNs != 0 && o.Op != RegionPutAll:
		return fail("expireNs", uint64(o.ExpireNs), "0 or more, of puts")
	case int64(o.Offset) > MaxRegionPair || o.Offset != 0 && o.Op != RegionPatchAll:
		return fail("offset", uint64(o.Offset), "0..65440, of patches")
	case len(o.Key) > 0 && o.Op != RegionPatchAll:
		return fail("key", uint64(len(o.Key)), "none of a batch, but what patches write")
	case len(o.Reply) != 0 && (len(o.Reply) != skippedSize || o.Op == RegionPutAll || o.Skipped() == 0 || uint64(o.Skipped())+uint64(o.Items) > MaxRegionItems):
		return fail("reply", uint64(len(o.Reply)), "4 bytes: how many of the 512 keys of patches or removes were left out, none without")
	case len(o.Key)+len(o.Value) > MaxRegionBatch:
		return fail("value", uint64(len(o.Value)), "with what patches write at most 65436 bytes")
	}
	field, v, allowed := o.checkItems()
	if field != "" {
		return fail(field, v, allowed)
	}
	return nil
}

// checkItems returns what is wrong of the items.
func (o *RegionOp) checkItems() (field string, v uint64, allowed string) {
	if o.Items == 0 || o.Items > MaxRegionItems {
		return "items", uint64(o.Items), "1..512 of a batch"
	}
	fixed, n := 2, uint32(0)
	if o.Op == RegionPutAll {
		fixed = 4
	}
	var last []byte
	for rest := o.Value; len(rest) > 0; n++ {
		size := 0
		if len(rest) >= fixed {
			size = fixed + int(le.Uint16(rest))
		}
		if size > 0 && o.Op == RegionPutAll {
			size += int(le.Uint16(rest[2:]))
		}
		if size == 0 || size > len(rest) || le.Uint16(rest) == 0 {
			return "item", uint64(n), "a key of 1 byte or more, no longer than the bytes that follow, and of puts a value"
		}
		var key []byte
		if key, _, rest = o.item(rest); bytes.Compare(last, key) >= 0 {
			return "item", uint64(n), "a key behind the one before it"
		}
		last = key
	}
	if n != o.Items {
		return "items", uint64(o.Items), "as many as follow"
	}
	return "", 0, ""
}
