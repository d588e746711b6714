package function

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/function/examples"
)

// notionalRow is a row of the reply of notional.
type notionalRow struct {
	orders, whole     uint64
	fraction, without uint32
	symbol            string
}

func notionalRows(t *testing.T, reply []byte) (rows []notionalRow) {
	t.Helper()
	if len(reply)%48 != 0 {
		t.Fatalf("a reply of %d bytes", len(reply))
	}
	for ; len(reply) > 0; reply = reply[48:] {
		rows = append(rows, notionalRow{binary.LittleEndian.Uint64(reply), binary.LittleEndian.Uint64(reply[8:]), binary.LittleEndian.Uint32(reply[16:]),
			binary.LittleEndian.Uint32(reply[20:]), strings.TrimRight(string(reply[24:48]), "\x00")})
	}
	return rows
}

// fixText is a message of these fields.
func fixText(kind, symbol, quantity, price string) []byte {
	text := "8=FIX.4.4\x0135=" + kind + "\x0111=A-1\x0155=" + symbol + "\x0154=1\x01"
	if symbol == "" {
		text = strings.ReplaceAll(text, "55=\x01", "")
	}
	if quantity != "" {
		text += "38=" + quantity + "\x01"
	}
	if price != "" {
		text += "44=" + price + "\x01"
	}
	return []byte(text + "10=000\x01")
}

// TestNotional calls the example for orders, as a Map does.
func TestNotional(t *testing.T) {
	m, err := Load(t.Context(), examples.Notional, Compute, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context()) //nolint:errcheck // of memory
	of := func(args string, messages ...[]byte) []notionalRow {
		t.Helper()
		i, err := m.Instance(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer i.Close(t.Context()) //nolint:errcheck // of memory
		for seq, raw := range messages {
			r := i.InvokeOrder(t.Context(), &OrderCall{Order: Order{Seq: uint64(seq + 1), Time: 5, Raw: raw}, Args: []byte(args), Slices: 1})
			if r.Fault != None || r.Code != 0 || r.Action != Keep {
				t.Fatalf("order %q: %+v", raw, r)
			}
		}
		r := i.Invoke(t.Context(), &KeyCall{Args: []byte(args), Step: StepEnd, Slices: 1, OfOrders: true})
		if r.Fault != None || r.Code != 0 {
			t.Fatalf("at the end: %+v", r)
		}
		return notionalRows(t, r.Out)
	}
	orders := [][]byte{
		fixText("D", "IBM", "100", "20.25"), fixText("D", "MSFT", "0.5", "0.00000003"), fixText("F", "IBM", "100", ""), fixText("D", "IBM", "3", "0.00000001"),
		fixText("D", "IBM", "7", ""), fixText("G", "IBM", "1", "1"), fixText("D", strings.Repeat("S", 25), "1", "2"), fixText("D", "MSFT", "90000000000", "90000000000"),
	}
	if got, want := fmt.Sprint(of("", orders...)), "[{1 2 0 0 } {3 2025 3 1 IBM} {2 0 1 1 MSFT}]"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got, want := fmt.Sprint(of("MSFT", orders...)), "[{2 0 1 1 MSFT}]"; got != want {
		t.Errorf("of one symbol: %s\nwant %s", got, want)
	}
	if got := of(""); len(got) != 0 {
		t.Errorf("of no orders: %v", got)
	}
	var many [][]byte
	for k := range 200 {
		many = append(many, fixText("D", fmt.Sprintf("S%d", k%100), "2", "3"))
	}
	rows, orderSum, whole := of("", many...), uint64(0), uint64(0)
	for _, r := range rows {
		orderSum, whole = orderSum+r.orders, whole+r.whole
	}
	if len(rows) != 85 || rows[0].symbol != "" || rows[0].orders != 32 || orderSum != 200 || whole != 1200 {
		t.Errorf("of a hundred symbols: %d rows, the first %+v, %d orders, notional %d", len(rows), rows[0], orderSum, whole)
	}
	i, err := m.Instance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close(t.Context()) //nolint:errcheck // of memory
	if r := i.Invoke(t.Context(), &KeyCall{Step: StepEnd, Slices: 1}); r.Code != 1 || string(r.Out) != "call it in a Map over orders" {
		t.Errorf("in another Map: %+v %q", r, r.Out)
	}
}

// TestInvokeOrder: what does not fit is not called for, and a region's Map after orders sees nothing of them.
func TestInvokeOrder(t *testing.T) {
	m, err := Load(t.Context(), examples.Notional, Compute, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context()) //nolint:errcheck // of memory
	i, err := m.Instance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close(t.Context()) //nolint:errcheck // of memory
	raw := append(fixText("D", "IBM", "1", "1"), make([]byte, 64<<10-200)...)
	if r := i.InvokeOrder(t.Context(), &OrderCall{Order: Order{Raw: raw}, Args: make([]byte, 4096), Slices: 1}); r.Room == 0 {
		t.Errorf("an order of %d bytes with arguments: %+v", len(raw), r)
	}
	order := Order{Seq: 7, Time: 9, Raw: fixText("D", "IBM", "12", "3.5")}
	if r := i.InvokeOrder(t.Context(), &OrderCall{Order: order, Args: []byte("IBM"), Slice: 2, Slices: 3}); r.Fault != None {
		t.Fatalf("%+v", r)
	}
	area, _ := i.view()
	text := func(place int) string {
		at, n := le.Uint32(area[place:]), le.Uint32(area[place+4:])
		return string(area[at : at+n])
	}
	if le.Uint64(area[areaSeq:]) != 7 || le.Uint64(area[areaTime:]) != 9 || le.Uint64(area[areaQuantity:]) != 12e8 || le.Uint64(area[areaPrice:]) != 350e6 || area[areaMsgType] != 'D' ||
		text(areaClOrdID) != "A-1" || text(areaSymbol) != "IBM" || text(areaPayload) != "IBM" || text(areaValue) != string(order.Raw) ||
		le.Uint32(area[areaStep:]) != uint32(StepRow) || le.Uint32(area[areaStep+4:]) != 2 || le.Uint32(area[areaStep+8:]) != 3 || le.Uint32(area[areaStep+12:]) != ofOrders {
		t.Errorf("the area has %x", area[:areaData+160])
	}
	i.Invoke(t.Context(), &KeyCall{Step: StepEnd, Slices: 1, OfOrders: true})
	if n := le.Uint64(area[areaQuantity:]) | uint64(le.Uint32(area[areaPresent:])); n != 0 || text(areaSymbol) != "" {
		t.Error("the call at the end has the fields of the last order")
	}
}
