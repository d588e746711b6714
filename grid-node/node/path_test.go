package node

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fastClient speaks the protocol with buffers of its own, so that what is
// measured is the nodes.
type fastClient struct {
	*raw
	session wire.SessionOpened
	epoch   uint64
	seq     uint64
	out     []byte
	in      []byte
	msgs    [][]byte
}

func newFastClient(t *testing.T, g *grid, orders int) *fastClient {
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
	for i := range orders {
		c.msgs = append(c.msgs, fix(fmt.Sprintf("fast-%08d", i)))
	}
	return c
}

// batch sends n orders in one write and waits for their acknowledgements.
func (c *fastClient) batch(n int) {
	c.out = c.out[:0]
	for range n {
		c.out = wire.AppendSubmit(c.out, 0, &wire.Submit{Epoch: c.epoch, Slot: c.session.Slot, Generation: c.session.Generation,
			ClientSeq: c.seq + 1, Payload: c.msgs[c.seq]})
		c.seq++
	}
	if _, err := c.Write(c.out); err != nil {
		c.t.Fatal(err)
	}
	for acked := 0; acked < n; {
		m, err := c.Read(c.in[len(c.in):cap(c.in)])
		if err != nil {
			c.t.Fatal(err)
		}
		c.in = c.in[:len(c.in)+m]
		rest := c.in
		for {
			frame, after, err := wire.Split(rest)
			if err != nil || (frame != nil && wire.FrameType(frame) != wire.TypeAck) {
				c.t.Fatalf("got %v, %v", wire.FrameType(frame), err)
			}
			if frame == nil {
				break
			}
			rest = after
			acked++
		}
		c.in = c.in[:copy(c.in, rest)]
	}
}

// Primary and backup together allocate nothing per order, alone or in batches.
func TestPathAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	g := newGrid(t, 2, 1).up()
	for _, size := range []int{1, 64} {
		const warm, orders = 4096, 8192
		c := newFastClient(t, g, 0)
		for i := range warm + orders {
			c.msgs = append(c.msgs, fix(fmt.Sprintf("alloc-%d-%08d", size, i)))
		}
		for range warm / size {
			c.batch(size)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range orders / size {
			c.batch(size)
		}
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > orders/50 { // timers of the test process, the page prefaulter
			t.Errorf("batches of %d: %d allocations for %d orders on both nodes together, want none", size, n, orders)
		}
	}
}
