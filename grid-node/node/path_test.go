package node

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/race"
)

// fastClient speaks the protocol with its own buffers, so that only the nodes are
// measured.
type fastClient struct {
	*raw
	session wire.SessionOpened
	epoch   uint64
	seq     uint64 // of the last order
	order   []byte // the last order; the digits at its end of ClOrdID are patched
	id      []byte // in order
	out     []byte
	in      []byte
}

func newFastClient(t *testing.T, g *grid) *fastClient {
	c := &fastClient{raw: dialRaw(t, g.addrs[0]), in: make([]byte, 0, 1<<20), out: make([]byte, 0, 1<<20)}
	c.epoch = g.readiness(0).Partitions[0].Epoch
	b := hello(wire.RoleClient, 0, "fast", "")
	b = wire.AppendOpenSession(b, 0, &wire.OpenSession{ReqID: 1, IDHi: uint64(time.Now().UnixNano()), IDLo: 1, Epoch: c.epoch, Attempt: 1})
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	c.next()
	if err := wire.DecodeSessionOpened(c.next(), &c.session); err != nil {
		t.Fatal(err)
	}
	c.order = fix(fmt.Sprintf("fast-%d-%d-%010d", c.session.Slot, c.session.Generation, 0))
	off, n, ok := order.Find(c.order, 11)
	if !ok {
		t.Fatal("no ClOrdID")
	}
	c.id = c.order[off : off+n]
	return c
}

// number writes n into the order's ClOrdID.
func (c *fastClient) number(n uint64) {
	for i := range 10 {
		c.id[len(c.id)-1-i] = byte('0' + n%10)
		n /= 10
	}
}

// batch sends n orders in one write and waits for their acknowledgements.
func (c *fastClient) batch(n int) {
	c.frames(n)
	c.exchange(n, wire.TypeAck)
}

// frames are the next n orders, in c.out.
func (c *fastClient) frames(n int) []byte {
	c.out = c.out[:0]
	for range n {
		c.seq++
		c.number(c.seq)
		order.Seal(c.order)
		c.out = wire.AppendSubmit(c.out, 0, &wire.Submit{Epoch: c.epoch, Slot: c.session.Slot, Generation: c.session.Generation,
			ClientSeq: c.seq, Payload: c.order})
	}
	return c.out
}

// reads asks for n orders of this client by ClOrdID in one write.
func (c *fastClient) reads(n int) {
	c.out = c.out[:0]
	for i := range n {
		c.number(1 + uint64(i)*(c.seq-1)/uint64(n))
		c.out = wire.AppendGet(c.out, 0, &wire.Get{ReqID: uint64(i), By: wire.ByClOrdID, Mode: wire.ModeConfirmed, Key: c.id})
	}
	c.exchange(n, wire.TypeGetReply)
}

// exchange writes requests and waits for n answers.
func (c *fastClient) exchange(n int, want wire.Type) {
	if _, err := c.Write(c.out); err != nil {
		c.t.Fatal(err)
	}
	for got := 0; got < n; {
		m, err := c.Read(c.in[len(c.in):cap(c.in)])
		if err != nil {
			c.t.Fatal(err)
		}
		c.in = c.in[:len(c.in)+m]
		rest := c.in
		for {
			frame, after, err := wire.Split(rest)
			if err != nil || (frame != nil && wire.FrameType(frame) != want) {
				c.t.Fatalf("got %v, %v", wire.FrameType(frame), err)
			}
			if frame == nil {
				break
			}
			rest = after
			got++
		}
		c.in = c.in[:copy(c.in, rest)]
	}
}

// heapUse is what was allocated on the heap since the process began.
type heapUse struct{ objects, bytes uint64 }

func allocated() heapUse {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return heapUse{s[0].Value.Uint64(), s[1].Value.Uint64()}
}

// mayAllocate fails the test when f, which handles n orders, allocates each time it is
// called. Allowed are allocations unrelated to orders: timers of the test, the arbiter's
// watch, memory provided ahead, one object of 128 bytes for each millisecond that a busy
// machine makes it last, and once a buffer that grows because such a one left more in it than
// before.
func mayAllocate(t *testing.T, what string, n int, f func()) {
	t.Helper()
	var found []heapUse
	for range 3 {
		before, began := allocated(), time.Now()
		f()
		after, ms := allocated(), uint64(time.Since(began).Milliseconds())
		use := heapUse{after.objects - before.objects, after.bytes - before.bytes}
		if use.objects <= uint64(n)/500+ms && use.bytes <= uint64(n)*8+ms*128 {
			return
		}
		found = append(found, use)
	}
	t.Errorf("%s: objects and bytes of three times %d orders on both nodes together: %v, want none", what, n, found)
}

// Primary and backup together allocate nothing per order and per read, alone or in
// batches; the largest is longer than what a node reads at once, so that frames
// arrive in pieces.
func TestPathAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates: run it without -race")
	}
	g := newGrid(t, 2, 1).up()
	for _, c := range []struct{ size, orders int }{{1, 10_000}, {64, 50_000}, {sessionWindow, 100_000}} {
		f := newFastClient(t, g)
		many := func(do func(int), n int) func() {
			return func() {
				for range n / c.size {
					do(c.size)
				}
			}
		}
		many(f.batch, c.orders/4)()
		mayAllocate(t, fmt.Sprintf("orders in batches of %d", c.size), c.orders, many(f.batch, c.orders))
		many(f.reads, c.orders/4)()
		mayAllocate(t, fmt.Sprintf("reads in batches of %d", c.size), c.orders, many(f.reads, c.orders))
	}
}

// The same with a client of package client, as users have it.
func TestClientPathAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates: run it without -race")
	}
	g := newGrid(t, 2, 1).up()
	s, err := g.client().OpenSession(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	const size, orders = 128, 50_000
	f := &fastClient{raw: &raw{t: t}, order: fix("client-0000000000")}
	off, n, _ := order.Find(f.order, 11)
	f.id = f.order[off : off+n]
	left, all := 0, make(chan struct{}, 1)
	var failed error
	done := func(_ client.Receipt, err error) {
		if err != nil {
			failed = err
		}
		if left--; left == 0 {
			all <- struct{}{}
		}
	}
	batches := func(n int) {
		for range n / size {
			left = size
			for range size {
				f.seq++
				f.number(f.seq)
				order.Seal(f.order)
				if err := s.Enqueue(f.order, done); err != nil {
					t.Fatal(err)
				}
			}
			s.Push()
			<-all
		}
	}
	batches(orders / 4)
	mayAllocate(t, "orders of a client", orders, func() { batches(orders) })
	if failed != nil {
		t.Fatal(failed)
	}
}

// A node's data is outside of the heap and free of pointers: the live heap of primary and
// backup does not grow with the orders.
func TestLiveHeapDoesNotGrowWithOrders(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has a heap of its own: run it without -race")
	}
	g := newGrid(t, 2, 1).up()
	f := newFastClient(t, g)
	submit := func(n int) {
		for range n / sessionWindow {
			f.batch(sessionWindow)
		}
	}
	live := func() (m runtime.MemStats) {
		runtime.GC()
		runtime.GC() // finalizers of the first may have freed more
		runtime.ReadMemStats(&m)
		return m
	}
	submit(50_000)
	before := live()
	const orders = 300_000
	submit(orders)
	after := live()
	// A pointer, or any four bytes, per order would be 2.4 MB on both nodes.
	const allowedBytes, allowedObjects = 512 << 10, 2_000
	if bytes, objects := int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(after.HeapObjects)-int64(before.HeapObjects); bytes > allowedBytes || objects > allowedObjects {
		t.Errorf("%d orders more: live heap grew by %d bytes and %d objects, allowed: %d and %d", orders, bytes, objects, allowedBytes, allowedObjects)
	}
	g.settled()
	for i, r := range g.nodes {
		if n := r.data.parts.list[0].store.Committed(); n < orders {
			t.Errorf("node %d holds %d entries", i, n)
		}
	}
}
