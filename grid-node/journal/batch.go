package journal

import "github.com/ordergrid/ordergrid/grid-node/replica"

// Batch is what is written and synced at once: a group commit. Its memory is reused.
type Batch struct {
	buf     []byte
	pieces  []piece
	seq     uint64 // last entry
	configs uint64 // number of the last configuration
}

type piece struct {
	kind     kind
	off, end int
}

// Entries adds entries, padded, that follow those before. The bytes are copied.
func (b *Batch) Entries(run []byte, through uint64) {
	b.add(kindEntries, run)
	b.seq = through
}

// Config adds the n-th configuration.
func (b *Batch) Config(c *replica.Config, n uint64) {
	b.add(kindConfig, encodeConfig(c))
	b.configs = n
}

func (b *Batch) add(k kind, payload []byte) {
	off := len(b.buf)
	b.buf = append(b.buf, payload...)
	b.pieces = append(b.pieces, piece{k, off, len(b.buf)})
}

// Empty reports whether there is nothing to write.
func (b *Batch) Empty() bool { return len(b.pieces) == 0 }

// Bytes of the content.
func (b *Batch) Bytes() int { return len(b.buf) }

// Seq is the last entry, 0 if there is none; Configs the number of the last configuration,
// 0 if there is none.
func (b *Batch) Seq() uint64     { return b.seq }
func (b *Batch) Configs() uint64 { return b.configs }

// Reset empties the batch and keeps its memory, unless that is unusually much.
func (b *Batch) Reset() {
	if cap(b.buf) > 32<<20 {
		b.buf = nil
	}
	b.buf, b.pieces, b.seq, b.configs = b.buf[:0], b.pieces[:0], 0, 0
}
