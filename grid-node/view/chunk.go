package view

import (
	"sync/atomic"
	"unsafe"
)

// A chunk is the columns of 65,536 rows, those with the same seq>>16, in one mapping that
// never moves. Columns begin some cache lines apart from multiples of a page, so that the
// values of one row do not compete for the same set of the cache.
const (
	chunkBits = 16
	chunkRows = 1 << chunkBits
	blockBits = 6 // rows of a block share the base of their times
	skew      = 3 * 64

	offPrice        = 0
	offQty          = offPrice + 8*chunkRows + skew
	offSymbol       = offQty + 8*chunkRows + skew
	offAccount      = offSymbol + 4*chunkRows + skew
	offTransact     = offAccount + 4*chunkRows + skew
	offReceived     = offTransact + 4*chunkRows + skew
	offNextID       = offReceived + 4*chunkRows + skew
	offNextOrig     = offNextID + 4*chunkRows + skew
	offHeir         = offNextOrig + 4*chunkRows + skew
	offSession      = offHeir + 4*chunkRows + skew
	offMsgType      = offSession + 2*chunkRows + skew
	offSide         = offMsgType + chunkRows + skew
	offOrdType      = offSide + chunkRows + skew
	offTIF          = offOrdType + chunkRows + skew
	offTransactBase = offTIF + chunkRows + skew
	offReceivedBase = offTransactBase + 8*(chunkRows>>blockBits)
	offExtra        = offReceivedBase + 8*(chunkRows>>blockBits)
)

// Marks of columns. A value that does not fit is read from the log.
const (
	fixedNull = -1 << 63
	fixedFar  = -1<<63 + 1
	fixedMin  = -1<<63 + 2

	timeNull = -1 << 31
	timeFar  = -1<<31 + 1
	timeMin  = -1<<31 + 2
)

// chunk is used again after its rows were dropped.
type chunk struct {
	mem   []byte
	p     unsafe.Pointer // of mem
	zones []zone
	runs  []atomic.Pointer[run] // nil until sorted
	n     uint64                // seq>>16
}

// zone is the least and largest value of a column in a chunk. Readers look at it only when
// every row of the chunk is in their prefix.
type zone struct {
	lo, hi int64 // lo > hi if there is none
	far    bool  // some are read from the log
}

var emptyZone = zone{lo: 1<<63 - 1, hi: -1 << 63}

func (z *zone) add(v int64) {
	if v < z.lo {
		z.lo = v
	}
	if v > z.hi {
		z.hi = v
	}
}

func at[T any](c *chunk, off uintptr, i uint32) *T {
	return (*T)(unsafe.Add(c.p, off+uintptr(i)*unsafe.Sizeof(*new(T))))
}

func column[T any](c *chunk, off uintptr, n int) []T {
	return unsafe.Slice((*T)(unsafe.Add(c.p, off)), n)
}
