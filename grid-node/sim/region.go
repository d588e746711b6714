package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Regions (docs/adr/0065): clients change and read few keys of a region, on sessions of their
// own. What they are answered is compared with a plain map that the committed log is applied
// to (check_region.go).

// regions gives a sixth of the worlds regions, of those in which the history has one lineage.
// It uses its own random source, begun so that no seed in testdata/seeds.txt became another
// world.
func regions(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, 0x726567696f6efc26)); rng.IntN(6) == 0 && !p.mayLose && !p.rewinds && p.restores == nil && !p.standby {
		p.regions = rng
		p.limits.Sessions += 2 * regionClients
	}
}

const (
	regionName    = "positions"
	regionClients = 2
	regionKeys    = 6
	regionOwner   = 1 << 20
	regionOpen    = 4 // operations in progress of a client
)

// regionClient changes and reads a region.
type regionClient struct {
	w       *world
	rng     *rand.Rand
	id      int
	pod     *pod
	conn    *conn
	session [2]uint64
	opened  bool
	askedAt int64
	attempt uint64
	reqID   uint64
	slot    uint32
	gen     uint32
	next    uint64
	fill    []uint64 // numbers that a new primary has not seen
	open    []*regionRequest
	reads   map[uint64]regionAsk
	acked   uint64 // the highest entry that it was told of
	invokes bool   // it calls functions, of which compute.go has more
}

// regionRequest is a change without an answer.
type regionRequest struct {
	wire.RegionApply
	function string // of a call; Value are its arguments
	batch    *wire.RegionBatch
	conn     *conn
	sentAt   int64
	from     uint64 // entries that were known to be applied when it was first sent
}

type regionAsk struct {
	key  string
	mode uint8
	from uint64
}

func (w *world) addRegionClients() {
	if w.profile.regions == nil {
		return
	}
	w.scheduleRegionFile()
	for i := range regionClients {
		c := &regionClient{w: w, rng: w.profile.regions, id: i, reads: map[uint64]regionAsk{}}
		c.pod = w.pods[c.rng.IntN(len(w.pods))]
		c.newSession()
		w.regionClients = append(w.regionClients, c)
		c.schedule()
	}
}

func (c *regionClient) newSession() {
	c.session = [2]uint64{uint64(1000 + c.id), c.rng.Uint64() | 1}
	c.opened, c.attempt, c.next, c.open, c.fill = false, 0, 1, nil, nil
	c.leave()
}

func (c *regionClient) leave() {
	if c.conn != nil {
		c.conn.gaveUp = true
		c.conn = nil
	}
	c.opened = false
}

func (c *regionClient) schedule() {
	c.w.after(millisecond+c.rng.Int64N(12*millisecond), func() {
		c.act()
		c.schedule()
	})
}

func (c *regionClient) act() {
	w := c.w
	if c.conn == nil {
		if c.conn = w.net.dial(c, c.pod); c.conn == nil {
			c.pod = w.pods[c.rng.IntN(len(w.pods))]
			return
		}
		clear(c.reads)
		c.attempt++
		c.askedAt = 0
	}
	if !c.opened {
		c.openSession()
		return
	}
	for _, n := range c.fill { // an empty order uses a number up
		c.conn.send(wire.AppendSubmit(nil, partition, &wire.Submit{Slot: c.slot, Generation: c.gen, ClientSeq: n}))
	}
	c.fill = nil
	for _, r := range c.open {
		if r.conn != c.conn {
			c.send(r)
		}
	}
	switch n := c.rng.IntN(10); {
	case len(c.open) > 0 && w.now-c.open[0].sentAt > 150*millisecond, n == 0 && !w.healing && c.rng.IntN(8) == 0:
		c.leave()
		c.pod = w.pods[c.rng.IntN(len(w.pods))]
	case w.healing:
	case n < 4:
		c.read()
	case len(c.open) < regionOpen && c.invokes:
		c.call()
	case len(c.open) < regionOpen:
		c.change()
	}
}

func (c *regionClient) openSession() {
	if c.askedAt != 0 {
		if c.w.now-c.askedAt > 150*millisecond {
			c.leave()
			c.pod = c.w.pods[c.rng.IntN(len(c.w.pods))]
		}
		return
	}
	c.askedAt = c.w.now
	c.reqID++
	c.conn.send(wire.AppendOpenSession(nil, partition, &wire.OpenSession{ReqID: c.reqID, IDHi: c.session[0], IDLo: c.session[1], Attempt: c.attempt}))
}

func (c *regionClient) key() string {
	if c.invokes {
		return fmt.Sprintf("count-%d", c.rng.IntN(counters))
	}
	return fmt.Sprintf("key-%d", c.rng.IntN(regionKeys))
}

// change sends a new change.
func (c *regionClient) change() {
	if rng := c.w.profile.batches; rng != nil && rng.IntN(3) == 0 {
		c.changeAll(rng)
		return
	}
	r := &regionRequest{from: c.known()}
	r.Op, r.ClientSeq, r.Region, r.Key = wire.RegionPut, c.next, []byte(regionName), []byte(c.key())
	r.Value = fmt.Appendf(nil, "%d/%d/%d", c.id, c.session[1]&0xffff, c.next)
	switch n := c.rng.IntN(20); {
	case n < 3:
		r.If = wire.RegionIfAbsent
	case n < 6:
		r.If, r.Version = wire.RegionIfVersion, c.someVersion(string(r.Key))
	case n < 8:
		r.Op = wire.RegionPatch
	case n < 11:
		r.Op, r.Value = wire.RegionRemove, nil
	case n < 14:
		r.Op, r.Value = wire.RegionTake, nil
	case n == 14 && c.rng.IntN(6) == 0:
		r.Op, r.Key, r.Value = wire.RegionClear, nil, nil
	case n < 17:
		r.LifeNs = 1 + c.rng.Int64N(60*millisecond)
	}
	c.next++
	c.open = append(c.open, r)
	c.send(r)
}

// someVersion is mostly the one that the key has.
func (c *regionClient) someVersion(key string) uint64 {
	h := c.w.timeline(1).region.history[key]
	if len(h) == 0 || h[len(h)-1].gone {
		return 1
	}
	return h[len(h)-1].seq
}

// known is the last entry that any client was told of.
func (c *regionClient) known() (seq uint64) {
	for _, o := range c.w.regionClients {
		seq = max(seq, o.acked)
	}
	return seq
}

func (c *regionClient) send(r *regionRequest) {
	r.sentAt, r.conn = c.w.now, c.conn
	if c.invokes {
		c.sendCall(r, c.open[0].ClientSeq-1)
		return
	}
	if r.batch != nil {
		m := *r.batch
		m.Slot, m.Generation, m.ClientSeq, m.Received = c.slot, c.gen, r.ClientSeq, c.open[0].ClientSeq-1
		c.conn.send(wire.AppendRegionBatch(nil, partition, &m))
		return
	}
	m := r.RegionApply
	m.Slot, m.Generation, m.Received = c.slot, c.gen, c.open[0].ClientSeq-1
	c.conn.send(wire.AppendRegionApply(nil, partition, &m))
}

func (c *regionClient) read() {
	c.reqID++
	mode := wire.ModeConfirmed
	if n := c.rng.IntN(10); n == 0 {
		mode = wire.ModeBackup
	} else if n < 5 && c.w.profile.leases {
		mode = wire.ModeLeased
	}
	a := regionAsk{key: c.key(), mode: mode, from: c.known()}
	c.reads[c.reqID] = a
	c.conn.send(wire.AppendRegionGet(nil, partition, &wire.RegionGet{ReqID: c.reqID, Mode: mode, Region: []byte(regionName), Key: []byte(a.key)}))
}

func (c *regionClient) closed(cn *conn) {
	if c.conn == cn {
		c.conn, c.opened = nil, false
	}
}

func (c *regionClient) got(cn *conn, frame []byte, lineage uint64) {
	if cn != c.conn {
		return
	}
	switch wire.FrameType(frame) {
	case wire.TypeSessionOpened:
		var m wire.SessionOpened
		_ = wire.DecodeSessionOpened(frame, &m)
		if m.ReqID == c.reqID || !c.opened {
			c.slot, c.gen, c.opened = m.Slot, m.Generation, true
		}
	case wire.TypeRegionApplied:
		var m wire.RegionApplied
		_ = wire.DecodeRegionApplied(frame, &m)
		if r := c.take(m.ClientSeq); r != nil {
			c.w.stats.RegionOps++
			c.w.checkRegionApplied(c, r, &m)
			c.acked = max(c.acked, m.Seq)
		}
	case wire.TypeRegionBatched:
		var m wire.RegionBatched
		_ = wire.DecodeRegionBatched(frame, &m)
		if r := c.take(m.ClientSeq); r != nil {
			c.w.stats.RegionBatches++
			c.w.checkRegionBatched(c, r, &m)
			c.acked = max(c.acked, m.Seq)
		}
	case wire.TypeInvoked:
		var m wire.Invoked
		_ = wire.DecodeInvoked(frame, &m)
		if r := c.take(m.ClientSeq); r != nil {
			c.w.stats.Calls++
			c.w.checkInvoked(c, r, &m)
			c.acked = max(c.acked, m.Seq)
		}
	case wire.TypeRegionGot:
		var m wire.RegionGot
		_ = wire.DecodeRegionGot(frame, &m)
		if a, asked := c.reads[m.ReqID]; asked {
			delete(c.reads, m.ReqID)
			c.w.stats.RegionReads++
			c.w.checkRegionGot(c, &a, &m)
			c.acked = max(c.acked, m.Version)
		}
	case wire.TypeReject:
		var m wire.Reject
		_ = wire.DecodeReject(frame, &m)
		c.rejected(&m)
	case wire.TypeNotPrimary:
		var m wire.NotPrimary
		_ = wire.DecodeNotPrimary(frame, &m)
		if m.ForType == wire.TypeRegionGet {
			return // a backup, or a failed read, which says nothing
		}
		c.leave()
		if p := c.w.podAt(string(m.Address)); p != nil {
			c.pod = p
		} else {
			c.pod = c.w.pods[c.rng.IntN(len(c.w.pods))]
		}
	}
}

func (c *regionClient) take(clientSeq uint64) *regionRequest {
	for i, r := range c.open {
		if r.ClientSeq == clientSeq {
			c.open = append(c.open[:i], c.open[i+1:]...)
			return r
		}
	}
	return nil
}

func (c *regionClient) rejected(m *wire.Reject) {
	if m.ForType != wire.TypeRegionApply && m.ForType != wire.TypeRegionBatch && m.ForType != wire.TypeInvoke {
		return // a read that failed, an empty order, an opening
	}
	switch m.Code {
	case wire.CodeConditionFailed:
		if r := c.take(m.RequestID); r != nil {
			c.w.stats.RegionFailed++
			c.w.checkRegionFailed(c, r, m)
			c.acked = max(c.acked, m.Detail)
		}
	case wire.CodeFunctionFailed:
		if r := c.take(m.RequestID); r != nil {
			c.w.stats.CallsFailed++
			c.w.checkCallFailed(c, r, m)
		}
	case wire.CodeFunctionUnknown:
		if r := c.take(m.RequestID); r != nil && r.function != "none" && r.function != "late" {
			c.w.violation("wire", "client %d is told that there is no function %s", c.id, r.function)
		}
	case wire.CodeTooLarge: // a patch behind the end of a value
		c.take(m.RequestID)
	case wire.CodeFunctionAwaited:
		c.w.stats.CallsAwaited++
		if c.w.now%3 == 0 { // its time is up
			c.take(m.RequestID)
		}
		for _, r := range c.open {
			if r.ClientSeq == m.RequestID {
				r.conn = nil
			}
		}
	case wire.CodeOverloaded, wire.CodeInsufficientInSync, wire.CodeDraining, wire.CodeStandby:
		for _, r := range c.open {
			if r.ClientSeq == m.RequestID {
				r.conn = nil
			}
		}
	case wire.CodeSequenceGap:
		for n := m.Detail; n < m.RequestID; n++ {
			waits := false
			for _, r := range c.open {
				waits = waits || r.ClientSeq == n
			}
			if !waits {
				c.fill = append(c.fill, n)
			}
		}
		for _, r := range c.open {
			r.conn = nil
		}
	case wire.CodeSessionMoved:
		c.leave()
	case wire.CodeSessionUnknown, wire.CodeSessionWindow:
		c.newSession() // what is open may have been applied
	default:
		c.w.violation("wire", "region client %d is refused with code %d: %s", c.id, m.Code, m.Text)
	}
}

// regionsUnsettled returns what is still missing, "" if nothing.
func (w *world) regionsUnsettled() string {
	for _, c := range w.regionClients {
		if len(c.open) > 0 {
			return fmt.Sprintf("operation %d of region client %d was never answered", c.open[0].ClientSeq, c.id)
		}
	}
	return w.regionsAwaited()
}
