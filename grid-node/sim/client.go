package sim

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// client is a program that submits orders on one session, resends unanswered ones under
// the same clientSeq, follows redirects, and reads.
type client struct {
	w    *world
	id   int
	pod  *pod  // the pod it connects to
	conn *conn // nil: not connected

	session  [2]uint64
	sessions uint64          // it had so far
	attempt  uint64          // of opening it: one more for every connection
	highest  uint64          // clientSeq with an answer
	given    map[uint64]bool // clientSeqs abandoned after a rejection
	fill     []uint64        // those unknown to a new primary
	lateOpen bool            // an OpenSession arrived on an abandoned connection: it may own the session
	opened   bool            // over this connection
	askedAt  int64           // when the session was last requested
	asked    int             // consecutive failures
	slot     uint32
	gen      uint32
	next     uint64
	open     []*request // sent and not answered, by clientSeq
	reqID    uint64

	last  []answered          // of this session
	again map[uint64]answered // sent once more after their answer, by clientSeq

	readers map[*pod]*reader
	keeps   []kept // books, by number
	mode    clientMode
}

// clientMode is what a client still does.
type clientMode uint8

const (
	clientBusy      clientMode = iota
	clientFinishing            // nothing new; open requests get their answers
)

// request is an order that was sent.
type request struct {
	key       string
	clientSeq uint64
	conn      *conn // on which it waits for an answer; nil: it is to be sent
	sentAt    int64
	op        int // in the history
	message   []byte
}

const (
	clientWindow = 10        // orders in progress per session
	shared       = "shared-" // ClOrdIDs that several clients send
)

func (w *world) addClient(i int) {
	c := &client{w: w, id: i, readers: map[*pod]*reader{}}
	c.pod = w.anyPod()
	c.newSession()
	w.clients = append(w.clients, c)
	c.schedule()
}

func (c *client) schedule() {
	c.w.after(c.w.between(c.w.profile.pace/4, c.w.profile.pace*7/4), func() {
		c.act()
		c.schedule()
	})
}

// newSession abandons the old one: requests open on it stay open.
func (c *client) newSession() {
	c.sessions++
	c.session = [2]uint64{uint64(c.id + 1), c.sessions}
	c.opened, c.next, c.open = false, 1, nil
	c.slot, c.gen, c.attempt, c.highest, c.fill, c.lateOpen = 0, 0, 0, 0, nil, false
	c.given = map[uint64]bool{}
	c.last, c.again = nil, map[uint64]answered{}
}

// loseSession begins another in place of one that was evicted.
func (c *client) loseSession() {
	for _, r := range c.open {
		c.w.history.ops[r.op].evicted = c.w.profile.floods != nil || c.lateOpen
	}
	c.newSession()
	c.turnTo(c.pod)
}

// act does one operation.
func (c *client) act() {
	w := c.w
	switch {
	case c.conn == nil:
		c.connect()
		return
	case !c.opened:
		c.openSession()
		return
	}
	n := w.rng.IntN(100)
	switch {
	case len(c.fill) > 0: // an empty frame uses a number up
		for _, n := range c.fill {
			c.conn.send(wire.AppendSubmit(nil, partition, &wire.Submit{Slot: c.slot, Generation: c.gen, ClientSeq: n}))
		}
		c.fill = nil
		c.sendOpen() // those rejected for it
	case c.mode == clientFinishing:
		c.repeat()
	case c.wantsAgain():
		c.askAgain()
	case n < 85-w.profile.reads && c.next < c.lowest()+clientWindow:
		c.submit()
	case n < 85:
		c.read()
	default:
		c.repeat()
	}
}

// resolvedPod returns any pod of those that the grid's name resolves to: a shard that is
// down has none.
func (w *world) resolvedPod() *pod {
	p := w.anyPod()
	for w.operator != nil && p.absent {
		p = w.anyPod()
	}
	return p
}

func (c *client) connect() {
	if c.conn = c.w.net.dial(c, c.pod); c.conn == nil {
		// An unresponsive one is not the next: a client that drew it seven times in a row
		// (seed 4411250761) would be slow by itself.
		for refused, tries := c.pod, 0; c.pod == refused && tries < 8; tries++ {
			c.pod = c.w.resolvedPod()
		}
		return
	}
	c.opened, c.asked, c.askedAt = false, 0, 0
	c.attempt++
	c.openSession()
}

// openSession requests the session, and tries another pod when there is no answer.
func (c *client) openSession() {
	w := c.w
	if c.askedAt != 0 && w.now-c.askedAt < 120*millisecond {
		return
	}
	if c.asked++; c.asked > 2 {
		c.turnTo(w.anyPod())
		return
	}
	c.askedAt = w.now
	c.reqID++
	frame := wire.AppendOpenSession(nil, partition, &wire.OpenSession{ReqID: c.reqID, IDHi: c.session[0], IDLo: c.session[1], Attempt: c.attempt})
	if w.profile.match != nil {
		frame[5] |= wire.FlagExecutions
	}
	c.conn.send(frame)
}

// submit sends a new order.
func (c *client) submit() {
	w := c.w
	r := &request{key: fmt.Sprintf("c%d-%d-%d", c.id, c.sessions, c.next), clientSeq: c.next}
	if w.chance(8) && !w.profile.retention.FreeDownstream { // a ClOrdID that is freed is free again
		r.key = fmt.Sprintf("%s%d", shared, w.rng.IntN(20)) // another client may send it too
	}
	if r.message = w.fixOrder(r.key); w.profile.match != nil {
		r.message = w.versioned(r.key, c.matchMessage(r.key))
	}
	c.next++
	r.op = w.history.submit(c.id, r.key, w.now)
	c.open = append(c.open, r)
	c.send(r)
}

func (c *client) send(r *request) {
	r.sentAt, r.conn = c.w.now, c.conn
	c.conn.send(wire.AppendSubmit(nil, partition, &wire.Submit{Slot: c.slot, Generation: c.gen, ClientSeq: r.clientSeq, Payload: r.message}))
}

// lowest clientSeq without an answer.
func (c *client) lowest() uint64 {
	if len(c.open) > 0 {
		return c.open[0].clientSeq
	}
	return c.next
}

// repeat resends rejected requests, and turns to another connection when the oldest has
// waited for long. Two copies never use one connection: each would get an answer.
func (c *client) repeat() {
	w := c.w
	c.sendOpen()
	if len(c.open) > 0 && w.now-c.open[0].sentAt > 150*millisecond {
		c.turnTo([]*pod{c.pod, w.anyPod()}[w.rng.IntN(2)])
	}
}

func (c *client) sendOpen() {
	for _, r := range c.open {
		if r.conn != c.conn {
			c.send(r)
		}
	}
}

// turnTo switches to another pod. The old connection is only abandoned: its frames may
// still arrive, long after.
func (c *client) turnTo(p *pod) {
	if c.conn != nil {
		c.conn.gaveUp = true
		c.conn = nil
	}
	c.pod = p
}

// leave abandons the connection without a reason, sometimes the session too.
func (c *client) leave() {
	w := c.w
	if c.conn == nil {
		return
	}
	w.faults.hit(faultClientLost)
	if w.rng.IntN(6) == 0 {
		w.logf("client %d ends, another begins", c.id)
		c.newSession()
	}
	c.turnTo(w.anyPod())
}

func (c *client) closed(cn *conn) {
	if c.conn == cn {
		c.conn = nil
	}
}

// got handles a node's answer.
func (c *client) got(cn *conn, frame []byte, lineage uint64) {
	if cn != c.conn {
		return
	}
	switch wire.FrameType(frame) {
	case wire.TypeSessionOpened:
		var m wire.SessionOpened
		_ = wire.DecodeSessionOpened(frame, &m)
		if m.ReqID == c.reqID && (m.LastClientSeq < c.highest || c.gen != 0 && (m.Slot != c.slot || m.Generation != c.gen)) {
			c.w.logf("client %d: the session has lost its memory, and orders with it; it begins another", c.id)
			c.loseSession()
		} else if m.ReqID == c.reqID {
			c.slot, c.gen, c.opened, c.asked = m.Slot, m.Generation, true, 0
			c.sendOpen()
		}
	case wire.TypeAck:
		var m wire.Ack
		_ = wire.DecodeAck(frame, &m)
		if m.Slot == c.slot {
			c.acked(&m, lineage)
		}
	case wire.TypeReject:
		var m wire.Reject
		_ = wire.DecodeReject(frame, &m)
		c.rejected(&m, lineage)
	case wire.TypeNotPrimary:
		var m wire.NotPrimary
		_ = wire.DecodeNotPrimary(frame, &m)
		if p := c.w.podAt(string(m.Address)); p != nil {
			c.turnTo(p)
		} else {
			c.turnTo(c.w.anyPod())
		}
	}
}

// take removes the request with this number, nil if it has its answer.
func (c *client) take(clientSeq uint64) *request {
	for i, r := range c.open {
		if r.clientSeq == clientSeq {
			c.open = append(c.open[:i], c.open[i+1:]...)
			return r
		}
	}
	return nil
}

func (c *client) acked(m *wire.Ack, lineage uint64) {
	c.toldAgain(m, lineage)
	if r := c.take(m.ClientSeq); r != nil {
		c.remember(answered{r.key, m.ClientSeq, m.Seq, lineage})
		c.highest = max(c.highest, m.ClientSeq)
		c.w.acknowledged(c, r, m, lineage)
	}
}

func (c *client) rejected(m *wire.Reject, lineage uint64) {
	w := c.w
	switch m.Code {
	case wire.CodeVersionAwaited:
		c.versionAwaited(m)
	case wire.CodeOverloaded, wire.CodeInsufficientInSync, wire.CodeDraining:
		if m.ForType == wire.TypeSubmit {
			w.stats.Refusals++
			c.refused(m.RequestID)
		}
	case wire.CodeStandby: // says nothing of copies sent before
		if r := c.find(m.RequestID); r != nil && m.ForType == wire.TypeSubmit {
			r.conn = nil
		}
		w.checkStandby(m)
	case wire.CodeSequenceGap:
		if r := c.find(m.RequestID); r != nil {
			r.conn = nil // again, after the ones before it
		}
		for n := m.Detail; c.given[n] && n < m.RequestID; n++ { // all of them: one at a time a series of rejections would delay the rest
			if !slices.Contains(c.fill, n) {
				c.fill = append(c.fill, n)
			}
		}
	case wire.CodeDuplicateClOrdID:
		c.refusedAgain(m, lineage)
		if r := c.take(m.RequestID); r != nil {
			c.given[m.RequestID] = true
			w.duplicate(c, r, m, lineage)
		}
	case wire.CodeFunctionRefused, wire.CodeLimitRefused:
		c.decidedAgainst(m, lineage)
	case wire.CodeSessionMoved:
		c.turnTo(c.pod)
	case wire.CodeSessionUnknown, wire.CodeSessionWindow:
		w.logf("client %d: its session was evicted, it begins another", c.id)
		c.loseSession()
	case wire.CodeBadFIX:
		if !c.given[m.RequestID] {
			w.violation("wire", "client %d is answered that order %d is invalid: %s", c.id, m.RequestID, m.Text)
		}
	default:
		w.violation("wire", "client %d is refused with code %d: %s", c.id, m.Code, m.Text)
	}
}

// refused handles a rejected order. Sometimes the client gives up: it was answered that
// the order was not applied, and so it must stay. Not for too many in a row, since the
// window of a new primary begins at the last applied one.
func (c *client) refused(clientSeq uint64) {
	r := c.find(clientSeq)
	if r == nil {
		return
	}
	r.conn = nil
	if c.w.rng.IntN(2) == 0 && clientSeq < c.highest+8 {
		c.take(clientSeq)
		c.given[clientSeq] = true
		c.w.refused(c, r)
	}
}

func (c *client) find(clientSeq uint64) *request {
	for _, r := range c.open {
		if r.clientSeq == clientSeq {
			return r
		}
	}
	return nil
}

// fixOrder is the order with this ClOrdID.
func (w *world) fixOrder(clOrdID string) []byte {
	if w.profile.views != nil {
		return w.versioned(clOrdID, variedOrder(clOrdID))
	}
	return w.versioned(clOrdID, fixOrder(clOrdID, ""))
}

// fixOrder is a valid FIX 4.4 order with this ClOrdID, and with more fields at its end.
func fixOrder(clOrdID, more string) []byte {
	const before = "35=D\x0149=P\x0156=G\x0134=1\x0152=20071115-14:30:00.123\x0111="
	const after = "\x0155=IBM\x0154=1\x0160=20071115-14:30:00.123\x0138=100\x0140=2\x0144=104.25\x01"
	b := make([]byte, 0, 192)
	b = fmt.Appendf(b, "8=FIX.4.4\x019=%d\x01", len(before)+len(clOrdID)+len(after)+len(more))
	b = append(append(append(b, before...), clOrdID...), after+more...)
	b = append(b, "10=000\x01"...)
	if !order.Seal(b) {
		panic("order has no trailer")
	}
	return b
}
