package wire

import "math"

// A book order by order: a client reads it in pages, and from then on what changes.
const (
	TypeReadOrders  Type = 0x16
	TypeOrdersShown Type = 0x17
)

var orderBookFrames = []Frame{
	{Type: TypeReadOrders, Name: "ReadOrders", From: FromClient, ToReplica: true, Needs: MayWatch, Feature: FeatureReadOrders, codec: codecOn(DecodeReadOrders, AppendReadOrders),
		Example: &ReadOrders{ReqID: 16, Since: OrdersAt{Seq: 20, Index: 2}, From: OrdersPlace{Side: 1, Price: 12520, Prio: 7, Order: 19}, Most: MostShown, Symbol: []byte("IBM")}},
	{Type: TypeOrdersShown, Name: "OrdersShown", From: FromNode, codec: codecOn(DecodeOrdersShown, AppendOrdersShown),
		Example: &OrdersShown{ReqID: 16, Seq: 22, Hash: 0x1122334455667788, Through: OrdersAt{Seq: 22, Index: math.MaxUint32}, NChanges: 1, NOrders: 1, Flags: OrdersComplete, PriceDigits: 2, Book: 5,
			To:   OrdersPlace{Side: OrdersEnd},
			Rows: AppendShownOrder(AppendShownChange(nil, &ShownChange{At: OrdersAt{Seq: 22, Index: 1}, Kind: ShownTraded, Side: 1, ID: 17, Prio: 6, Price: 12520, Qty: 70, Traded: 30}), &ShownOrder{ID: 21, Prio: 8, Price: 12530, Qty: 40})}},
}

// OrdersAt is a place among the changes of a book: behind the change of this index, from 1 on, of an entry. MaxUint32 is behind
// all changes of the entry.
type OrdersAt struct {
	Seq   uint64
	Index uint32
}

// Before reports whether p is an earlier place.
func (p OrdersAt) Before(q OrdersAt) bool {
	return p.Seq < q.Seq || p.Seq == q.Seq && p.Index < q.Index
}

// OrdersPlace is a place in a book: behind an order of a side that was there. Prio 0 is before all orders of the side.
// A client sends back what it was told.
type OrdersPlace struct {
	Side        uint8 // 1 bids, 2 asks, 3 behind all
	Price       int64
	Prio, Order uint64
}

// OrdersEnd is the side of the place behind all orders.
const OrdersEnd uint8 = 3

// ReadOrders requests, of a primary or backup, what has changed in a book and a page of its orders.
type ReadOrders struct {
	ReqID  uint64
	Since  OrdersAt    // what the client has; Seq 0: nothing
	From   OrdersPlace // what is behind it, it has not
	Most   uint16      // changes of an answer at most, and orders; 1..MostShown
	Symbol []byte
}

func (m *ReadOrders) request() (uint64, uint32) { return m.ReqID, 0 }

const readOrdersFixed = HeaderSize + 48

// AppendReadOrders appends a ReadOrders frame.
func AppendReadOrders(dst []byte, p PartitionID, m *ReadOrders) []byte {
	dst, f := begin(dst, TypeReadOrders, 0, p, readOrdersFixed+size8(m.Symbol))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Since.Seq)
	le.PutUint32(f[24:], m.Since.Index)
	f[28], f[29] = m.From.Side, 0
	le.PutUint16(f[30:], m.Most)
	putPlace(f[32:], &m.From)
	putString8(f[readOrdersFixed:], m.Symbol)
	return dst
}

func putPlace(b []byte, p *OrdersPlace) {
	le.PutUint64(b, uint64(p.Price))
	le.PutUint64(b[8:], p.Prio)
	le.PutUint64(b[16:], p.Order)
}

func placeOf(side uint8, b []byte) OrdersPlace {
	return OrdersPlace{Side: side, Price: int64(le.Uint64(b)), Prio: le.Uint64(b[8:]), Order: le.Uint64(b[16:])}
}

// DecodeReadOrders decodes a ReadOrders frame.
func DecodeReadOrders(f []byte, m *ReadOrders) (err error) {
	if err = open(f, TypeReadOrders, readOrdersFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Since, m.From, m.Most = le.Uint64(f[8:]), OrdersAt{le.Uint64(f[16:]), le.Uint32(f[24:])}, placeOf(f[28], f[32:]), le.Uint16(f[30:])
	switch {
	case m.From.Side < 1 || m.From.Side > OrdersEnd:
		return &FrameError{Type: TypeReadOrders, Field: "side", Value: uint64(m.From.Side), Allowed: "1 bids, 2 asks, 3 behind all"}
	case m.Most < 1 || m.Most > MostShown:
		return &FrameError{Type: TypeReadOrders, Field: "most", Value: uint64(m.Most), Allowed: "1..256"}
	}
	var rest []byte
	if m.Symbol, rest, err = cutString8(f[readOrdersFixed:], TypeReadOrders, "symbol"); err != nil {
		return err
	}
	return done(rest, TypeReadOrders)
}

// Flags of OrdersShown.
const (
	OrdersAnew     uint8 = 1 << iota // what the client had is not continued: it begins with this page
	OrdersMore                       // there are further changes, up to Seq: the client asks again
	OrdersComplete                   // with this answer the client has all orders, as they are after Seq
)

// MostShown bounds the changes of an answer, and its orders.
const MostShown = 256

// Kinds of a ShownChange.
const (
	ShownAdded   uint8 = 1 // at the end of the queue of its price
	ShownChanged uint8 = 2 // it keeps its priority
	ShownRemoved uint8 = 3
	ShownTraded  uint8 = 4 // it shows less by Traded; Qty 0: it is removed
)

// ShownChangeSize and ShownOrderSize are the sizes of a change and of an order.
const (
	ShownChangeSize = 56
	ShownOrderSize  = 32
)

// ShownChange is what changed in an order that a book shows.
type ShownChange struct {
	At                 OrdersAt
	Kind, Side         uint8
	ID, Prio           uint64 // the entry that the order began with; the priority rises along the queue of a price
	Price, Qty, Traded int64  // in the units of the instrument; Qty is what it shows after it
}

// ShownOrder is an order that a book shows.
type ShownOrder struct {
	ID, Prio   uint64
	Price, Qty int64
}

// AppendShownChange appends a change.
func AppendShownChange(dst []byte, c *ShownChange) []byte {
	dst = le.AppendUint32(le.AppendUint64(dst, c.At.Seq), c.At.Index)
	dst = append(dst, c.Kind, c.Side, 0, 0)
	for _, v := range [...]uint64{c.ID, c.Prio, uint64(c.Price), uint64(c.Qty), uint64(c.Traded)} {
		dst = le.AppendUint64(dst, v)
	}
	return dst
}

// AppendShownOrder appends an order.
func AppendShownOrder(dst []byte, o *ShownOrder) []byte {
	for _, v := range [...]uint64{o.ID, o.Prio, uint64(o.Price), uint64(o.Qty)} {
		dst = le.AppendUint64(dst, v)
	}
	return dst
}

// OrdersShown answers a ReadOrders by the book as it is after a committed entry: changes up to it and, if there are no
// further ones, the orders behind the place that was asked for.
type OrdersShown struct {
	ReqID             uint64
	Seq, Hash         uint64   // the entry, which is committed
	Through           OrdersAt // the changes reach up to it
	NChanges, NOrders uint16
	NBids             uint16 // of the orders; the others are asks
	Flags             uint8
	PriceDigits       uint8 // behind the point
	QtyDigits         uint8
	Book              uint16 // its number, which records of executions have
	To                OrdersPlace
	Rows              []byte // changes, of ShownChangeSize each, then orders, of ShownOrderSize each
}

const ordersShownFixed = HeaderSize + 72

// AppendOrdersShown appends an OrdersShown frame.
func AppendOrdersShown(dst []byte, p PartitionID, m *OrdersShown) []byte {
	dst, f := begin(dst, TypeOrdersShown, 0, p, ordersShownFixed+len(m.Rows))
	for i, v := range [...]uint64{m.ReqID, m.Seq, m.Hash, m.Through.Seq} {
		le.PutUint64(f[8+8*i:], v)
	}
	le.PutUint32(f[40:], m.Through.Index)
	le.PutUint16(f[44:], m.NChanges)
	le.PutUint16(f[46:], m.NOrders)
	f[48], f[49], f[50], f[51] = m.Flags, m.PriceDigits, m.QtyDigits, m.To.Side
	le.PutUint16(f[52:], m.Book)
	le.PutUint16(f[54:], m.NBids)
	putPlace(f[56:], &m.To)
	copy(f[ordersShownFixed:], m.Rows)
	return dst
}

// DecodeOrdersShown decodes an OrdersShown frame.
func DecodeOrdersShown(f []byte, m *OrdersShown) error {
	if err := open(f, TypeOrdersShown, ordersShownFixed, false); err != nil {
		return err
	}
	*m = OrdersShown{ReqID: le.Uint64(f[8:]), Seq: le.Uint64(f[16:]), Hash: le.Uint64(f[24:]), Through: OrdersAt{le.Uint64(f[32:]), le.Uint32(f[40:])},
		NChanges: le.Uint16(f[44:]), NOrders: le.Uint16(f[46:]), Flags: f[48], PriceDigits: f[49], QtyDigits: f[50], Book: le.Uint16(f[52:]), NBids: le.Uint16(f[54:]),
		To: placeOf(f[51], f[56:]), Rows: f[ordersShownFixed:]}
	switch {
	case m.To.Side < 1 || m.To.Side > OrdersEnd:
		return &FrameError{Type: TypeOrdersShown, Field: "side", Value: uint64(m.To.Side), Allowed: "1 bids, 2 asks, 3 behind all"}
	case m.NBids > m.NOrders:
		return &FrameError{Type: TypeOrdersShown, Field: "nBids", Value: uint64(m.NBids), Allowed: "at most nOrders"}
	case m.NChanges > MostShown || m.NOrders > MostShown || int(m.NChanges)*ShownChangeSize+int(m.NOrders)*ShownOrderSize != len(m.Rows):
		return &FrameError{Type: TypeOrdersShown, Field: "rows", Value: uint64(len(m.Rows)), Allowed: "up to 256 changes and as many orders, as many as the bytes that follow are"}
	}
	for i := range int(m.NChanges) {
		b := m.Rows[i*ShownChangeSize:]
		if b[12] < ShownAdded || b[12] > ShownTraded || b[13] < 1 || b[13] > 2 {
			return &FrameError{Type: TypeOrdersShown, Field: "kind and side", Value: uint64(b[12])<<8 | uint64(b[13]), Allowed: "kind 1..4, side 1 or 2"}
		}
	}
	return nil
}

// Change returns a change of the answer.
func (m *OrdersShown) Change(i int) ShownChange {
	b := m.Rows[i*ShownChangeSize:]
	return ShownChange{At: OrdersAt{le.Uint64(b), le.Uint32(b[8:])}, Kind: b[12], Side: b[13], ID: le.Uint64(b[16:]), Prio: le.Uint64(b[24:]),
		Price: int64(le.Uint64(b[32:])), Qty: int64(le.Uint64(b[40:])), Traded: int64(le.Uint64(b[48:]))}
}

// Order returns an order of the answer, and its side.
func (m *OrdersShown) Order(i int) (o ShownOrder, side uint8) {
	b := m.Rows[int(m.NChanges)*ShownChangeSize+i*ShownOrderSize:]
	if side = 2; i < int(m.NBids) {
		side = 1
	}
	return ShownOrder{ID: le.Uint64(b), Prio: le.Uint64(b[8:]), Price: int64(le.Uint64(b[16:])), Qty: int64(le.Uint64(b[24:]))}, side
}
