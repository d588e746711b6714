package match

import (
	"encoding/binary"
	"math/bits"
)

var le = binary.LittleEndian

// Kind of a record.
type Kind uint8

// Kinds of records. First executions, then market data.
const (
	Accepted       Kind = iota + 1 // Order entered: Price, Qty
	Rejected                       // Order did not enter, Reason
	Filled                         // Order traded Qty at Price with Other; Leaves and Cum after it
	Cancelled                      // Order left with Leaves unfilled, Reason; Other is the mass cancel, if one did it
	CancelRejected                 // cancel or replace (Other: its id) of Order was refused, Reason
	Replaced                       // Order now has the id Other, Price, Qty in total, Leaves
	Restated                       // an iceberg shows Qty again, at the end of the queue
	Triggered                      // a stop entered: Price is its trigger
	StateChanged                   // Flags is the State, Price its Until
	AuctionPrice                   // Price and Qty of an auction, Leaves its surplus, on Side; Qty 0: no price
	MassCancelled                  // the mass cancel Order is complete: Cum orders
	BandChanged                    // Price..Other limit prices
	BestChanged                    // L1: Side's best is Qty of Count orders at Price; Qty 0: none
	LevelChanged                   // L2: Side has Qty of Count orders at Price
	OrderAdded                     // L3: Order shows Qty at Price
	OrderChanged                   // L3: Order shows Qty
	OrderRemoved                   // L3
)

// Flags of Filled.
const (
	Passive uint8 = 1 << iota // was in the book before
	Auction                   // in an auction
)

// Record is one line of output. Its number is its place in the output of its operation.
type Record struct {
	Order, Other            uint64
	Price, Qty, Leaves, Cum int64 // in the units of the operation
	Owner, Count            uint32
	Book                    uint16
	Kind                    Kind
	Side                    Side
	Reason                  Reason
	Flags                   uint8
	_                       [2]uint8
}

// OfSweep reports whether the record is of a mass cancel that was accepted, and of no order: its
// Book may be All.
func (r *Record) OfSweep() bool {
	return r.Kind == Accepted && (r.Reason == MassCancelling || r.Reason == Killed || r.Reason == Disconnected)
}

// RecordBytes is the size of an encoded record.
const RecordBytes = 64

// words are the record as its bytes, in eight numbers.
func (r *Record) words() [8]uint64 {
	return [8]uint64{
		r.Order, r.Other, uint64(r.Price), uint64(r.Qty), uint64(r.Leaves), uint64(r.Cum),
		uint64(r.Owner) | uint64(r.Count)<<32,
		uint64(r.Book) | uint64(r.Kind)<<16 | uint64(r.Side)<<24 | uint64(r.Reason)<<32 | uint64(r.Flags)<<40,
	}
}

// AppendTo appends the RecordBytes bytes of the record, little-endian.
func (r *Record) AppendTo(dst []byte) []byte {
	for _, w := range r.words() {
		dst = le.AppendUint64(dst, w)
	}
	return dst
}

// Position is how much an engine has written and a running hash of it: replicas that
// applied the same operations have the same. The hash tells cooperating programs apart; it
// does not resist forgery.
type Position struct {
	ExecSeq  uint64
	ExecHash uint64
}

// Add moves the position over a record.
func (p *Position) Add(r *Record) {
	// Each field is read as it was written: a core that reads two of them at once waits until
	// both are in its cache, behind everything that was written before.
	small := uint64(r.Book)*0x100000001b3 + uint64(r.Kind)*0x9e3779b97f4a7c15 + uint64(r.Side)*0xbf58476d1ce4e5b9 +
		uint64(r.Reason)*0x94d049bb133111eb + uint64(r.Flags)*0xc2b2ae3d27d4eb4f
	a := fold(r.Order^p.ExecHash^0xa0761d6478bd642f, r.Other^0xe7037ed1a0b428db)
	b := fold(uint64(r.Price)^0x8ebc6af09c88c6e3, uint64(r.Qty)^0x589965cc75374cc3)
	c := fold(uint64(r.Leaves)^0x1d8e4e27c47d124f, uint64(r.Cum)^0xeb44accab455d165)
	d := fold((uint64(r.Owner)+uint64(r.Count)*0x100000001b3)^0xf1357aea2e62a9c5, small^0x9e3779b97f4a7c15)
	p.ExecHash = fold(a^bits.RotateLeft64(c, 23), b+bits.RotateLeft64(d, 41)^0xd6e8feb86659fd93)
	p.ExecSeq++
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
