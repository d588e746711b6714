package archive

import (
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// encoder makes an object of entries. It is used again after finish.
type encoder struct {
	zstd   *zstd.Encoder
	h      Header
	hash   uint64 // of the last entry
	raw    []byte // of the block that is not finished
	cur    block
	blocks []block
	data   []byte // the finished blocks
}

func newEncoder() *encoder {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithWindowSize(maxBlockRaw))
	if err != nil {
		panic(fmt.Sprintf("archive: %v", err)) // of constants
	}
	return &encoder{zstd: z}
}

// begin starts an object whose first entry follows the position.
func (e *encoder) begin(h Header, first, prevHash uint64) {
	h.First, h.Last, h.PrevHash, h.ThroughHash = first, first-1, prevHash, prevHash
	e.h, e.hash, e.raw, e.blocks, e.data, e.cur = h, prevHash, e.raw[:0], e.blocks[:0], e.data[:0], block{First: first, PrevHash: prevHash}
}

// add appends the next entry, which must continue the chain.
func (e *encoder) add(entry *order.Entry, b []byte) error {
	switch {
	case entry.Seq != e.h.Last+1:
		return fmt.Errorf("entry %d follows entry %d, allowed: entry %d", entry.Seq, e.h.Last, e.h.Last+1)
	case entry.PrevHash != e.hash:
		return fmt.Errorf("entry %d: prevHash is %016x, allowed: the hash of the entry before, %016x", entry.Seq, entry.PrevHash, e.hash)
	case e.h.Entries == maxEntries || len(e.blocks) == maxBlocks-1:
		return fmt.Errorf("entry %d: the object has %d entries in %d blocks, and takes no more", entry.Seq, e.h.Entries, len(e.blocks))
	}
	if e.h.Entries == 0 {
		e.h.FirstEpoch, e.h.FirstTime = entry.Epoch, entry.TimeNs
	}
	e.h.LastEpoch, e.h.LastTime = entry.Epoch, entry.TimeNs
	e.raw = append(e.raw, b...)
	for range order.Padded(len(b)) - len(b) {
		e.raw = append(e.raw, 0)
	}
	e.hash = order.Hash(b)
	e.h.Last, e.h.ThroughHash = entry.Seq, e.hash
	e.h.Entries++
	e.cur.Entries++
	if entry.Kind.IsOrder() {
		e.h.Orders++
		e.cur.Orders++
	}
	if len(e.raw) >= blockTarget {
		e.endBlock()
	}
	return nil
}

func (e *encoder) endBlock() {
	from := len(e.data)
	e.data = e.zstd.EncodeAll(e.raw, e.data)
	e.cur.Raw, e.cur.Size, e.cur.Offset = uint32(len(e.raw)), uint32(len(e.data)-from), uint64(from)
	e.cur.Sum = xxhash.Sum64(e.data[from:])
	e.blocks = append(e.blocks, e.cur)
	e.h.Raw += uint64(len(e.raw))
	e.raw, e.cur = e.raw[:0], block{First: e.h.Last + 1, PrevHash: e.hash}
}

// finish returns the object.
func (e *encoder) finish() (Header, []byte) {
	if e.cur.Entries > 0 {
		e.endBlock()
	}
	e.h.Blocks, e.h.Stored = uint32(len(e.blocks)), uint64(len(e.data))
	head := headerSize + e.h.indexSize()
	b := make([]byte, head, head+len(e.data))
	e.h.put(b)
	for i := range e.blocks {
		k := e.blocks[i]
		k.Offset += uint64(head)
		k.put(b[headerSize+i*indexEntry:])
	}
	le.PutUint64(b[head-8:], indexSum(b[:headerSize], b[headerSize:head-8]))
	return e.h, append(b, e.data...)
}

// encode makes an object of a batch.
func (e *encoder) encode(h Header, first, prevHash uint64, entries []client.LogEntry) (Header, []byte, error) {
	e.begin(h, first, prevHash)
	for i := range entries {
		if err := e.add(&entries[i].Entry, entries[i].Bytes); err != nil {
			return h, nil, err
		}
	}
	h, b := e.finish()
	return h, b, nil
}
