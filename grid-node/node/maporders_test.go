package node

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// ordersGrid is a grid with the functions notional, and one that takes all its fuel for each order, or for ever.
func ordersGrid(t *testing.T, nodes int) *grid {
	g := newGrid(t, nodes, 1)
	if nodes == 1 {
		g.base.MinInSync = 1
	}
	g.base.Regions = &Regions{Memory: 16 << 20, Regions: []replica.RegionSpec{{Name: "positions"}}}
	compute := func(name string, module []byte) ComputeFunction {
		return ComputeFunction{Name: name, Module: module, SHA256: sha256.Sum256(module)}
	}
	g.base.Functions = &Functions{Compute: []ComputeFunction{compute("notional", examples.Notional), compute("loops", loopForEver), compute("again", againForEver), compute("slow", slowly)}}
	g.base.Functions.Compute[3].Fuel = maxPreFuel
	return g.up()
}

// computeModule is a module of kind Compute: an area of 128 KiB at 0, whose size and version og1_area writes, and
// og1_compute with one local of type i32.
func computeModule(body ...byte) []byte {
	section := func(id byte, content ...byte) []byte { return append([]byte{id, byte(len(content))}, content...) }
	area := []byte{0, // no locals
		0x41, 0x00, 0x41, 0x01, 0x36, 0x02, 0x00, // version = 1
		0x41, 0x04, 0x41, 0x80, 0x80, 0x08, 0x36, 0x02, 0x00, // size = 128 KiB
		0x41, 0x00, 0x0b}
	body = append(append([]byte{1, 1, 0x7f}, body...), 0x0b)
	code := append([]byte{2, byte(len(area))}, area...)
	code = append(append(code, byte(len(body))), body...)
	m := []byte("\x00asm\x01\x00\x00\x00")
	m = append(m, section(1, 1, 0x60, 0, 1, 0x7f)...) // () -> i32
	m = append(m, section(3, 2, 0, 0)...)
	m = append(m, section(5, 1, 0, 2)...) // 2 pages
	exports := append([]byte{2, 8}, "og1_area\x00\x00"...)
	exports = append(append(exports, 11), "og1_compute\x00\x01"...)
	return append(append(m, section(7, exports...)...), section(10, code...)...)
}

var (
	loopForEver  = computeModule(0x03, 0x40, 0x0c, 0x00, 0x0b, 0x41, 0x00)                   // loop br 0 end; 0
	againForEver = computeModule(0x41, 0xa4, 0x02, 0x41, 0x03, 0x36, 0x02, 0x00, 0x41, 0x00) // action (292) = again; 0
	// slowly takes nearly all of the fuel that a call may have: it counts to 131,072; 0
	slowly = computeModule(0x03, 0x40, 0x20, 0x00, 0x41, 0x01, 0x6a, 0x22, 0x00, 0x41, 0x80, 0x80, 0x08, 0x49, 0x0d, 0x00, 0x0b, 0x41, 0x00)
)

// TestMapOverOrders: the orders of a committed prefix, the same in one slice and in several, and at the next primary.
func TestMapOverOrders(t *testing.T) {
	g := ordersGrid(t, 2)
	c := g.client()
	acked, stop := g.load(c)
	g.until(func() bool { return acked.Load() > 300 }, "no orders flow")
	during, err := c.Map(t.Context(), "notional", client.MapRequest{Orders: true, Slices: 3})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	n := acked.Load()
	count := func(parts []client.MapPart) (orders, rows uint64) {
		t.Helper()
		for i, p := range parts {
			rows += p.Rows
			for b := p.Reply; len(b) >= 48; b = b[48:] {
				orders += binary.LittleEndian.Uint64(b)
			}
			if p.From != 1 || p.Seq == 0 || p.Hash == 0 || p.Slice != i || p.Seq != parts[0].Seq || p.Hash != parts[0].Hash || p.Address == "" {
				t.Errorf("part %+v", p)
			}
		}
		return orders, rows
	}
	if orders, rows := count(during); orders < 300 || orders != rows {
		t.Errorf("while orders flow: %d of %d orders", orders, rows)
	}
	var hash uint64
	for _, slices := range []int{1, 2, 7} {
		parts, err := c.Map(t.Context(), "notional", client.MapRequest{Orders: true, Slices: slices})
		if err != nil || len(parts) != slices {
			t.Fatalf("%d parts, %v", len(parts), err)
		}
		if orders, rows := count(parts); orders < uint64(n) || orders != rows {
			t.Errorf("%d slices: %d of %d orders, %d were acknowledged", slices, orders, rows, n)
		}
		hash = parts[0].Hash
	}
	before, err := c.Map(t.Context(), "notional", client.MapRequest{Orders: true})
	if err != nil || before[0].Hash != hash {
		t.Fatalf("%+v, %v", before, err)
	}
}

// TestMapOverOrdersRefused: what a client asks for that there is not.
func TestMapOverOrdersRefused(t *testing.T) {
	g := ordersGrid(t, 1)
	c := g.client()
	acked, stop := g.load(c)
	g.until(func() bool { return acked.Load() > 10 }, "no orders flow")
	stop()
	if _, err := c.Map(t.Context(), "none", client.MapRequest{Orders: true}); !errors.Is(err, client.ErrFunctionUnknown) {
		t.Errorf("no function: %v", err)
	}
	var failed *client.FunctionError
	if _, err := c.Map(t.Context(), "loops", client.MapRequest{Orders: true}); !errors.As(err, &failed) || failed.Code != 0 {
		t.Errorf("out of fuel: %v", err)
	}
	if _, err := c.Map(t.Context(), "again", client.MapRequest{Orders: true}); !errors.As(err, &failed) {
		t.Errorf("again for an order, which is no end: %v", err)
	}
	if _, err := c.Map(t.Context(), "notional", client.MapRequest{Orders: true, Region: "positions"}); err == nil {
		t.Error("orders and a region: no error")
	}
	r := g.rawClient(0)
	ask := wire.MapOrders{ReqID: 1, From: 1, Through: 1 << 40, TimeoutMs: 1000, Slices: 1, Function: []byte("notional")}
	if _, err := r.Write(wire.AppendMapOrders(nil, 0, &ask)); err != nil {
		t.Fatal(err)
	}
	var m wire.Reject
	if err := wire.DecodeReject(r.next(), &m); err != nil || m.Code != wire.CodeOverloaded || m.ForType != wire.TypeMapOrders {
		t.Errorf("of entries to come: %+v, %v", m, err)
	}
}

// TestMapsOverOrdersThatNeverEnd: beside functions that take all their fuel for each order orders go on, and the log is
// freed meanwhile.
func TestMapsOverOrdersThatNeverEnd(t *testing.T) {
	g := ordersGrid(t, 1)
	c := g.client()
	acked, stop := g.load(c)
	g.until(func() bool { return acked.Load() > 200 }, "no orders flow")
	r, b := g.rawClient(0), []byte(nil)
	for i := range clientMaps + 1 {
		b = wire.AppendMapOrders(b, 0, &wire.MapOrders{ReqID: uint64(i + 1), TimeoutMs: 1 << 31, Slices: 1, Function: []byte("loops")})
	}
	before := acked.Load()
	if _, err := r.Write(b); err != nil {
		t.Fatal(err)
	}
	answers := map[wire.Code]int{}
	for range clientMaps + 1 {
		var m wire.Reject
		if err := wire.DecodeReject(r.next(), &m); err != nil {
			t.Fatal(err)
		}
		answers[m.Code]++
	}
	if answers[wire.CodeFunctionFailed] < clientMaps || answers[wire.CodeFunctionFailed]+answers[wire.CodeOverloaded] != clientMaps+1 {
		t.Errorf("answers by code: %v", answers)
	}
	g.until(func() bool { return acked.Load() > before+100 }, "orders wait for Maps")
	g.until(func() bool { open, clients, computing := g.openMaps(); return open+clients+computing == 0 }, "Maps are open that were answered")
	var held uint64
	g.onLoop(0, func() { held = g.nodes[0].data.parts.list[0].inc.store.Freeable(1 << 40) })
	if held == 0 {
		t.Error("the log holds all entries, though no Map reads")
	}
	stop()
}

// TestSlowMapsHoldNothing: while a function works on orders the log may be freed.
func TestSlowMapsHoldNothing(t *testing.T) {
	g := ordersGrid(t, 1)
	c := g.client()
	acked, stop := g.load(c)
	g.until(func() bool { return acked.Load() > 100 }, "no orders flow")
	stop()
	held, free := 0, 0
	for held+free < 100 { // looks while a Map is open
		answer := make(chan error, 1)
		go func() {
			parts, err := c.Map(t.Context(), "slow", client.MapRequest{Orders: true})
			if err == nil && (parts[0].Rows < 100 || parts[0].Fuel < 500_000*parts[0].Rows) {
				err = fmt.Errorf("%+v: it is not slow", parts[0])
			}
			answer <- err
		}()
		for open := true; open; {
			select {
			case err := <-answer:
				if err != nil {
					t.Fatal(err)
				}
				open = false
			default:
			}
			g.onLoop(0, func() {
				st := g.nodes[0].data.parts.list[0].inc.store
				switch {
				case g.nodes[0].data.parts.computes.maps.open == 0:
				case st.Freeable(1<<40)+1 >= st.Committed():
					free++
				default:
					held++
				}
			})
		}
	}
	if held > free/4 {
		t.Errorf("the log is looked at %d times while a Map is open, and holds entries for it %d times", free+held, held)
	}
}
