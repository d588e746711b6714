package order

// RegionKind is what an entry of kind region does.
type RegionKind uint8

// Operations of kind region. Those from RegionPut on are of a client's session.
const (
	RegionConfig RegionKind = 1 // the bytes that all regions of the partition may take, and the seed of their trees: value u64, u64
	RegionDefine RegionKind = 2 // a region, or another bound of one: key is the name, value u64 bytes, u64 nanoseconds that a value lives by itself, then the source of the definition as limits.Source writes it, if it has one
	RegionTick   RegionKind = 3 // what has expired by the time of the entry goes
	RegionPut    RegionKind = 4
	RegionPatch  RegionKind = 5 // Value is written over the bytes from Offset on
	RegionRemove RegionKind = 6
	RegionTake   RegionKind = 7 // removes, and keeps the value as the session's reply
	RegionClear  RegionKind = 8
	RegionKeep   RegionKind = 9 // a function left the value as it is

	// Batches: see regionbatch.go.

	RegionPutAll    RegionKind = 10
	RegionPatchAll  RegionKind = 11
	RegionRemoveAll RegionKind = 12
)

var regionKinds = [...]string{RegionConfig: "config", RegionDefine: "define", RegionTick: "tick", RegionPut: "put", RegionPatch: "patch",
	RegionRemove: "remove", RegionTake: "take", RegionClear: "clear", RegionKeep: "keep",
	RegionPutAll: "put_all", RegionPatchAll: "patch_all", RegionRemoveAll: "remove_all"}

// String returns the word that tools print.
func (k RegionKind) String() string {
	if int(k) < len(regionKinds) && regionKinds[k] != "" {
		return regionKinds[k]
	}
	return "unknown"
}

// Bounds of regions.
const (
	// RegionOpSize is the size of the fixed part of the payload of an entry of kind region.
	// Key and value follow.
	RegionOpSize = 32
	// MaxRegionPair is the maximum size of a key and its value together, in bytes.
	MaxRegionPair = MaxPayload - RegionOpSize
	// MaxRegions is how many regions a partition may have.
	MaxRegions = 64
	// MaxRegionName is the maximum length of a region's name, in bytes: lowercase letters,
	// digits and underscores, and a letter first, so that SQL needs no quotes.
	MaxRegionName = 48
)

// IsRegionName reports whether a region may have this name.
func IsRegionName[T string | []byte](name T) bool {
	for i := range len(name) {
		c := name[i]
		if letter := c >= 'a' && c <= 'z'; !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return len(name) > 0 && len(name) <= MaxRegionName
}

// RegionOp is the payload of an entry of kind region.
//
//	off size field            off size field
//	 0  u8   op               16  u64  received
//	 1  u8   1 of a function  24  u16  bytes of the key
//	 2  u16  region           26  u16  bytes of the reply
//	 4  u32  offset           28  u32  items of a batch
//	 8  i64  expireNs         32  key, value, reply
type RegionOp struct {
	Op       RegionKind
	Invoked  bool   // a put, remove or keep that a function of kind Compute decided: it has a reply
	Region   uint16 // as RegionDefine numbers them, from 0
	Offset   uint32 // of RegionPatch and RegionPatchAll
	ExpireNs int64  // of RegionPut and RegionPutAll: unix nanoseconds by which the value is gone, 0: never
	Received uint64 // the client has the answers to the session's numbers up to this one
	Items    uint32 // of a batch
	Key      []byte // of RegionPatchAll the bytes that are written over each value
	Value    []byte // of a batch its items
	Reply    []byte // with Invoked: what the session is answered, at most MaxReply bytes; of a batch see Skipped
}

// MaxRegionSource is the maximum size of the source of a definition, in bytes.
const MaxRegionSource = 256

// MaxReply is the maximum size of the reply of a function, in bytes.
const MaxReply = 4096

// Append appends the payload.
func (o *RegionOp) Append(dst []byte) []byte {
	invoked := byte(0)
	if o.Invoked {
		invoked = 1
	}
	dst = append(dst, byte(o.Op), invoked)
	dst = le.AppendUint16(dst, o.Region)
	dst = le.AppendUint32(dst, o.Offset)
	dst = le.AppendUint64(dst, uint64(o.ExpireNs))
	dst = le.AppendUint64(dst, o.Received)
	dst = le.AppendUint16(le.AppendUint16(dst, uint16(len(o.Key))), uint16(len(o.Reply)))
	dst = le.AppendUint32(dst, o.Items)
	return append(append(append(dst, o.Key...), o.Value...), o.Reply...)
}

// RegionOf reads the payload of an entry of kind region that DecodeEntry accepted. Key,
// value and reply are parts of it.
func RegionOf(payload []byte) RegionOp {
	_ = payload[RegionOpSize-1]
	n, end := RegionOpSize+int(le.Uint16(payload[24:])), len(payload)-int(le.Uint16(payload[26:]))
	return RegionOp{
		Op: RegionKind(payload[0]), Invoked: payload[1] != 0, Region: le.Uint16(payload[2:]), Offset: le.Uint32(payload[4:]),
		ExpireNs: int64(le.Uint64(payload[8:])), Received: le.Uint64(payload[16:]), Items: le.Uint32(payload[28:]),
		Key: payload[RegionOpSize:n:n], Value: payload[n:end:end], Reply: payload[end:],
	}
}

// checkRegion checks the payload of an entry of kind region: what does not depend on the
// state.
func (e *Entry) checkRegion(b []byte) error {
	fail := func(field string, v uint64, allowed string) error {
		return &EntryError{Seq: e.Seq, Field: field, Value: v, Allowed: allowed}
	}
	if len(b) < RegionOpSize || RegionOpSize+int(le.Uint16(b[24:]))+int(le.Uint16(b[26:])) > len(b) {
		return fail("size", uint64(e.Size), "96 and a key, a value and a reply for a region entry")
	}
	o := RegionOf(b)
	fixed := o.Op == RegionConfig && len(o.Value) == 16 || o.Op == RegionDefine && len(o.Value) >= 16 && len(o.Value) <= 16+MaxRegionSource
	switch session := o.Op >= RegionPut; {
	case o.Op < RegionConfig || o.Op > RegionRemoveAll:
		return fail("op", uint64(o.Op), "1 config, 2 define, 3 tick, 4 put, 5 patch, 6 remove, 7 take, 8 clear, 9 keep, 10 put_all, 11 patch_all, 12 remove_all")
	case o.Op.Batch():
		return e.checkBatch(b, &o)
	case b[1] > 1 || o.Invoked && o.Op != RegionPut && o.Op != RegionRemove && o.Op != RegionKeep || o.Op == RegionKeep && !o.Invoked:
		return fail("invoked", uint64(b[1]), "0, or 1 of a put, remove or keep")
	case len(o.Reply) > MaxReply || len(o.Reply) > 0 && !o.Invoked:
		return fail("reply", uint64(len(o.Reply)), "at most 4096 bytes of a function's change, none otherwise")
	case o.Items != 0:
		return fail("items", uint64(o.Items), "0 but of a batch")
	case session != (e.ClientSeq != 0):
		return fail("clientSeq", e.ClientSeq, "1 or more from put on, 0 for what the partition does by itself")
	case o.Region >= MaxRegions:
		return fail("region", uint64(o.Region), "0..63")
	case o.ExpireNs < 0 || o.ExpireNs != 0 && o.Op != RegionPut:
		return fail("expireNs", uint64(o.ExpireNs), "0 or more, of a put")
	case o.Offset != 0 && o.Op != RegionPatch || int64(o.Offset) > MaxRegionPair:
		return fail("offset", uint64(o.Offset), "0..65440, of a patch")
	case (len(o.Key) > 0) != (session && o.Op != RegionClear || o.Op == RegionDefine):
		return fail("key", uint64(len(o.Key)), "one byte or more of a put, patch, remove, take or define, none otherwise")
	case !fixed && (len(o.Value) > 0 || o.Op == RegionConfig || o.Op == RegionDefine) && o.Op != RegionPut && o.Op != RegionPatch:
		return fail("value", uint64(len(o.Value)), "that of a put or patch, 16 bytes of a config, 16..272 of a define, none otherwise")
	case o.Op == RegionDefine && !IsRegionName(o.Key):
		return fail("key", uint64(len(o.Key)), "a name of 1 to 48 lowercase letters, digits and underscores, a letter first")
	}
	return nil
}
