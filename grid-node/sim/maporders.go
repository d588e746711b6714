package sim

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Maps over orders (docs/adr/0110): a client has the orders of the log read beside the replica, page by page while others
// are stored and old ones freed. What it is answered with has to be those of a committed prefix (I65).

// mapsOrders gives a tenth of the worlds such a client. It uses its own random source, begun so that no seed in
// testdata/seeds.txt became another world.
func mapsOrders(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, mapsOrdersBegin)); rng.IntN(10) == 0 {
		p.mapsOrders = rng
	}
}

const mapsOrdersBegin = 0x6d61706f7264003e

// BeginOrders implements replica.Mapper: its answer has a hash of all orders of the slice.
func (x mapper) BeginOrders(conn uint64, m *wire.MapOrders, of replica.Prefix) *wire.Reject {
	w, p, rng, st := x.p.w, x.p, x.p.w.profile.mapsOrders, x.p.st
	reqID := m.ReqID
	next, behind := m.Part(of.From, of.Through)
	part := wire.MapOrdersPart{ReqID: reqID, Epoch: of.Epoch, From: of.From, Through: of.Through, ThroughHash: of.Hash}
	sum := uint64(0)
	answer := func(frame []byte) {
		p.step(&replica.Event{Kind: replica.EventMapped, Mapped: &replica.Mapped{Conn: conn, ReqID: reqID, Orders: &of, Frame: frame}})
	}
	var page func()
	page = func() {
		if !p.alive || w.stopped || p.st != st {
			return
		}
		if base := p.r.Freed(); next <= base && next < behind {
			answer(wire.AppendReject(nil, partition, replica.FreedUnderMap(wire.TypeMapOrders, reqID, next, base)))
			return
		}
		for n := 1 + rng.IntN(40); n > 0 && next < behind; n, next = n-1, next+1 {
			if entry := st.Read(next); entry != nil && order.Kind(entry[4]).IsOrder() {
				part.Rows++
				sum = mixHash(sum, order.Hash(entry))
			}
		}
		if next < behind {
			w.after(rng.Int64N(8*millisecond), func() { p.deliver(page) })
			return
		}
		part.Reply = binary.LittleEndian.AppendUint64(nil, sum)
		answer(wire.AppendMapOrdersPart(nil, partition, &part))
	}
	w.after(rng.Int64N(millisecond), func() { p.deliver(page) })
	return nil
}

func mixHash(sum, hash uint64) uint64 { return (sum ^ hash) * 0x9e3779b97f4a7c15 }

// mapOrdersClient has all orders read again and again, in one slice or, of a prefix that it was told, in several.
type mapOrdersClient struct {
	w       *world
	rng     *rand.Rand
	pod     *pod
	conn    *conn
	reqID   uint64
	ask     wire.MapOrders
	asking  bool
	askedAt int64
	lineage uint64 // when it asked
	from    uint64 // what was committed then
}

func (w *world) addMapOrdersClient() {
	if w.profile.mapsOrders == nil {
		return
	}
	c := &mapOrdersClient{w: w, rng: w.profile.mapsOrders}
	c.move()
	c.schedule()
}

func (c *mapOrdersClient) schedule() {
	c.w.after(millisecond+c.rng.Int64N(10*millisecond), func() {
		c.act()
		c.schedule()
	})
}

// move goes on at another pod.
func (c *mapOrdersClient) move() {
	if c.conn != nil {
		c.conn.gaveUp = true
	}
	c.conn, c.asking, c.pod = nil, false, c.w.pods[c.rng.IntN(len(c.w.pods))]
}

func (c *mapOrdersClient) act() {
	w := c.w
	switch {
	case w.healing:
		return
	case c.conn == nil:
		if c.conn = w.net.dial(c, c.pod); c.conn == nil {
			c.move()
			return
		}
	case c.asking && w.now-c.askedAt > 300*millisecond:
		c.move()
		return
	case c.asking:
		return
	}
	c.send(wire.MapOrders{Slices: 1})
}

// send asks for the prefix that there is, and now and then for that prefix alone.
func (c *mapOrdersClient) send(m wire.MapOrders) {
	w := c.w
	if m.Through == 0 {
		c.lineage = max(uint64(len(w.check.timelines)), 2) - 1
		for c.lineage > 1 && !w.timeline(c.lineage).begun {
			c.lineage--
		}
		c.from = uint64(len(w.timeline(c.lineage).hashes))
		if c.rng.IntN(3) > 0 {
			m.Function = []byte("all")
		}
	}
	c.reqID++
	m.ReqID, m.TimeoutMs = c.reqID, 1000
	c.ask, c.asking, c.askedAt = m, true, w.now
	c.conn.send(wire.AppendMapOrders(nil, partition, &m))
}

func (c *mapOrdersClient) closed(cn *conn) {
	if c.conn == cn {
		c.conn, c.asking = nil, false
	}
}

func (c *mapOrdersClient) got(cn *conn, frame []byte, lineage uint64) {
	if cn != c.conn {
		return
	}
	switch wire.FrameType(frame) {
	case wire.TypeMapOrdersPart:
		var m wire.MapOrdersPart
		if err := wire.DecodeMapOrdersPart(frame, &m); err != nil {
			c.w.violation("wire", "a MapOrdersPart cannot be decoded: %v", err)
		}
		if m.ReqID != c.reqID || !c.asking {
			return
		}
		c.asking = false
		c.w.stats.OrderMaps++
		c.w.stats.OrderMapRows += m.Rows
		c.w.checkMappedOrders(c, &m, lineage)
		if len(c.ask.Function) == 0 && !c.w.stopped && c.conn.proc != nil {
			slices := 2 + c.rng.IntN(4)
			c.send(wire.MapOrders{From: m.From, Through: m.Through, Slice: uint16(c.rng.IntN(slices)), Slices: uint16(slices), Function: []byte("all")})
		}
	case wire.TypeReject:
		var m wire.Reject
		_ = wire.DecodeReject(frame, &m)
		if c.asking = false; m.Code == wire.CodeMapBound {
			c.w.stats.OrderMapsFreed++
		}
	case wire.TypeNotPrimary:
		var m wire.NotPrimary
		_ = wire.DecodeNotPrimary(frame, &m)
		at := c.w.podAt(string(m.Address))
		c.move()
		if at != nil {
			c.pod = at
		}
	}
}

// noteOrder remembers which entries are orders.
func (w *world) noteOrder(hash uint64, entry []byte) {
	if w.profile.mapsOrders != nil && order.Kind(entry[4]).IsOrder() {
		w.check.isOrder[hash] = true
	}
}

// checkMappedOrders: an answer is of the orders of a committed prefix, each once, none left out that is not freed, and of
// all that was committed when it was asked for (I65).
func (w *world) checkMappedOrders(c *mapOrdersClient, m *wire.MapOrdersPart, lineage uint64) {
	t := w.shown(lineage)
	switch {
	case m.Through > uint64(len(t.hashes)) || m.Through > 0 && m.ThroughHash != t.hashes[m.Through-1]:
		w.violation("I65", "a Map over orders is of entries up to %d with hash %016x, which is no committed entry", m.Through, m.ThroughHash)
		return
	case c.ask.Through > 0 && (m.From != c.ask.From || m.Through != c.ask.Through):
		w.violation("I65", "a Map over the orders of entries %d to %d is answered for %d to %d", c.ask.From, c.ask.Through, m.From, m.Through)
		return
	case c.ask.Through == 0 && lineage == c.lineage && m.Through < c.from:
		w.violation("I65", "a Map over orders is of entries up to %d; those up to %d were committed before it was asked for", m.Through, c.from)
		return
	case m.From-1 > t.freeable:
		w.violation("I65", "a Map over orders begins with entry %d; entries up to %d may be freed", m.From, t.freeable)
		return
	case len(c.ask.Function) == 0:
		return
	}
	first, behind := c.ask.Part(m.From, m.Through)
	rows, sum := uint64(0), uint64(0)
	for seq := first; seq < behind; seq++ {
		if hash := t.hashes[seq-1]; w.check.isOrder[hash] {
			rows++
			sum = mixHash(sum, hash)
		}
	}
	if rows != m.Rows || len(m.Reply) != 8 || sum != binary.LittleEndian.Uint64(m.Reply) {
		w.violation("I65", "a Map over the orders of entries %d to %d, slice %d of %d, has %d with sum %x; there are %d with sum %x", m.From, m.Through, c.ask.Slice, c.ask.Slices, m.Rows, m.Reply, rows, sum)
	}
}
