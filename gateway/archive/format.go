package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

var le = binary.LittleEndian

// Version of the format. A reader refuses a higher one.
const Version = 1

// Kind is what an object of the archive is.
type Kind uint16

// Kinds.
const (
	KindTail    Kind = 1 // a batch as it came
	KindSegment Kind = 2 // batches that were merged
	KindFence   Kind = 3 // the beginning of a writer: no entries
)

func (k Kind) String() string {
	switch k {
	case KindTail:
		return "tail"
	case KindSegment:
		return "segment"
	case KindFence:
		return "fence"
	}
	return fmt.Sprintf("kind%d", uint16(k))
}

// Sizes and bounds, in bytes and numbers. A reader allocates no more than these for any object.
const (
	headerSize  = 192
	indexEntry  = 48
	maxBlocks   = 1 << 14
	maxEntries  = 1 << 24   // of an object
	maxBlockRaw = 512 << 10 // of a block, decompressed
	maxBlock    = maxBlockRaw + maxBlockRaw/64 + 1024
	maxGrid     = 64
	blockTarget = 256 << 10 // a block ends with the entry that reaches it
)

// magic begins every object. As in PNG, it shows transfers that drop the eighth bit or rewrite line ends.
var magic = [8]byte{0x89, 'O', 'G', 'S', 'E', 'G', '\r', '\n'}

// Header describes an object: a run of a partition's committed log. docs/archive.md has its bytes.
type Header struct {
	Kind        Kind
	Grid        string
	Partition   wire.PartitionID
	Lineage     uint32 // of the log that the last entry was read from; 0: not known
	First, Last uint64 // entries; Last is First-1 in a fence
	PrevHash    uint64 // of entry First-1; 0 before the first of a log
	ThroughHash uint64 // of entry Last
	FirstEpoch  uint32
	LastEpoch   uint32
	FirstTime   int64 // primary's receive time of entry First, unix nanoseconds
	LastTime    int64 // of entry Last
	Entries     uint32
	Orders      uint32
	Raw         uint64 // bytes of the entries, padded
	Stored      uint64 // bytes of the blocks
	Blocks      uint32
	Ordinal     uint64 // of a segment: how many segments are before it
	Writer      uint64 // a random number of the process that wrote it
}

// Size of the object.
func (h *Header) Size() int64 {
	return int64(headerSize) + int64(h.Blocks)*indexEntry + 8 + int64(h.Stored)
}

// Time of the first and the last entry; zero in a fence.
func (h *Header) Time() (first, last time.Time) {
	if h.Entries == 0 {
		return
	}
	return time.Unix(0, h.FirstTime).UTC(), time.Unix(0, h.LastTime).UTC()
}

func (h *Header) put(b []byte) {
	_ = b[headerSize-1]
	copy(b, magic[:])
	le.PutUint16(b[8:], Version)
	le.PutUint16(b[10:], uint16(h.Kind))
	le.PutUint32(b[12:], h.Blocks)
	le.PutUint64(b[16:], h.First)
	le.PutUint64(b[24:], h.Last)
	le.PutUint64(b[32:], h.PrevHash)
	le.PutUint64(b[40:], h.ThroughHash)
	le.PutUint32(b[48:], h.FirstEpoch)
	le.PutUint32(b[52:], h.LastEpoch)
	le.PutUint64(b[56:], uint64(h.FirstTime))
	le.PutUint64(b[64:], uint64(h.LastTime))
	le.PutUint32(b[72:], h.Entries)
	le.PutUint32(b[76:], h.Orders)
	le.PutUint64(b[80:], h.Raw)
	le.PutUint64(b[88:], h.Stored)
	le.PutUint64(b[96:], h.Ordinal)
	le.PutUint64(b[104:], h.Writer)
	le.PutUint32(b[112:], h.Lineage)
	le.PutUint16(b[116:], uint16(h.Partition))
	b[118] = byte(len(h.Grid))
	copy(b[120:184], h.Grid)
	le.PutUint64(b[184:], xxhash.Sum64(b[:184]))
}

// FormatError names an invalid field of an object.
type FormatError struct {
	Field   string
	Value   string
	Allowed string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s is %s, allowed: %s", e.Field, e.Value, e.Allowed)
}

func invalid(field string, value any, allowed string) error {
	return &FormatError{Field: field, Value: fmt.Sprint(value), Allowed: allowed}
}

// decodeHeader decodes and checks the first headerSize bytes of an object.
func decodeHeader(b []byte) (h Header, err error) {
	if len(b) < headerSize {
		return h, invalid("size", len(b), "192 bytes or more")
	}
	b = b[:headerSize]
	if !bytes.Equal(b[:8], magic[:]) {
		return h, invalid("magic", fmt.Sprintf("%x", b[:8]), fmt.Sprintf("%x: it is no object of an archive", magic))
	}
	if v := le.Uint16(b[8:]); v != Version {
		return h, invalid("version", v, "1: read it with the release that wrote it, or a later one")
	}
	if sum := xxhash.Sum64(b[:184]); sum != le.Uint64(b[184:]) {
		return h, invalid("checksum of the header", fmt.Sprintf("%016x", le.Uint64(b[184:])), fmt.Sprintf("%016x, that of its bytes", sum))
	}
	h = Header{
		Kind: Kind(le.Uint16(b[10:])), Blocks: le.Uint32(b[12:]), First: le.Uint64(b[16:]), Last: le.Uint64(b[24:]),
		PrevHash: le.Uint64(b[32:]), ThroughHash: le.Uint64(b[40:]), FirstEpoch: le.Uint32(b[48:]), LastEpoch: le.Uint32(b[52:]),
		FirstTime: int64(le.Uint64(b[56:])), LastTime: int64(le.Uint64(b[64:])), Entries: le.Uint32(b[72:]), Orders: le.Uint32(b[76:]),
		Raw: le.Uint64(b[80:]), Stored: le.Uint64(b[88:]), Ordinal: le.Uint64(b[96:]), Writer: le.Uint64(b[104:]),
		Lineage: le.Uint32(b[112:]), Partition: wire.PartitionID(le.Uint16(b[116:])),
	}
	n := int(b[118])
	if n == 0 || n > maxGrid || b[119] != 0 || len(bytes.Trim(b[120+n:184], "\x00")) != 0 || bytes.IndexByte(b[120:120+n], 0) >= 0 {
		return h, invalid("length of the grid's name", n, "1..64, with zero bytes behind it")
	}
	h.Grid = string(b[120 : 120+n])
	return h, h.check()
}

// check is the semantic part of decodeHeader: what is allocated and looped over is bounded by it.
func (h *Header) check() error {
	switch {
	case h.Kind < KindTail || h.Kind > KindFence:
		return invalid("kind", uint16(h.Kind), "1 tail, 2 segment, 3 fence")
	case h.First == 0:
		return invalid("first", 0, "1 or more")
	case h.Entries > maxEntries:
		return invalid("entries", h.Entries, "at most 16777216")
	case h.Last != h.First-1+uint64(h.Entries) || h.Last+1 < h.First:
		return invalid("last", h.Last, "first + entries - 1")
	case h.Blocks > maxBlocks || h.Blocks > h.Entries || (h.Blocks == 0) != (h.Entries == 0):
		return invalid("blocks", h.Blocks, "at most 16384, at most the entries, and 0 only without entries")
	case h.Orders > h.Entries:
		return invalid("orders", h.Orders, "at most the entries")
	case (h.Kind == KindFence) != (h.Entries == 0):
		return invalid("entries", h.Entries, "0 in a fence, 1 or more in others")
	case h.Raw > uint64(h.Blocks)*maxBlockRaw || h.Raw < uint64(h.Entries)*order.HeaderSize:
		return invalid("raw", h.Raw, "64 or more for each entry, 512 KiB or less for each block")
	case h.Stored > uint64(h.Blocks)*maxBlock:
		return invalid("stored", h.Stored, "521 KiB or less for each block")
	case h.Partition >= wire.MaxPartitions:
		return invalid("partition", uint16(h.Partition), "0..1023")
	case h.Entries == 0 && h.PrevHash != h.ThroughHash:
		return invalid("throughHash", fmt.Sprintf("%016x", h.ThroughHash), "prevHash in a fence")
	}
	return nil
}

// block is an entry of the index: entries that are decompressed together, and by themselves.
type block struct {
	First    uint64
	Entries  uint32
	Orders   uint32
	Raw      uint32 // decompressed
	Size     uint32 // in the object
	Offset   uint64 // in the object
	PrevHash uint64 // of entry First-1
	Sum      uint64 // xxhash64 of the bytes in the object
}

// Last entry of the block.
func (b *block) Last() uint64 { return b.First + uint64(b.Entries) - 1 }

func (b *block) put(p []byte) {
	_ = p[indexEntry-1]
	le.PutUint64(p, b.First)
	le.PutUint32(p[8:], b.Entries)
	le.PutUint32(p[12:], b.Orders)
	le.PutUint32(p[16:], b.Raw)
	le.PutUint32(p[20:], b.Size)
	le.PutUint64(p[24:], b.Offset)
	le.PutUint64(p[32:], b.PrevHash)
	le.PutUint64(p[40:], b.Sum)
}

// indexSize is that of the index behind the header, with its checksum.
func (h *Header) indexSize() int { return int(h.Blocks)*indexEntry + 8 }

// indexSum covers the header too: an index of another object does not fit.
func indexSum(header, index []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	d.Write(header) //nolint:errcheck // it never fails
	d.Write(index)  //nolint:errcheck // it never fails
	return d.Sum64()
}

// decodeIndex decodes and checks the index; header are the object's first bytes, of which h was decoded.
func decodeIndex(header []byte, h *Header, b []byte) ([]block, error) {
	n := int(h.Blocks) * indexEntry
	if len(b) != n+8 {
		return nil, invalid("size of the index", len(b), fmt.Sprint(n+8))
	}
	if sum := indexSum(header[:headerSize], b[:n]); sum != le.Uint64(b[n:]) {
		return nil, invalid("checksum of the index", fmt.Sprintf("%016x", le.Uint64(b[n:])), fmt.Sprintf("%016x, that of header and index", sum))
	}
	blocks := make([]block, h.Blocks)
	seq, offset, raw, orders := h.First, uint64(headerSize+n+8), uint64(0), uint64(0)
	for i := range blocks {
		p := b[i*indexEntry:]
		k := block{
			First: le.Uint64(p), Entries: le.Uint32(p[8:]), Orders: le.Uint32(p[12:]), Raw: le.Uint32(p[16:]), Size: le.Uint32(p[20:]),
			Offset: le.Uint64(p[24:]), PrevHash: le.Uint64(p[32:]), Sum: le.Uint64(p[40:]),
		}
		switch {
		case k.First != seq || k.Entries == 0:
			return nil, invalid(fmt.Sprintf("first entry of block %d", i+1), k.First, fmt.Sprintf("%d, with one entry or more", seq))
		case k.Offset != offset || k.Size > maxBlock:
			return nil, invalid(fmt.Sprintf("offset of block %d", i+1), k.Offset, fmt.Sprintf("%d, with a size of at most %d", offset, maxBlock))
		case k.Raw > maxBlockRaw || uint64(k.Raw) < uint64(k.Entries)*order.HeaderSize || k.Orders > k.Entries:
			return nil, invalid(fmt.Sprintf("decompressed size of block %d", i+1), k.Raw, fmt.Sprintf("at most %d, 64 or more for each entry", maxBlockRaw))
		case i == 0 && k.PrevHash != h.PrevHash:
			return nil, invalid("prevHash of block 1", fmt.Sprintf("%016x", k.PrevHash), fmt.Sprintf("%016x, that of the header", h.PrevHash))
		}
		seq, offset, raw, orders = seq+uint64(k.Entries), offset+uint64(k.Size), raw+uint64(k.Raw), orders+uint64(k.Orders)
		blocks[i] = k
	}
	if seq != h.Last+1 || offset != uint64(h.Size()) || raw != h.Raw || orders != uint64(h.Orders) {
		return nil, invalid("index", fmt.Sprintf("%d entries, %d orders, %d bytes", seq-h.First, orders, raw),
			fmt.Sprintf("the header's: %d, %d, %d", h.Entries, h.Orders, h.Raw))
	}
	return blocks, nil
}
