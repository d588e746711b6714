package limits

import (
	"encoding/binary"
	"math"
	"testing"
)

// TestHostile: what no honest client sends is refused, by the reason it gives, and leaves
// the state as it was.
func TestHostile(t *testing.T) {
	good := Op{Kind: Enter, ID: 9, Party: 1, Side: Buy, Price: 100, Qty: 10}
	with := func(f func(*Op)) Op {
		op := good
		f(&op)
		return op
	}
	l := newAs(t, flowConfig)
	before := l.Digest()
	for _, c := range []struct {
		name string
		op   Op
		want Reason
	}{
		{"party 0", with(func(o *Op) { o.Party = 0 }), UnknownParty},
		{"party beyond", with(func(o *Op) { o.Party = math.MaxUint32 }), UnknownParty},
		{"symbol beyond", with(func(o *Op) { o.Symbol = math.MaxUint16 }), UnknownSymbol},
		{"side", with(func(o *Op) { o.Side = 0xff }), BadField},
		{"quantity 0", with(func(o *Op) { o.Qty = 0 }), BadQty},
		{"lowest quantity", with(func(o *Op) { o.Qty = math.MinInt64 }), BadQty},
		{"2^32 x 2^32", with(func(o *Op) { o.Price, o.Qty = 1<<32, 1<<32 }), Overflow},
		{"2^62 x 4", with(func(o *Op) { o.Price, o.Qty = 1<<62, 4 }), Overflow},
		{"lowest price", with(func(o *Op) { o.Price = math.MinInt64 }), Overflow},
		{"largest of both", with(func(o *Op) { o.Price, o.Qty = math.MaxInt64, math.MaxInt64 }), Overflow},
		{"63 bits, more than the credit", with(func(o *Op) { o.Price, o.Qty = math.MaxInt64, 1 }), ClientCredit},
		{"market without a collar", with(func(o *Op) { o.Market = true }), NoPrice},
		{"id 0", with(func(o *Op) { o.ID = 0 }), BadID},
		{"replace of none", Op{Kind: Replace, Party: 1, Orig: 5, Price: 1, Qty: 1}, UnknownOrder},
		{"fill of none", Op{Kind: Filled, ID: 5, Price: 1, Qty: 1}, UnknownOrder},
		{"done of none", Op{Kind: Done, ID: 5}, UnknownOrder},
		{"kind 0", Op{}, BadField},
		{"kind beyond", Op{Kind: 0xff}, BadField},
	} {
		if got := l.Apply(&c.op); got != c.want || got.String() == "" {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if l.Digest() != before {
			t.Errorf("%s changed the state", c.name)
		}
	}
	for _, op := range []Op{good, {Kind: Filled, ID: 9, Price: 100, Qty: 4}} {
		if why := l.Apply(&op); why != None {
			t.Fatalf("%+v: %v", op, why)
		}
	}
	before = l.Digest()
	for _, c := range []struct {
		name       string
		price, qty int64
	}{{"more than is left", 100, 7}, {"above the limit", 101, 1}, {"quantity 0", 100, 0}, {"below 0", 100, -1}} {
		if got := l.Apply(&Op{Kind: Filled, ID: 9, Price: c.price, Qty: c.qty}); got != Beyond || l.Digest() != before {
			t.Errorf("fill of %s: %q, want %q and the state as it was", c.name, got, Beyond)
		}
	}
}

// TestTimeGoesBack: a clock that was set back delays by at most a window, and makes at most
// one burst of messages: no limit waits for the time that was.
func TestTimeGoesBack(t *testing.T) {
	l := newAs(t, flowConfig)
	l.Change(&Change{Kind: SetProfile, N: 1, Who: 7, Rules: Rules{Rate: 1, Burst: 2, DuplicateWindow: 10 * second}})
	l.Change(&Change{Kind: SetSession, N: 1, Profile: 1, Who: 7, Time: 100 * second})
	for i, c := range []struct {
		ms   int64
		want Reason
	}{
		{100_000, None}, {99_500, Duplicate}, {99_600, TooManyMessages}, {100_500, TooManyMessages}, {101_000, Duplicate},
		{97_000, Duplicate}, {97_000, Duplicate}, {97_000, TooManyMessages}, {80_000, None}, {80_000, Duplicate}, {80_000, TooManyMessages},
	} {
		if got := l.Apply(&Op{Time: c.ms * 1e6, Kind: Enter, ID: uint64(i + 1), Party: 1, Side: Buy, Price: 100, Qty: 1}); got != c.want {
			t.Errorf("order %d, at %d ms: %q, want %q", i, c.ms, got, c.want)
		}
	}
}

// TestCreditIsNotMadeByMoving: between two partitions, whatever is given twice or late, there
// is never more credit than the home partition has.
func TestCreditIsNotMadeByMoving(t *testing.T) {
	home, other := newAs(t, flowConfig), newAs(t, flowConfig)
	other.Change(&Change{Kind: SetCredit, N: 1, Who: 7})
	home.Change(&Change{Kind: SetCredit, N: 1, Amount: 1000, Who: 7})
	give := Change{Kind: Give, N: 1, Amount: 600, Other: 1, Who: 7}
	take := Change{Kind: Take, N: 1, Amount: 600, Other: 0, Gift: 1, Who: 7}
	for _, c := range []struct {
		at         *Limits
		do         Change
		want       Reason
		home, away int64
	}{
		{home, give, None, 400, 0}, {home, give, NoCredit, 400, 0}, {other, take, None, 400, 600}, {other, take, BadGift, 400, 600},
		{other, Change{Kind: Give, N: 1, Amount: 601, Who: 7}, NoCredit, 400, 600},
		{home, Change{Kind: SetCredit, N: 1, Amount: 100, Who: 7}, None, -500, 600},
		{other, Change{Kind: Give, N: 1, Amount: 600, Who: 7}, None, -500, 0},
		{home, Change{Kind: Take, N: 1, Amount: 600, Other: 1, Gift: 1, Who: 7}, None, 100, 0},
	} {
		got := c.at.Change(&c.do)
		h, _ := home.Credit(1)
		a, _ := other.Credit(1)
		if got != c.want || h != c.home || a != c.away {
			t.Errorf("%+v: %q, %d here and %d there, want %q, %d, %d", c.do, got, h, a, c.want, c.home, c.away)
		}
	}
	if why := home.Apply(&Op{Kind: Enter, ID: 1, Party: 1, Side: Buy, Price: 101, Qty: 1}); why != ClientCredit {
		t.Errorf("an order of 101 with a credit of 100: %q, want %q", why, ClientCredit)
	}
}

// TestMarketOrderHasALimit: a market order is charged, and capped, at the end of the
// collar, and its executions use what they cost.
func TestMarketOrderHasALimit(t *testing.T) {
	l := newAs(t, flowConfig)
	l.Change(&Change{Kind: SetProfile, N: 1, Who: 7, Rules: Rules{CollarReference: 500}})
	for _, c := range []struct {
		side Side
		want int64
	}{{Buy, 105}, {Sell, 95}} {
		op := Op{Kind: Enter, ID: uint64(c.side), Party: 1, Side: c.side, Market: true, Qty: 10}
		if got := l.Cap(&op); got != c.want {
			t.Errorf("side %d: cap %d, want %d", c.side, got, c.want)
		}
		if why := l.Apply(&op); why != None {
			t.Fatal(why)
		}
	}
	if _, used := l.Credit(1); used != 1050+1000 { // a sell uses the reference price at least
		t.Errorf("%d of the credit used, want 2050", used)
	}
	l.Apply(&Op{Kind: Filled, ID: 1, Price: 99, Qty: 4})
	if _, used := l.Credit(1); used != 6*105+4*99+1000 {
		t.Errorf("%d of the credit used, want %d", used, 6*105+4*99+1000)
	}
	l.Apply(&Op{Kind: Done, ID: 1})
	if _, used := l.Credit(1); used != 4*99+1000 {
		t.Errorf("%d of the credit used, want %d", used, 4*99+1000)
	}
}

// TestCancelsHaveAReserve: a session that sends too much can still take its orders out.
func TestCancelsHaveAReserve(t *testing.T) {
	l := newAs(t, flowConfig)
	l.Change(&Change{Kind: SetProfile, N: 1, Who: 7, Rules: Rules{Rate: 1, Burst: 5, Reserve: 2}})
	l.Change(&Change{Kind: SetSession, N: 1, Profile: 1, Who: 7})
	passed := [2]int{}
	for i := range uint64(6) {
		if l.Apply(&Op{Kind: Enter, ID: i + 1, Party: 1, Side: Buy, Price: 1, Qty: 1}) == None {
			passed[0]++
		}
	}
	for range 6 {
		if l.Apply(&Op{Kind: Cancel, Orig: 1, Party: 1}) == None {
			passed[1]++
		}
	}
	if passed != [2]int{3, 2} {
		t.Errorf("%d orders and %d cancels passed, want 3 and 2", passed[0], passed[1])
	}
}

// TestNewRefused: what no instance may be.
func TestNewRefused(t *testing.T) {
	for i := range most {
		for _, v := range []int{0, -1, most[i] + 1} {
			c := flowConfig
			fields := []*int{&c.Orders, &c.Recent, &c.Parties, &c.Sessions, &c.Traders, &c.Desks, &c.Algorithms, &c.Clients, &c.Symbols, &c.Profiles, &c.Partitions, &c.Kills}
			*fields[i] = v
			if _, err := New(c); err == nil {
				t.Errorf("field %d is %d: accepted", i, v)
			}
		}
	}
}

// FuzzApply: whatever the operations are, limits and oracle agree.
func FuzzApply(f *testing.F) {
	f.Add([]byte("an order, a kill"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 8000 {
			return
		}
		draw := func(n int) int {
			if len(data) < 2 {
				return 0
			}
			v := int(binary.LittleEndian.Uint16(data)) % n
			data = data[2:]
			return v
		}
		if err := compare(t, &flow{draw: draw}, min(len(data)/16, 400), map[Reason]int{}); err != nil {
			t.Fatal(err)
		}
	})
}
