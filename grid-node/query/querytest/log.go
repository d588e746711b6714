// Package querytest makes logs of random orders, random questions, and the answers that a
// plain loop over the rows gives. It is for tests: of package query, and of the same
// against a database.
package querytest

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// Source of random numbers: IntN returns one from 0 to n-1.
type Source interface{ IntN(n int) int }

// Further tags of the views of this package.
const (
	Desk   view.Field = 5001 // text
	Limit  view.Field = 9001 // decimal
	Expire view.Field = 126  // time
)

// Case is a log, a view of it, and its rows.
type Case struct {
	Store   *store.Store
	View    *view.View
	Rows    []Row
	ids     []string
	bulk    []byte
	layouts order.Layouts
	Plain   bool // decimals and times of a length that any database holds
}

// Options of the views of this package.
func Options(s *store.Store, base uint64, rows int) view.Options {
	return view.Options{
		Log: s, Base: base, Memory: 256 << 20, Rows: rows, Values: 16384,
		Extra:    []view.Extra{{Tag: uint32(Desk), Name: "Desk", Kind: view.Text}, {Tag: uint32(Limit), Name: "Cap", Kind: view.Decimal}, {Tag: uint32(Expire), Name: "ExpireTime", Kind: view.Time}},
		Postings: []view.Field{view.Symbol, view.Account, Desk},
		Ordered:  []view.Field{view.Price, view.TransactTime},
	}
}

// New makes a case of an empty log that begins after an entry.
func New(base uint64, rows int) (*Case, error) {
	s, err := store.New(store.Options{})
	if err != nil {
		return nil, err
	}
	if base > 0 {
		if err := s.SetBase(base, 1, 0, 0); err != nil {
			return nil, err
		}
	}
	v, err := view.New(Options(s, base, rows))
	if err != nil {
		s.Close()
		return nil, err
	}
	return &Case{Store: s, View: v}, nil
}

// Close releases the memory.
func (c *Case) Close() {
	c.View.Close()
	c.Store.Close()
}

// Add appends n random entries to log and view.
func (c *Case) Add(r Source, n int) error {
	for range n {
		e, payload := c.entry(r)
		if err := c.Store.Append(&e, payload); err != nil {
			return err
		}
		c.Store.SetCommitted(e.Seq)
		if err := c.View.Apply(c.Store.Read(e.Seq)); err != nil {
			return err
		}
		if e.Kind == order.KindOrder {
			c.Rows = append(c.Rows, c.row(&e, string(payload)))
		}
	}
	c.View.Publish()
	return nil
}

var start = int64(1767225600e9) // 2026-01-01

// entry makes a random entry, one in twelve no order.
func (c *Case) entry(r Source) (order.Entry, []byte) {
	last, _ := c.Store.Last()
	e := order.Entry{Kind: order.KindCursor, Epoch: 1, TimeNs: start + int64(last)*1_000_003 + int64(r.IntN(2_000_000))}
	if r.IntN(40) == 0 && !c.Plain {
		e.TimeNs += int64(r.IntN(1000)-500) * 3600e9
	}
	if r.IntN(12) == 0 {
		return e, []byte{1, 0, 0, 0, 0, 0, 0, 0}
	}
	e.Kind, e.Session, e.ClientSeq = order.KindOrder, uint32(pick(r, 0, 1, 2, 7, 65535)), 1
	msg := c.message(r, last+1)
	var o order.Order
	if err := order.Parse(msg, &o); err != nil {
		panic(fmt.Sprintf("querytest: %v in %q", err, msg)) // a bug of this package
	}
	e.Fields = o.Fields
	return e, msg
}

func pick[T any](r Source, of ...T) T { return of[r.IntN(len(of))] }

// message makes a random valid order.
func (c *Case) message(r Source, seq uint64) []byte {
	kind, b := pick(r, 'D', 'D', 'D', 'F', 'G'), &strings.Builder{}
	field := func(tag int, value any) { fmt.Fprintf(b, "%d=%v\x01", tag, value) }
	id := fmt.Sprintf("%s%d", pick(r, "A", "B-", "41=", "longer-identifier-"), seq)
	field(35, string(kind))
	field(49, "S")
	field(56, "T")
	field(34, seq)
	field(52, "20260101-00:00:00")
	if r.IntN(8) == 0 {
		raw := pick(r, "x", "\x0160=20200101-00:00:00\x0141=no", "1=\x0159=6")
		field(95, len(raw))
		field(96, raw)
	}
	field(11, id)
	if kind != 'D' {
		orig := pick(r, "none", fmt.Sprint("other", r.IntN(5)))
		if len(c.ids) > 0 && r.IntN(5) > 0 {
			orig = c.ids[max(0, len(c.ids)-1-r.IntN(20))]
		}
		field(41, orig)
	}
	c.ids = append(c.ids, id)
	if r.IntN(6) > 0 {
		field(1, pick(r, fmt.Sprint("ACC", r.IntN(30)), fmt.Sprint("A", r.IntN(4)), "house"))
	}
	field(21, 1)
	field(55, Symbols[r.IntN(len(Symbols))])
	field(54, pick(r, "1", "2", "5"))
	field(38, c.decimal(r, false))
	if r.IntN(4) > 0 {
		field(44, c.decimal(r, true))
	}
	if kind != 'F' {
		field(40, "1")
	}
	if r.IntN(3) > 0 {
		field(59, pick(r, "0", "1", "3"))
	}
	field(60, c.time(r, seq))
	if r.IntN(3) > 0 {
		field(int(Desk), pick(r, "fx", "rates", "eq", fmt.Sprint("d", r.IntN(300))))
	}
	if r.IntN(3) == 0 {
		field(int(Limit), pick(r, c.decimal(r, true), "7", "none at all"))
	}
	if r.IntN(5) == 0 {
		field(int(Expire), c.time(r, seq))
	}
	return seal(b.String())
}

// Symbols of orders.
var Symbols = []string{"IBM", "AAPL", "A", "AA", "MSFT", "EUR/USD", "BRK.B", "VOD.L", "SIE.DE", "AB", "ABC", "ZZZZ-LONGER-THAN-EIGHT", "ZZZZ-LONGER-THAN-NINE",
	"S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9"}

func (c *Case) decimal(r Source, signed bool) string {
	minus := ""
	if signed && r.IntN(6) == 0 {
		minus = "-"
	}
	n := r.IntN(14)
	if c.Plain {
		n = n % 8
	}
	switch n {
	case 8:
		return pick(r, "99999999999999999999", "12345678901.5", "92233720368.54775807", "92233720368.5477580")
	case 9:
		return minus + pick(r, ".123456789012345678", "1.000000001", "0.00000001")
	case 10:
		return minus + pick(r, "10", "10.0", "010", "10.")
	}
	return fmt.Sprintf("%s%d.%02d", minus, 1+r.IntN(40), r.IntN(3)*25)
}

func (c *Case) time(r Source, seq uint64) string {
	if n := r.IntN(30); n == 0 && !c.Plain {
		return pick(r, "20991231-23:59:59", "19700101-00:00:00.001", "20261231-23:59:60")
	}
	s := fmt.Sprintf("20260101-%02d:%02d:%02d", seq/3600%24, seq/60%60, r.IntN(60))
	if r.IntN(2) == 0 {
		s += fmt.Sprintf(".%03d", r.IntN(1000))
	}
	return s
}

// seal makes a message of FIX 4.4, or of FIX 5.0 SP2: which depends on the length.
func seal(body string) []byte {
	version := "FIX.4.4"
	if len(body)%3 == 0 {
		version = "FIXT.1.1"
	}
	m := fmt.Sprintf("8=%s\x019=%d\x01%s", version, len(body), body)
	return fmt.Appendf(nil, "%s10=%03d\x01", m, order.CheckSum([]byte(m)))
}
