package flow

// Kind of a message, as FIX MsgType (35).
type Kind byte

// Kinds.
const (
	NewOrder Kind = 'D'
	Cancel   Kind = 'F'
	Replace  Kind = 'G'
)

// Message is the content of one order. Prices are in units of 1/10,000.
type Message struct {
	Kind Kind
	// Target is the message within the step that a cancel or replace refers to: the order, or its
	// last replacement. -1 for a new order.
	Target int64
	Symbol string
	Side   byte // FIX 54: '1' buy, '2' sell, '5' sell short
	Type   byte // FIX 40: '1' market, '2' limit, '4' stop limit
	Time   byte // FIX 59: '0' day, '1' good till cancel
	Qty    uint32
	Price  uint32 // 0 for a market order
	Stop   uint32 // of a stop limit order
}

// Messages are the contents of a step's orders. They are regenerated on every call, so that sending
// and checking need not share or store them. Message may be called by several goroutines.
type Messages struct {
	seed   uint64
	events []event
	// recorded[i] is the recorded message i; nil for generated ones, which follow from the seed.
	recorded []recorded
	symbols  []string
}

// event is the effect of a message: root is the order it belongs to, target the message it changes.
// A new order is its own root.
type event struct {
	target, root int32
}

// Len is the number of messages.
func (m *Messages) Len() int64 { return int64(len(m.events)) }

// Kind of message i.
func (m *Messages) Kind(i int64) Kind {
	switch e := m.events[i]; {
	case e.target < 0:
		return NewOrder
	case e.root < 0:
		return Replace
	}
	return Cancel
}

// Message writes the content of message i into into.
func (m *Messages) Message(i int64, into *Message) {
	e := m.events[i]
	root := int64(e.root)
	if root < 0 { // the mark of a replace
		root = ^root
	}
	*into = Message{Kind: m.Kind(i), Target: int64(e.target)}
	if m.recorded != nil {
		m.fromRecord(i, into)
		return
	}
	m.draw(uint64(root), into)
	if into.Kind == Replace {
		redraw(hash(m.seed^replaceSalt, uint64(i)), into)
	}
}

func (m *Messages) fromRecord(i int64, into *Message) {
	r := &m.recorded[i]
	into.Symbol, into.Side, into.Type, into.Time = m.symbols[r.symbol], r.side, r.orderType, '0'
	into.Qty, into.Price, into.Stop = r.qty, r.price, 0
}
