package store

import (
	"math"
	"sync/atomic"
)

// grant is how much a store takes from its budget at a time, in bytes, so that the shared
// counter is touched once per some hundred orders.
const grant = 64 << 10

// PerOrder is the most memory an order takes beside its payload, in bytes: header,
// alignment and indexes, fixed parts included. TestMemoryPerOrder checks it.
const PerOrder = 96

// Budget is a memory limit that the stores of one process share.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget makes a budget of limit bytes; 0 or less means no limit.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Limit in bytes, 0 or less for none.
func (b *Budget) Limit() int64 { return b.limit }

// Used is what the stores have taken, in bytes.
func (b *Budget) Used() int64 { return b.used.Load() }

// RefuseAt returns the use, in bytes, at which orders and sessions are rejected. The rest
// is reserved for entries of the grid itself.
func (b *Budget) RefuseAt() int64 {
	if b.limit <= 0 {
		return math.MaxInt64
	}
	return b.limit - b.limit/headroom
}

// take reserves n bytes if spare bytes are left then, or nothing.
func (b *Budget) take(n, spare int64) bool {
	if used := b.used.Add(n); b.limit > 0 && used > b.limit-spare {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *Budget) give(n int64) { b.used.Add(-n) }
