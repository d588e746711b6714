package wire

import "bytes"

// Batches of regions: several keys of one partition are changed by one entry, docs/regions.md.
const (
	TypeRegionBatch   Type = 0x3e
	TypeRegionBatched Type = 0x3f
)

var regionBatchFrames = []Frame{
	{Type: TypeRegionBatch, Name: "RegionBatch", From: FromClient, ToReplica: true, Needs: MayWrite, Feature: FeatureRegionBatch, codec: codecOn(DecodeRegionBatch, AppendRegionBatch),
		Example: &RegionBatch{Epoch: 3, Slot: 4, Generation: 1, ClientSeq: 2, Received: 1, Op: RegionPatch, Count: 2, Offset: 7, Region: []byte("positions"), Patch: []byte("12"),
			Items: AppendRegionItem(AppendRegionItem(nil, RegionPatch, []byte("ACC-1/IBM"), nil), RegionPatch, []byte("ACC-2/IBM"), nil)}},
	{Type: TypeRegionBatched, Name: "RegionBatched", From: FromNode, codec: codecOn(DecodeRegionBatched, AppendRegionBatched),
		Example: &RegionBatched{Ack: Ack{ClientSeq: 2, Seq: 18, Epoch: 3, Slot: 4, Copies: 2, Hash: 0x1122334455667788, Lineage: 1}, Skipped: 1}},
}

func (m *RegionBatch) request() (uint64, uint32) { return m.ClientSeq, m.Slot }

const (
	// MaxRegionItems is how many items a RegionBatch may have.
	MaxRegionItems = 512
	// MaxRegionBatch is the maximum size of its items and its patch together, in bytes: one entry
	// of the log has them, and a reply of 4 bytes.
	MaxRegionBatch = MaxRegionPair - 4
)

// RegionBatch changes several keys of a region in one partition, all or none, in the session of
// Submit: its ClientSeq is one of the same sequence, and a retry is answered as the first copy
// was. A key that has no value is left out of a patch or a remove.
type RegionBatch struct {
	Epoch      uint64
	Slot       uint32
	Generation uint32
	ClientSeq  uint64 // from 1, contiguous in the session
	Received   uint64 // the client has the answers to all up to this one
	Op         uint8  // RegionPut, RegionPatch or RegionRemove, of all items
	Count      uint16 // of items, 1..MaxRegionItems
	Offset     uint32 // of patches
	LifeNs     int64  // of puts, as that of RegionApply
	Region     []byte // 1..48 bytes
	Patch      []byte // what a patch writes over each value from Offset on
	Items      []byte // AppendRegionItem
}

// AppendRegionItem appends an item of a RegionBatch: the length of the key, of a put that of the
// value, the key, the value. Items have rising keys, each once. A key or value over MaxRegionPair
// is the caller's bug; it is cut.
func AppendRegionItem(dst []byte, op uint8, key, value []byte) []byte {
	key, value = clip(key, MaxRegionPair), clip(value, MaxRegionPair)
	dst = le.AppendUint16(dst, uint16(len(key)))
	if op != RegionPut {
		return append(dst, key...)
	}
	dst = le.AppendUint16(dst, uint16(len(value)))
	return append(append(dst, key...), value...)
}

// regionItemFixed is the size of an item without its key and value.
func regionItemFixed(op uint8) int {
	if op == RegionPut {
		return 4
	}
	return 2
}

// RegionItemSize is how many bytes AppendRegionItem appends.
func RegionItemSize(op uint8, key, value []byte) int {
	n := regionItemFixed(op) + len(key)
	if op == RegionPut {
		n += len(value)
	}
	return n
}

const regionBatchFixed = HeaderSize + 56

// AppendRegionBatch appends a RegionBatch frame. More bytes than MaxRegionBatch are the caller's
// bug; they are rejected by the receiver.
func AppendRegionBatch(dst []byte, p PartitionID, m *RegionBatch) []byte {
	region, patch, items := clip(m.Region, MaxString), clip(m.Patch, MaxRegionBatch+1), clip(m.Items, MaxRegionBatch+1)
	dst, f := begin(dst, TypeRegionBatch, 0, p, regionBatchFixed+len(region)+len(patch)+len(items))
	le.PutUint64(f[8:], m.Epoch)
	le.PutUint32(f[16:], m.Slot)
	le.PutUint32(f[20:], m.Generation)
	le.PutUint64(f[24:], m.ClientSeq)
	le.PutUint64(f[32:], m.Received)
	f[40], f[41] = m.Op, uint8(len(region))
	le.PutUint16(f[42:], m.Count)
	le.PutUint32(f[44:], m.Offset)
	le.PutUint64(f[48:], uint64(m.LifeNs))
	le.PutUint32(f[56:], uint32(len(patch)))
	le.PutUint32(f[60:], uint32(len(items)))
	b := f[regionBatchFixed:]
	b = b[copy(b, region):]
	copy(b[copy(b, patch):], items)
	return dst
}

// DecodeRegionBatch decodes a RegionBatch frame. One that is too long is left to the receiver to
// reject by code.
func DecodeRegionBatch(f []byte, m *RegionBatch) error {
	const t = TypeRegionBatch
	if err := open(f, t, regionBatchFixed, false); err != nil {
		return err
	}
	m.Epoch, m.Slot, m.Generation = le.Uint64(f[8:]), le.Uint32(f[16:]), le.Uint32(f[20:])
	m.ClientSeq, m.Received = le.Uint64(f[24:]), le.Uint64(f[32:])
	m.Op, m.Count, m.Offset, m.LifeNs = f[40], le.Uint16(f[42:]), le.Uint32(f[44:]), int64(le.Uint64(f[48:]))
	b, name, patch := f[regionBatchFixed:], int(f[41]), le.Uint32(f[56:])
	if name == 0 || name > len(b) {
		return &FrameError{Type: t, Field: "regionLen", Value: uint64(name), Allowed: "1 or more, and no more than the bytes that follow"}
	}
	if m.Region, b = b[:name:name], b[name:]; uint64(patch) > uint64(len(b)) {
		return &FrameError{Type: t, Field: "patchLen", Value: uint64(patch), Allowed: "no more than the bytes that follow"}
	}
	m.Patch, m.Items = b[:patch:patch], b[patch:]
	switch n := le.Uint32(f[60:]); {
	case uint64(n) != uint64(len(m.Items)):
		return &FrameError{Type: t, Field: "itemsLen", Value: uint64(n), Allowed: "the bytes that follow"}
	case m.ClientSeq == 0:
		return &FrameError{Type: t, Field: "clientSeq", Value: 0, Allowed: "1 or more"}
	case m.Received >= m.ClientSeq:
		return &FrameError{Type: t, Field: "received", Value: m.Received, Allowed: "less than clientSeq"}
	case m.Op < RegionPut || m.Op > RegionRemove:
		return &FrameError{Type: t, Field: "op", Value: uint64(m.Op), Allowed: "4 put, 5 patch, 6 remove"}
	case m.Op != RegionPatch && len(m.Patch) > 0:
		return &FrameError{Type: t, Field: "patchLen", Value: uint64(len(m.Patch)), Allowed: "0 but of a patch"}
	case m.Offset != 0 && m.Op != RegionPatch:
		return &FrameError{Type: t, Field: "offset", Value: uint64(m.Offset), Allowed: "0 but of a patch"}
	case m.LifeNs < -1 || m.LifeNs != 0 && m.Op != RegionPut:
		return &FrameError{Type: t, Field: "lifeNs", Value: uint64(m.LifeNs), Allowed: "-1 or more of a put, 0 otherwise"}
	case m.Count == 0 || m.Count > MaxRegionItems:
		return &FrameError{Type: t, Field: "count", Value: uint64(m.Count), Allowed: "1..512"}
	}
	return m.checkItems()
}

// RegionBatchCount returns how many items a frame says that it has, 0 if it is too short, at most
// MaxRegionItems.
func RegionBatchCount(frame []byte) int {
	if len(frame) < regionBatchFixed {
		return 0
	}
	return min(int(le.Uint16(frame[42:])), MaxRegionItems)
}

// checkItems rejects items that are not as many as Count says, or do not stand by rising keys.
func (m *RegionBatch) checkItems() error {
	fixed, n := regionItemFixed(m.Op), uint64(0)
	var last []byte
	for b := m.Items; len(b) > 0; n++ {
		if len(b) < fixed {
			return &FrameError{Type: TypeRegionBatch, Field: "items", Value: uint64(len(b)), Allowed: "the lengths of an item, its key and of a put its value"}
		}
		key, value := int(le.Uint16(b)), 0
		if m.Op == RegionPut {
			value = int(le.Uint16(b[2:]))
		}
		switch b = b[fixed:]; {
		case key == 0 || key > len(b):
			return &FrameError{Type: TypeRegionBatch, Field: "keyLen", Value: uint64(key), Allowed: "1 or more, and no more than the bytes that follow"}
		case value > len(b)-key:
			return &FrameError{Type: TypeRegionBatch, Field: "valueLen", Value: uint64(value), Allowed: "no more than the bytes that follow"}
		case bytes.Compare(last, b[:key]) >= 0:
			return &FrameError{Type: TypeRegionBatch, Field: "item", Value: n, Allowed: "one whose key is behind that of the item before"}
		}
		last, b = b[:key], b[key+value:]
	}
	if n != uint64(m.Count) {
		return &FrameError{Type: TypeRegionBatch, Field: "count", Value: uint64(m.Count), Allowed: "the items that follow"}
	}
	return nil
}

// RegionBatched answers a RegionBatch: the change is committed. Seq is the version of all values
// that it made.
type RegionBatched struct {
	Ack
	Skipped uint32 // keys of a patch or remove that had no value; the others were changed
}

const regionBatchedSize = AckSize + 8

// AppendRegionBatched appends a RegionBatched frame.
func AppendRegionBatched(dst []byte, p PartitionID, m *RegionBatched) []byte {
	dst, f := begin(dst, TypeRegionBatched, 0, p, regionBatchedSize)
	putAck(f, &m.Ack)
	le.PutUint64(f[AckSize:], uint64(m.Skipped))
	return dst
}

// DecodeRegionBatched decodes a RegionBatched frame.
func DecodeRegionBatched(f []byte, m *RegionBatched) error {
	if err := open(f, TypeRegionBatched, regionBatchedSize, true); err != nil {
		return err
	}
	m.Ack.get(f)
	n := le.Uint64(f[AckSize:])
	if n >= MaxRegionItems {
		return &FrameError{Type: TypeRegionBatched, Field: "skipped", Value: n, Allowed: "0..511"}
	}
	m.Skipped = uint32(n)
	return nil
}
