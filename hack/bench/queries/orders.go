package queries

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Of every order.
const (
	// orderSize is the bytes of its FIX message.
	orderSize = 300
	accounts  = 10_000
	symbols   = 1_000
	// leastCents is the least price; there are as many as ticks, a cent each.
	leastCents, ticks = 10_000, 10_000
	leastQty, qtys    = 1_000, 1_000
	// hotAccount and hotQty are of the orders that a question by equality finds, and of no other.
	hotAccount, hotQty = "ACC10000", 7_777
	hotRows            = 100
	// dayMs is the time in which all orders were made, one after the other.
	dayMs = 5 * 3600 * 1000
)

// begins is when the first one was made.
var begins = time.Date(2026, 11, 23, 9, 30, 0, 0, time.UTC)

// Order is an order as it is loaded. Fields of the message have a fixed width, so that they are at the same places in all.
type Order struct {
	ID, Account, Symbol string
	Side, OrdType, TIF  string
	Cents, Qty          int64
	Ms                  int64 // of TransactTime, since 1970
	FIX                 []byte
}

// Orders are those of a run: each follows from its number.
type Orders struct {
	N int
	// message is the template, and the others are where its fields are.
	message                                           []byte
	id, account, symbol, side, qty, price, tif, stamp int
}

// NewOrders are n orders.
func NewOrders(n int) *Orders {
	o := &Orders{N: n}
	body := func(pad int) string {
		return fmt.Sprintf("35=D\x0149=BENCH\x0156=GRID\x0134=000000001\x0152=20261123-09:30:00.000\x0111=Q000000000\x011=ACC00000\x0121=1\x0155=S0000\x0154=1\x01"+
			"60=20261123-09:30:00.000\x0138=1000\x0140=2\x0144=100.00\x0159=0\x0115=USD\x0158=%s\x01", bytes.Repeat([]byte{'.'}, pad))
	}
	const around = len("8=FIX.4.2\x019=000\x01") + len("10=000\x01")
	text := body(orderSize - around - len(body(0)))
	o.message = []byte("8=FIX.4.2\x019=" + strconv.Itoa(len(text)) + "\x01" + text + "10=000\x01")
	at := func(tag string) int { return bytes.Index(o.message, []byte("\x01"+tag+"=")) + len(tag) + 2 }
	o.id, o.account, o.symbol, o.side, o.qty, o.price, o.tif, o.stamp = at("11"), at("1"), at("55"), at("54"), at("38"), at("44"), at("59"), at("60")
	return o
}

// mixed is a number that follows from n and looks like no other (SplitMix64).
func mixed(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// Of returns order number i.
func (o *Orders) Of(i int) Order {
	r := mixed(uint64(i))
	x := Order{ID: fmt.Sprintf("Q%09d", i), Account: fmt.Sprintf("ACC%05d", r%accounts), Symbol: fmt.Sprintf("S%04d", r>>16%symbols), Side: "1", OrdType: "2", TIF: "0",
		Cents: leastCents + int64(r>>28%ticks), Qty: leastQty + int64(r>>44%qtys), Ms: o.ms(i)}
	if o.hot(i) {
		x.Account, x.Qty = hotAccount, hotQty
	}
	if sells(i) {
		x.Side = "2"
	}
	m := bytes.Clone(o.message)
	copy(m[o.id:], x.ID)
	copy(m[o.account:], x.Account)
	copy(m[o.symbol:], x.Symbol)
	copy(m[o.side:], x.Side)
	copy(m[o.qty:], strconv.FormatInt(x.Qty, 10))
	copy(m[o.price:], fmt.Sprintf("%d.%02d", x.Cents/100, x.Cents%100))
	copy(m[o.stamp:], time.UnixMilli(x.Ms).UTC().Format("20060102-15:04:05.000"))
	x.FIX = sealed(m)
	return x
}

// sealed is a message with its checksum.
func sealed(m []byte) []byte {
	end := len(m) - len("10=000\x01")
	copy(m[end:], fmt.Sprintf("10=%03d", order.CheckSum(m[:end])))
	return m
}

// ms is when order i was made: they rise.
func (o *Orders) ms(i int) int64 { return begins.UnixMilli() + int64(i)*dayMs/int64(o.N) }

// hot reports whether order i is one of those that a question by equality finds, which are all over the log.
func (o *Orders) hot(i int) bool {
	each := max(1, o.N/hotRows)
	return i%each == each/2 && i/each < hotRows
}

// sells reports whether order i sells: 40 % do, and these are patched.
func sells(i int) bool { return i%5 < 2 }

// patchedTIF is the TimeInForce of orders that are patched.
const patchedTIF = "1"

// batchSize is how many orders a system is given at once to load.
const batchSize = 50_000

// batches calls load with all orders, and sums up its times.
func (o *Orders) batches(load func([]Order) (time.Duration, error)) (sum time.Duration, err error) {
	batch := make([]Order, 0, min(batchSize, o.N))
	for i := range o.N {
		if batch = append(batch, o.Of(i)); len(batch) < cap(batch) && i < o.N-1 {
			continue
		}
		took, err := load(batch)
		if err != nil {
			return 0, err
		}
		sum, batch = sum+took, batch[:0]
	}
	return sum, nil
}
