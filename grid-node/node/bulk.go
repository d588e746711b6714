package node

import (
	"errors"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A learner's feed has a connection of its own, so that megabytes for one never delay an
// order for another. It is dialled when there is something to feed and closed when idle
// for a while; frames go one way.
const (
	// bulkHardOut exceeds what all partitions may have in flight to a learner. A learner
	// that stops reading is closed there, or by the write stall limit.
	bulkHardOut = learnerBytes + 1<<20
	bulkIdle    = 5 * time.Second
)

var errBulkIdle = errors.New("nothing to feed on the bulk connection")

// bulkLink is a peer's bulk connection as the node that feeds sees it.
type bulkLink struct {
	link    *link // nil: none, not even being dialled
	usedAt  int64
	dialAt  int64 // Mono before which it is not dialled again
	backoff time.Duration
}

// sendBulk writes to the node at address, or starts to connect. Frames that cannot be sent
// are dropped: EventPeerUp makes the replica resend them.
func (ps *peers) sendBulk(address string, head, tail []byte) {
	p := ps.at(address)
	if p == nil {
		return
	}
	b := &p.bulk
	b.usedAt = ps.loop.Clock().Mono()
	if b.link == nil || b.link.state != ready {
		ps.counters.PeerFramesDropped++
		ps.dialBulk(p)
		return
	}
	b.link.conn.SetOut(append(append(b.link.conn.Out(), head...), tail...))
}

func (ps *peers) dialBulk(p *peer) {
	now := ps.loop.Clock().Mono()
	b := &p.bulk
	if b.link != nil || now < b.dialAt || p.addr == ps.cfg.Advertise {
		return
	}
	b.backoff = min(max(2*b.backoff, minDialBackoff), maxDialBackoff)
	b.dialAt = now + int64(b.backoff)
	b.link = &link{peer: p, role: wire.RoleBulk}
	ps.dial(p.addr, b.link)
}

// bulkReady starts to feed, from what was acknowledged.
func (ps *peers) bulkReady(l *link) {
	l.conn.SetLimits(0, bulkHardOut)
	if l.peer == nil || l.peer.bulk.link != l {
		return // of a process that is gone
	}
	l.peer.bulk.backoff = 0
	ps.parts.step(replica.Event{Kind: replica.EventPeerUp, Address: l.peer.addr, Bulk: true})
}

func (ps *peers) bulkClosed(l *link, err error) {
	ps.bulkIn.remove(l)
	if l.peer != nil && l.peer.bulk.link == l {
		l.peer.bulk.link = nil
		if l.state == ready && !errors.Is(err, errBulkIdle) {
			ps.log.Warn("bulk connection closed", "peer", l.name, "address", l.peer.addr, "reason", err)
		}
	}
}

// closeIdleBulk is called now and then.
func (ps *peers) closeIdleBulk(now int64) {
	for _, p := range ps.byAddr {
		if b := &p.bulk; b.link != nil && b.link.conn.Open() && now-b.usedAt > int64(bulkIdle) {
			b.link.conn.CloseAfterFlush(errBulkIdle)
		}
	}
}
