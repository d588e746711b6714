package fixorder

import (
	"fmt"
	"strconv"
	"time"
)

// Book is an instrument that orders of Trading are for. Prices and quantities are integers, in
// units of 10^-PriceDigits and 10^-QtyDigits.
type Book struct {
	Symbol                 string
	Tick, Lot              int64
	Low, High, Reference   int64
	PriceDigits, QtyDigits uint8
}

// Trading makes orders that meet in the books of a grid that matches: limit orders of both sides
// around the reference price, and one in sixteen that sweeps the other side, six ticks deep.
// Everything but MsgSeqNum and the two times follows from the identity, the index and the books. It
// is not safe for use by several goroutines.
type Trading struct {
	v     Varied
	books []Book
}

// sweepEach is how often an order sweeps.
const sweepEach = 16

// NewTrading returns a maker for one probe. There must be a book.
func NewTrading(v Version, id ID, books []Book) (*Trading, error) {
	m, err := NewVaried(v, id)
	if err != nil {
		return nil, err
	}
	if len(books) == 0 {
		return nil, fmt.Errorf("no book to trade in")
	}
	return &Trading{v: *m, books: books}, nil
}

// Make writes order number index into the maker's buffer and returns it; the slice is valid until
// the next call. The arguments are those of Maker.Make.
func (m *Trading) Make(index, seqNum int64, created, sent time.Time) []byte {
	return m.v.finish(m.fields(m.v.begin(index, seqNum, created, sent), index))
}

// Check verifies that fix is order number index, except the MsgSeqNum and the times.
func (m *Trading) Check(index int64, fix []byte) error { return m.v.compare(index, fix, m.fields) }

// fields appends what an order asks for.
func (m *Trading) fields(b []byte, index int64) []byte {
	h := uint64(index)*0x9e3779b97f4a7c15 + uint64(m.v.id.Probe)*0xbf58476d1ce4e5b9
	h = (h ^ h>>30) * 0x94d049bb133111eb
	h ^= h >> 31
	k := &m.books[h%uint64(len(m.books))]
	side, lots, ticks, tif := 1+int64(h>>16&1), 1+int64(h>>20%9), int64(h>>32%6)-3, byte('0')
	if index%sweepEach == sweepEach-1 {
		lots, ticks, tif = 60, 6, '3'
	}
	if side == 2 {
		ticks = -ticks
	}
	middle := k.Reference
	if middle < k.Low || middle > k.High {
		middle = k.Low + (k.High-k.Low)/2
	}
	middle = k.Low + (middle-k.Low)/k.Tick*k.Tick
	price := min(max(middle+ticks*k.Tick, k.Low), k.Low+(k.High-k.Low)/k.Tick*k.Tick)
	b = append(append(append(b, "1=ACCT-00012345\x0121=1\x0155="...), k.Symbol...), "\x0154="...)
	b = append(strconv.AppendInt(b, side, 10), "\x0138="...)
	b = append(appendUnits(b, lots*k.Lot, k.QtyDigits), "\x0140=2\x0144="...)
	b = append(appendUnits(b, price, k.PriceDigits), "\x0159="...)
	return append(b, tif, 1)
}

// appendUnits appends a decimal number of so many digits behind the point.
func appendUnits(b []byte, n int64, digits uint8) []byte {
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	unit := int64(1)
	for range digits {
		unit *= 10
	}
	b = strconv.AppendInt(b, n/unit, 10)
	if digits == 0 {
		return b
	}
	b = append(b, '.')
	b = append(b, make([]byte, digits)...)
	putDigits(b[len(b)-int(digits):], uint64(n%unit))
	return b
}
