package traffic

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

// records are the orders of one stream, in blocks, so that they can grow while
// others hold pointers into them, and without copying under load.
type records struct {
	id        fixorder.ID
	partition wire.PartitionID
	node      int // see history.Stream
	sessions  int

	mu     sync.Mutex
	blocks []*[blockSize]load.Order

	created atomic.Int64
	recent  [64]atomic.Int64 // orders acknowledged lately, index+1
	acked   atomic.Int64
}

const blockSize = 1 << 14

// add makes room for the next order. One goroutine at a time.
func (r *records) add() (index int64, o *load.Order) {
	index = r.created.Load()
	r.mu.Lock()
	if index/blockSize == int64(len(r.blocks)) {
		r.blocks = append(r.blocks, new([blockSize]load.Order))
	}
	o = &r.blocks[index/blockSize][index%blockSize]
	r.mu.Unlock()
	r.created.Store(index + 1)
	return index, o
}

func (r *records) at(index int64) *load.Order {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &r.blocks[index/blockSize][index%blockSize]
}

// noteAcked makes the order a candidate for reads.
func (r *records) noteAcked(index int64) {
	r.recent[uint64(r.acked.Add(1))%uint64(len(r.recent))].Store(index + 1)
}

// pick returns an order to read: one acknowledged lately, or one in flight.
func (r *records) pick(rng *rand.Rand) (int64, bool) {
	created := r.created.Load()
	if created == 0 {
		return 0, false
	}
	if rng.IntN(4) == 0 {
		return max(0, created-1-rng.Int64N(8)), true
	}
	newest := uint64(r.acked.Load())
	at := r.recent[(newest-uint64(rng.IntN(8)))%uint64(len(r.recent))].Load()
	return max(0, at-1), true
}

// stream copies the records, which must not change any more.
func (r *records) stream() history.Stream {
	s := history.Stream{ID: r.id, Partition: r.partition, Node: r.node, Sessions: r.sessions}
	n := r.created.Load()
	for i := int64(0); i < n; i += blockSize {
		s.Orders = append(s.Orders, r.blocks[i/blockSize][:min(blockSize, n-i)]...)
	}
	return s
}
