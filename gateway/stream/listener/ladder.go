package listener

import (
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/client"
)

// touch is an entry that may have changed the book of a symbol.
type touch struct {
	symbol string
	entry  uint64
}

// touches notes that an entry did something in a book.
func (b *batch) touches(symbol string, entry uint64) {
	if n := len(b.touched); n > 0 && b.touched[n-1].symbol == symbol {
		b.touched[n-1].entry = entry
		return
	}
	b.touched = append(b.touched, touch{symbol, entry})
}

// appendPhase begins the message of a book.
func appendPhase(dst []byte, v *client.Book) []byte {
	dst = appendString(append(dst, `{"symbol":`...), []byte(v.Symbol))
	state := v.State.String()
	if v.State == bookUnknown {
		state = "unknown"
	}
	dst = append(append(append(dst, `,"state":"`...), state...), '"')
	if !v.Until.IsZero() {
		dst = append(v.Until.UTC().AppendFormat(append(dst, `,"until":"`...), time.RFC3339Nano), '"')
	}
	if v.Traded {
		dst = append(append(append(dst, `,"last":"`...), client.Decimal(v.Last, v.PriceDigits)...), '"')
	}
	return dst
}

// appendBest makes a message of the best level of each side.
func appendBest(dst []byte, v *client.Book) []byte {
	dst = appendPhase(dst, v)
	for _, side := range []struct {
		name   string
		levels []client.BookLevel
	}{{"bid", v.Bids}, {"ask", v.Asks}} {
		if len(side.levels) > 0 {
			dst = appendLevel(append(append(append(dst, `,"`...), side.name...), `":`...), v, &side.levels[0])
		}
	}
	return append(dst, '}')
}

// appendDepth makes a message of the levels.
func appendDepth(dst []byte, v *client.Book) []byte {
	dst = appendPhase(dst, v)
	for _, side := range []struct {
		name   string
		levels []client.BookLevel
	}{{"bids", v.Bids}, {"asks", v.Asks}} {
		dst = append(append(append(dst, `,"`...), side.name...), `":[`...)
		for i := range side.levels {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendLevel(dst, v, &side.levels[i])
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// appendLevel appends ["price","quantity",orders].
func appendLevel(dst []byte, v *client.Book, l *client.BookLevel) []byte {
	dst = append(append(dst, `["`...), client.Decimal(l.Price, v.PriceDigits)...)
	dst = append(append(dst, `","`...), client.Decimal(l.Qty, v.QtyDigits)...)
	return append(strconv.AppendUint(append(dst, `",`...), uint64(l.Orders), 10), ']')
}
