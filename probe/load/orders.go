package load

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Fate of an order.
type Fate uint8

// Fates, from the publishing thread's point of view.
const (
	Unsent   Fate = iota // created, never handed to the grid
	Acked                // acknowledged, receipt in hand
	Rejected             // refused by the grid: it must not be in the log
	Unknown              // no answer in time: may or may not be in the log
)

func (f Fate) String() string {
	if int(f) < len(fateNames) {
		return fateNames[f]
	}
	return fmt.Sprintf("fate %d", uint8(f))
}

var fateNames = [...]string{"unsent", "acked", "rejected", "unknown"}

// Order is the record of one order, 64 bytes without pointers. Times are
// nanoseconds on the scale of clock.Now; the intended time follows from the
// schedule.
type Order struct {
	T1 int64 // created, just before the order becomes available to publishing
	T2 int64 // just before the submit call
	T3 int64 // when the call returned
	// Receipt of an acked order.
	Seq     uint64
	Epoch   uint64
	Hash    uint64 // 0 where the grid gives none
	Lineage uint32 // likewise
	Copies  uint8

	Fate   Fate
	Thread uint8
	done   uint32 // 1: the record is complete
}

// At reports whether an entry is the one named by the receipt of an acked order: at its place, and
// with its hash, if given, which covers all entries before it.
func (o *Order) At(seq, hash uint64) bool {
	return o.Seq == seq && (o.Hash == 0 || o.Hash == hash)
}

// Complete reports, to any goroutine and during the step, whether the order was submitted and has
// its fate. The record then does not change any more.
func (o *Order) Complete() bool { return atomic.LoadUint32(&o.done) != 0 }

// complete is the last write to a record.
func (o *Order) complete() { atomic.StoreUint32(&o.done, 1) }

// Orders is room for the records of one step, outside the Go heap so that garbage collection does
// not scan it, and resident from the start so that the creator never takes a page fault.
type Orders struct {
	all []Order
	mem []byte
}

// NewOrders maps room for n records.
func NewOrders(n int64) (*Orders, error) {
	if n < 1 {
		return nil, fmt.Errorf("room for %d orders: must be at least 1", n)
	}
	size := n * int64(unsafe.Sizeof(Order{}))
	mem, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("map %d MiB for the records of %d orders: %w", size>>20, n, err)
	}
	return &Orders{all: unsafe.Slice((*Order)(unsafe.Pointer(unsafe.SliceData(mem))), n), mem: mem}, nil
}

// First returns the first n records, cleared. n must not exceed the room.
func (o *Orders) First(n int64) []Order {
	clear(o.all[:n])
	return o.all[:n]
}

// Len is the room, in orders.
func (o *Orders) Len() int64 { return int64(len(o.all)) }

// Close releases the room; records taken from it must not be used again.
func (o *Orders) Close() error {
	o.all = nil
	return unix.Munmap(o.mem)
}
