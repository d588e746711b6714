package desk

import (
	"math/bits"
	"strconv"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// CxlRejReason (102) and OrdRejReason (103) of a book.
const (
	cancelUnknown = '1' // unknown order
	rejectSymbol  = "1" // unknown symbol
	rejectClosed  = "2" // exchange closed
	rejectLimit   = "3" // order exceeds limit
)

// executed makes the report of what a book did with an order.
func (x *former) executed(v fix.Version, at place, f *order.FixReport) fix.Sent {
	e := client.DecodeExecution(at.partition, at.seq, f.N, f.Record)
	x.m.Parse(f.Message, v)
	r, i := x.read(at)
	if typeOf(&x.m) == 'q' && e.Kind != client.ExecCancelled {
		return x.massCancelled(v, at, f, match.Reason(e.Reason))
	}
	r.ClOrdID, r.Symbol = f.ClOrdID, f.Symbol
	if r.Side = 0; e.Side != 0 {
		r.Side = '0' + e.Side
	}
	r.ExecID = strconv.AppendUint(append(x.id, '.'), uint64(f.N), 10)
	if f.First != 0 {
		r.OrderID = strconv.AppendUint(append(at.partition.AppendText(nil), '/'), f.First, 10)
	}
	reason := match.Reason(e.Reason)
	x.body.Reset()
	if e.Kind == client.ExecCancelRejected {
		c := fix.CancelReject{ReportedOrder: r.ReportedOrder, OrdStatus: statusOf(f.Value[0]|f.Value[1] != 0), ToReplace: typeOf(&x.m) == 'G',
			Reason: cancelOption, Text: reason.String(), TransactNs: at.timeNs}
		if c.Account = i.Account; reason == match.UnknownOrder {
			c.OrderID, c.OrdStatus, c.Reason = nil, '8', cancelUnknown
		}
		x.body.CancelReject(&c)
		return fix.Sent{TimeNs: at.timeNs, Type: "9", Body: x.body.Fields(), Kept: true, Refused: true}
	}
	qty := func(n int64) []byte { return []byte(client.Decimal(n, f.QtyDigits)) }
	r.OrderQty, r.LeavesQty, r.CumQty = qty(e.Leaves+e.Cum), qty(e.Leaves), qty(e.Cum)
	if e.Cum > 0 {
		r.AvgPx = average(f.Value, e.Cum, f.PriceDigits)
	}
	r.ExecType, r.OrdStatus = '0', statusOf(e.Cum > 0)
	if r.Status = f.State; f.State {
		if r.StatusReqID = x.statusID(v); e.Kind == client.ExecAccepted && e.Price != 0 {
			r.Price = []byte(client.Decimal(e.Price, f.PriceDigits))
		}
	}
	refused := false
	switch e.Kind {
	case client.ExecRejected:
		refused = true
		r.ExecType, r.OrdStatus, r.OrderQty, r.Text, r.RejectCode = '8', '8', qty(e.Qty), reason.String(), rejection(v, reason)
	case client.ExecFilled:
		if !f.State {
			r.LastQty, r.LastPx = qty(e.Qty), []byte(client.Decimal(e.Price, f.PriceDigits))
		}
		if e.Leaves == 0 {
			r.OrdStatus = '2'
		}
		if r.ExecType = 'F'; v == fix.FIX42 {
			r.ExecType = r.OrdStatus
		}
	case client.ExecCancelled:
		r.ExecType, r.OrdStatus, r.LeavesQty = '4', '4', zero
		if reason != match.Requested {
			r.Text = reason.String()
		}
	case client.ExecReplaced:
		if r.ExecType = '5'; v == fix.FIX42 {
			r.OrdStatus = '5'
		}
	case client.ExecTriggered:
		r.Status, r.Text = true, "the stop price is reached"
	}
	x.body.Report(v, &r)
	return fix.Sent{TimeNs: at.timeNs, Type: "8", Body: x.body.Fields(), Kept: true, Refused: refused}
}

// statusID returns the OrdStatusReqID of the message, which FIX 4.2 does not have.
func (x *former) statusID(v fix.Version) []byte {
	if v == fix.FIX42 || typeOf(&x.m) != 'H' {
		return nil
	}
	return x.m.Get(790)
}

var zero = []byte("0")

// statusOf returns the OrdStatus of an order in the book.
func statusOf(filled bool) byte {
	if filled {
		return '1'
	}
	return '0'
}

// rejection returns the OrdRejReason of an order that did not enter the book.
func rejection(v fix.Version, reason match.Reason) string {
	switch reason {
	case match.UnknownInstrument:
		return rejectSymbol
	case match.NotInState:
		return rejectClosed
	case match.QtyTooLarge, match.Overflow, match.OutsideBand:
		return rejectLimit
	}
	if v == fix.FIX42 {
		return rejectOther42
	}
	return rejectOther
}

// averageDigits are those of an average behind the digits of prices.
const averageDigits = 4

// average returns value / qty in units of prices, rounded down, without zeros at the end.
func average(value [2]uint64, qty int64, digits uint8) []byte {
	hi, lo := value[0], value[1]
	negative := hi>>63 != 0
	if negative {
		var carry uint64
		lo, carry = bits.Add64(^lo, 1, 0)
		hi = ^hi + carry
	}
	n, rest := bits.Div64(hi%uint64(qty), lo, uint64(qty)) // hi is below qty: no price exceeds 63 bits
	text := []byte(client.Decimal(int64(n), digits))
	if negative {
		text = append([]byte{'-'}, text...)
	}
	if rest == 0 {
		return text
	}
	if digits == 0 {
		text = append(text, '.')
	}
	for range averageDigits {
		hi, lo = bits.Mul64(rest, 10)
		n, rest = bits.Div64(hi, lo, uint64(qty))
		text = append(text, '0'+byte(n))
	}
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	if text[len(text)-1] == '.' {
		text = text[:len(text)-1]
	}
	return text
}
