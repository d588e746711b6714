package node

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// clients are the connections of clients: identities, permissions, and requests other than
// orders and reads. Of the data loop.
type clients struct {
	*process
	listeners *listeners
	parts     *partitions
	directory *directory
	sinkFiles *sinkFiles
	follows   follows
	questions questions

	byID     map[uint64]*link // those that may do something, by connection id
	connsOf  map[string]int   // how many of them by Identity.Key, see takeIn
	lookAt   int64            // wall clock: when a token is due to be looked at again; 0 for none
	lookedAt int64
}

// request handles requests other than orders and reads, and those not allowed.
func (c *clients) request(l *link, t wire.Type, frame []byte) error {
	row := wire.Row(t)
	switch {
	case row.From&wire.FromClient == 0:
		return c.badFrame(l, wire.GoawayRole, fmt.Sprintf("frame type %v, allowed from this role: %s", t, wire.Allowed(wire.FromClient)))
	case access.Needs(t)&^l.may != 0:
		return c.notPermitted(l, t, frame)
	case !row.ToReplica:
		return clientFrames[t](c, l, frame)
	}
	p := c.parts.at(wire.FramePartition(frame))
	if p == nil {
		return c.directory.notHere(l, t, frame)
	}
	if p.ended {
		return c.directory.notServed(l, p, t, frame)
	}
	if t == wire.TypeKill {
		return c.kill(l, p, frame)
	}
	p.request(l, frame)
	return nil
}

// clientFrames are the frames of clients that the node handles itself.
var clientFrames = [256]func(*clients, *link, []byte) error{
	wire.TypeListSinks:    (*clients).askSink,
	wire.TypeReadSink:     (*clients).askSink,
	wire.TypeFollow:       (*clients).follow,
	wire.TypeStream:       (*clients).stream,
	wire.TypeStreamSelect: (*clients).streamSelect,
	wire.TypeFollowCredit: (*clients).followCredit,
	wire.TypeQuery:        (*clients).query,
	wire.TypeQueryCancel:  (*clients).cancelQuery,
	wire.TypeTableRequest: func(c *clients, l *link, frame []byte) error { return c.directory.answerTable(l, frame) },
	wire.TypePing:         func(_ *clients, l *link, frame []byte) error { return l.pong(frame) },
	wire.TypeAuthenticate: (*clients).authenticate,
	wire.TypeGoaway:       func(_ *clients, _ *link, frame []byte) error { return saidGoaway(frame) },
}

// goaway ends the connections of all clients.
func (c *clients) goaway(code uint16, text string) {
	for _, l := range c.byID {
		if l.conn.Open() {
			_ = l.goaway(code, text)
		}
	}
}

// closed forgets a connection. Replies to it are dropped by its id: the replicas need no
// event, unless it has FIX sessions, which others may open then.
func (c *clients) closed(l *link) {
	delete(c.byID, l.conn.ID())
	for _, p := range c.parts.list {
		if !p.ended && p.replica.HoldsFix(l.conn.ID()) {
			p.step(&replica.Event{Kind: replica.EventClientGone, Conn: l.conn.ID()})
		}
	}
	for _, w := range slices.Clone(l.streams) {
		w.end(wire.EndLeaving, "")
	}
	for _, q := range l.questions {
		q.stop(wire.QueryCancelled)
	}
	l.endMaps()
	c.letGo(l)
}
