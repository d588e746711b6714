package querytest

import (
	"fmt"
	"strconv"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Bulk orders are of 1,000 symbols and 10,000 accounts, 305 bytes each, the fourth of each
// four a cancel of the third: what they hold follows from their number, so large logs need
// no second copy of their rows.

func bulkSymbol(n uint64) uint64  { return mix(n) % 1000 }
func bulkAccount(n uint64) uint64 { return mix(n^0x5555) % 10_000 }

// BulkSymbol is the symbol of order n.
func BulkSymbol(n uint64) string { return fmt.Sprintf("SYM%03d", bulkSymbol(n)) }

// BulkAccount is the account of order n.
func BulkAccount(n uint64) string { return fmt.Sprintf("ACC%05d", bulkAccount(n)) }

// BulkQty is 1 to 9,999.
func BulkQty(n uint64) int64 { return int64(1 + mix(n^0x3333)%9999) }

// BulkPrice in hundredths: 10.00 to 999.99.
func BulkPrice(n uint64) int64 { return int64(1000 + mix(n^0x7777)%99_000) }

// BulkID is the ClOrdID of order n.
func BulkID(n uint64) string { return fmt.Sprintf("P0123456789%09d", n) }

func mix(n uint64) uint64 {
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

const bulkText = "an order that is as long as the published ones are, which have about three hundred bytes in all"

// Bulk is order n, without cancels if plain. dst is used again.
func Bulk(dst []byte, n uint64, plain bool) []byte {
	cancel := n%4 == 0 && !plain
	var body [400]byte
	b := body[:0]
	if cancel {
		b = append(b, "35=F\x01"...)
	} else {
		b = append(b, "35=D\x01"...)
	}
	b = append(b, "49=BUYSIDE-GATEWAY-01\x0156=ORDERGRID\x0134="...)
	b = strconv.AppendUint(b, 1+n%1_000_000, 10)
	b = padded(append(b, "\x0152=20260101-12:00:00.000\x0111=P0123456789"...), n, 9)
	if cancel {
		b = padded(append(b, "\x0141=P0123456789"...), n-1, 9)
	}
	b = padded(append(b, "\x011=ACC"...), bulkAccount(n), 5)
	b = padded(append(b, "\x0121=1\x0155=SYM"...), bulkSymbol(n), 3)
	b = append(append(b, "\x0154="...), '1'+byte(n%2))
	b = strconv.AppendInt(append(b, "\x0138="...), BulkQty(n), 10)
	if !cancel {
		b = append(b, "\x0140=2"...)
	}
	p := uint64(BulkPrice(n))
	b = strconv.AppendUint(append(b, "\x0144="...), p/100, 10)
	b = padded(append(b, '.'), p%100, 2)
	ms := n / 10
	b = padded(append(b, "\x0159=0\x0160=20260101-"...), 12+ms/3_600_000%12, 2)
	b = padded(append(b, ':'), ms/60_000%60, 2)
	b = padded(append(b, ':'), ms/1000%60, 2)
	b = padded(append(b, '.'), ms%1000, 3)
	b = append(b, "\x01100=XNAS\x0115=USD\x0147=A\x0158="...)
	b = append(append(b, bulkText[:max(1, 305-len(b)-24)]...), order.SOH)
	dst = strconv.AppendInt(append(dst[:0], "8=FIX.4.4\x019="...), int64(len(b)), 10)
	dst = append(append(dst, order.SOH), b...)
	sum := order.CheckSum(dst)
	return append(padded(append(dst, "10="...), uint64(sum), 3), order.SOH)
}

// padded appends n in so many digits.
func padded(b []byte, n uint64, digits int) []byte {
	for range digits {
		b = append(b, '0')
	}
	for i := len(b) - 1; n > 0; i-- {
		b[i] += byte(n % 10)
		n /= 10
	}
	return b
}

// AddBulk appends orders from..to, whose numbers are those of their entries.
func (c *Case) AddBulk(from, to uint64, plain bool, publish uint64) error {
	for n := from; n <= to; n++ {
		if err := c.StoreBulk(n, plain); err != nil {
			return err
		}
		if err := c.View.Apply(c.Store.Read(n)); err != nil {
			return err
		}
		if n%publish == 0 || n == to {
			c.View.Publish()
		}
	}
	return nil
}

// StoreBulk appends order n to the log only.
func (c *Case) StoreBulk(n uint64, plain bool) error {
	c.bulk = Bulk(c.bulk, n, plain)
	msg := c.bulk
	var o order.Order
	if err := c.layouts.Parse(msg, &o); err != nil {
		return err
	}
	e := order.Entry{Kind: order.KindOrder, Epoch: 1, Session: 1, ClientSeq: n, TimeNs: start + int64(n)*100_000, Fields: o.Fields}
	if err := c.Store.Append(&e, msg); err != nil {
		return err
	}
	c.Store.SetCommitted(e.Seq)
	return nil
}

// AddMessage appends a small order, cancel or replace.
func (c *Case) AddMessage(kind, id, orig string) error {
	b := "35=" + kind + "\x0149=S\x0156=T\x0134=1\x0152=20260101-00:00:00\x0111=" + id + "\x01"
	if orig != "" {
		b += "41=" + orig + "\x01"
	}
	msg := seal(b + "21=1\x0155=IBM\x0154=1\x0138=5\x0140=1\x0160=20260101-00:00:00\x01")
	var o order.Order
	if err := order.Parse(msg, &o); err != nil {
		return err
	}
	e := order.Entry{Kind: order.KindOrder, Epoch: 1, Session: 1, ClientSeq: 1, TimeNs: start, Fields: o.Fields}
	if err := c.Store.Append(&e, msg); err != nil {
		return err
	}
	c.Store.SetCommitted(e.Seq)
	if err := c.View.Apply(c.Store.Read(e.Seq)); err != nil {
		return err
	}
	c.View.Publish()
	return nil
}
