package sink

import (
	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// chunkSize is the unit in which a buffer takes memory. It holds several of the largest entries.
const chunkSize = 256 << 10

// buffer is a batch that grows. It copies the entries, which a follower lends until its next batch only, into chunks
// that it keeps for the batches after.
type buffer struct {
	batch  Batch
	chunks [][]byte
	used   int   // chunks in use; the last one of them has room left
	oldest int64 // receive time of the first entry with news, ns since 1970; 0: none
}

func (b *buffer) reset(p wire.PartitionID) {
	clear(b.batch.Executions) // they refer to text
	b.batch = Batch{Partition: p, Entries: b.batch.Entries[:0], Executions: b.batch.Executions[:0]}
	for i := range b.used {
		b.chunks[i] = b.chunks[i][:0]
	}
	b.used, b.oldest = 0, 0
}

// isNews reports whether an entry is more than the bookkeeping that readers cause themselves.
func isNews(k order.Kind) bool {
	return k != order.KindCursor && k != order.KindTruncate && k != order.KindReader
}

func (b *buffer) add(e *client.LogEntry) {
	if len(b.batch.Entries) == 0 {
		b.batch.From = e.Seq
	}
	own := *e
	own.Bytes = b.copy(e.Bytes)
	b.batch.Entries = append(b.batch.Entries, own)
	b.batch.Bytes += len(e.Bytes)
	if e.Kind.IsOrder() {
		b.batch.Orders++
	}
	if b.oldest == 0 && isNews(e.Kind) {
		b.oldest = e.TimeNs
	}
}

// executed adds the executions of entries up to one, and returns the others.
func (b *buffer) executed(list []client.Executed, through uint64) []client.Executed {
	n := 0
	for n < len(list) && list[n].Entry <= through {
		n++
	}
	b.batch.Executions = append(b.batch.Executions, list[:n]...)
	return list[n:]
}

func (b *buffer) copy(p []byte) []byte {
	if b.used == 0 || cap(b.chunks[b.used-1])-len(b.chunks[b.used-1]) < len(p) {
		if b.used == len(b.chunks) {
			b.chunks = append(b.chunks, make([]byte, 0, chunkSize))
		}
		b.used++
	}
	c := &b.chunks[b.used-1]
	from := len(*c)
	*c = append(*c, p...)
	return (*c)[from:len(*c):len(*c)]
}

// full reports whether no entry is added any more.
func (b *buffer) full(l limits) bool {
	return len(b.batch.Entries) >= l.entries || len(b.batch.Executions) >= l.entries || b.batch.Bytes >= l.bytes
}
