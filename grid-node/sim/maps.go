package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/region"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Maps (docs/adr/0073): a client more of the region has all its entries read beside the
// replica, page by page while others change them. What it is answered with has to be what one
// committed entry leaves (I42).

// maps gives half of the worlds with regions such a client. It uses its own random source,
// begun so that no seed in testdata/seeds.txt became another world.
func maps(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, mapsBegin)); rng.IntN(2) == 0 && p.regions != nil {
		p.maps = rng
	}
}

const mapsBegin = 0x6d6170735f5f5f00

// hasMaps: a world that is made of another one may have no regions.
func (p *profile) hasMaps() bool { return p.regions != nil && p.maps != nil }

// mapper reads the entries of a region beside the replica of a process.
type mapper struct{ p *process }

func (w *world) newMapper(p *process) replica.Mapper {
	if !w.profile.hasMaps() && w.profile.mapsOrders == nil {
		return nil
	}
	return mapper{p}
}

// Begin implements replica.Mapper: its answer has all entries.
func (x mapper) Begin(conn uint64, m *wire.Map) *wire.Reject {
	w, rng := x.p.w, x.p.w.profile.maps
	var rows *replica.Rows
	part := wire.MapPart{ReqID: m.ReqID}
	answer := func(frame []byte) {
		x.p.step(&replica.Event{Kind: replica.EventMapped, Mapped: &replica.Mapped{Conn: conn, ReqID: m.ReqID, OfRegion: true, Rows: rows, Frame: frame}})
	}
	name := slices.Clone(m.Region)
	reqID := m.ReqID
	var page func()
	page = func() {
		if !x.p.alive || w.stopped {
			return
		}
		if rows == nil {
			if rows = x.p.r.OpenRows(name, 1<<16); rows == nil {
				answer(nil)
				return
			}
			part.Seq, _ = rows.At()
			part.Epoch = rows.Epoch
		}
		if !rows.Of(x.p.r.Regions()) {
			answer(nil)
			return
		}
		done, err := rows.Next(1+rng.IntN(3), func(v *region.Value) bool {
			part.Rows++
			part.Reply = appendRow(part.Reply, string(v.Key), v.Version, v.ExpireNs, string(v.Value))
			return rng.IntN(3) > 0
		})
		switch {
		case err != nil:
			answer(wire.AppendReject(nil, partition, &wire.Reject{RequestID: reqID, Code: wire.CodeOverloaded, ForType: wire.TypeMap, Text: []byte(err.Error())}))
		case done:
			answer(wire.AppendMapPart(nil, partition, &part))
		default:
			w.after(rng.Int64N(8*millisecond), func() { x.p.deliver(page) })
		}
	}
	w.after(rng.Int64N(millisecond), func() { x.p.deliver(page) })
	return nil
}

// End implements replica.Mapper.
func (mapper) End(uint64, uint64) {}

func appendRow(dst []byte, key string, version uint64, expire int64, value string) []byte {
	return fmt.Appendf(dst, "%s %d %d %q\n", key, version, expire, value)
}

// mapClient has all entries read again and again.
type mapClient struct {
	w       *world
	rng     *rand.Rand
	pod     *pod
	conn    *conn
	reqID   uint64
	from    uint64 // what was known when it asked
	asking  bool
	askedAt int64
}

func (w *world) addMapClient() {
	if !w.profile.hasMaps() {
		return
	}
	c := &mapClient{w: w, rng: w.profile.maps}
	c.move()
	c.schedule()
}

func (c *mapClient) schedule() {
	c.w.after(millisecond+c.rng.Int64N(10*millisecond), func() {
		c.act()
		c.schedule()
	})
}

// move goes on at another pod.
func (c *mapClient) move() {
	if c.conn != nil {
		c.conn.gaveUp = true
	}
	c.conn, c.asking, c.pod = nil, false, c.w.pods[c.rng.IntN(len(c.w.pods))]
}

func (c *mapClient) act() {
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
	c.reqID++
	c.asking, c.askedAt = true, w.now
	for _, o := range w.regionClients {
		c.from = max(c.from, o.acked)
	}
	c.conn.send(wire.AppendMap(nil, partition, &wire.Map{ReqID: c.reqID, TimeoutMs: 1000, Slices: 1, Region: []byte(regionName), Function: []byte("all")}))
}

func (c *mapClient) closed(cn *conn) {
	if c.conn == cn {
		c.conn, c.asking = nil, false
	}
}

func (c *mapClient) got(cn *conn, frame []byte, _ uint64) {
	if cn != c.conn {
		return
	}
	switch wire.FrameType(frame) {
	case wire.TypeMapPart:
		var m wire.MapPart
		if err := wire.DecodeMapPart(frame, &m); err != nil {
			c.w.violation("wire", "a MapPart cannot be decoded: %v", err)
		}
		if m.ReqID == c.reqID && c.asking {
			c.asking = false
			c.w.stats.Maps++
			c.w.stats.MapRows += m.Rows
			c.w.checkMapped(c, &m)
		}
	case wire.TypeReject:
		c.asking = false
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

// checkMapped: an answer has the entries that one committed entry leaves, which is none older than
// what any client was told before it was asked for (I42).
func (w *world) checkMapped(c *mapClient, m *wire.MapPart) {
	t := w.timeline(1)
	now, known := t.region.nows[m.Seq]
	if !known || m.Seq < c.from {
		w.violation("I42", "a Map is answered as of entry %d, of kind region and committed: %v; entry %d was known before", m.Seq, known, c.from)
		return
	}
	var want []byte
	var keys []string
	for key := range t.region.history {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if s := t.region.at(key, m.Seq); !s.gone && (s.expire == 0 || s.expire > now) {
			want = appendRow(want, key, s.seq, s.expire, s.value)
		}
	}
	if string(want) != string(m.Reply) {
		w.violation("I42", "a Map answers as of entry %d:\n%sand that leaves:\n%s", m.Seq, m.Reply, want)
	}
}
